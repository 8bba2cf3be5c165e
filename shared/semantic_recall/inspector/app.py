"""The inspector as an ASGI application: a few static files and six JSON endpoints."""

from __future__ import annotations

from collections.abc import Collection
from importlib import resources

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError, SemanticRecallError
from semantic_recall.inspector.guard import Guard
from semantic_recall.inspector.views import Views
from semantic_recall.inspector.wire import JsonResponse

_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE = "index.html"


def inspector_app(
    memory: SemanticRecall, *, token: str, hosts: Collection[str], name: str = "memory"
) -> ASGIApp:
    """Return the inspector of a memory; its page is at /TOKEN/.

    Args:
        memory: What is inspected; it stays open and is not closed here.
        token: The secret that every request must know. It must be safe in a path, as
            `secrets.token_urlsafe()` is.
        hosts: The values of the `Host` header that are answered, such as "127.0.0.1:8000". Any
            other means that a foreign name was made to point to this machine (DNS rebinding).
        name: What the page calls the memory.
    """
    views = Views(memory, name)
    api = Starlette(
        routes=[
            Route(f"/api/{view.__name__}", view, methods=["POST"])
            for view in (
                *(views.overview, views.resources, views.threads, views.messages),
                *(views.recall, views.forget),
            )
        ],
        exception_handlers={HTTPException: _refused, SemanticRecallError: _failed},
    )
    page = Starlette(routes=[Route("/", _file), Route("/{name}", _file)])
    return Guard(page, api, token=token, hosts=hosts)


def _files() -> dict[str, tuple[bytes, str]]:
    """Return what may be served, by name, with its media type: a name is never a path."""
    folder = resources.files(__package__) / "static"
    return {
        file.name: (file.read_bytes(), _TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _TYPES  # not what an editor left behind
    }


_FILES = _files()


async def _file(request: Request) -> Response:
    found = _FILES.get(request.path_params.get("name", _PAGE))
    if found is None:
        raise HTTPException(404)
    content, media_type = found
    return Response(content, headers={"content-type": media_type})


async def _refused(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    said = error.detail if isinstance(error, HTTPException) else "something went wrong"
    return JsonResponse({"error": said}, status)


async def _failed(_request: Request, error: Exception) -> Response:
    """Say what the library said: the caller's mistake is 400, a part that failed 503."""
    status = 400 if isinstance(error, ConfigurationError) else 503
    return JsonResponse({"error": str(error)}, status)
