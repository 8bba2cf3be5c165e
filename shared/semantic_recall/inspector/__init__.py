"""The inspector: a local web page that shows what a memory holds and what it would recall.

`semantic-recall inspect` serves it; `inspector_app` is the page as an ASGI application. It needs
the extra `inspect`. docs/inspector.md says how to use it and what keeps it private.
"""

from semantic_recall.errors import MissingDependencyError

try:
    from semantic_recall.inspector.app import inspector_app
    from semantic_recall.inspector.server import Inspector, open_in_browser
except ModuleNotFoundError as error:
    missing = (error.name or "").partition(".")[0]
    if missing not in ("starlette", "uvicorn"):
        raise
    raise MissingDependencyError(
        f"the inspector needs the package {missing!r}; run: "
        'pip install "chat-semantic-recall[inspect]"'
    ) from error

__all__ = ["Inspector", "inspector_app", "open_in_browser"]
