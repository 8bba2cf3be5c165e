"""Who may ask: the token, the host, the origin, and the headers that every answer carries.

The token is part of the page's address and a header of every call of the API. There is no cookie:
cookies do not know ports, so the browser would hand it to every other server on this machine.
"""

from __future__ import annotations

from collections.abc import Collection
from hmac import compare_digest

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semantic_recall.inspector.wire import JsonResponse

TOKEN_HEADER = "x-inspector-token"
MAX_BODY = 256 * 1024
"""Bytes of a request; a query is a message, not a book."""

_API = "/api/"

HEADERS = {
    # Scripts and styles come from this server alone, and a script cannot turn text into markup.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "referrer-policy": "no-referrer",  # the address has the token
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

_NO_TOKEN = (
    "The token is missing or wrong. Open the address that `semantic-recall inspect` printed: "
    "it ends with the token, and each run has another one."
)


class Guard:
    """Lets through to the page and the API who knows the token, and nobody else.

    Args:
        page: The static files, asked for as /TOKEN/name.
        api: The endpoints, asked for as /api/name with the token in a header.
        token: The secret.
        hosts: The allowed values of the `Host` header.
    """

    def __init__(self, page: ASGIApp, api: ASGIApp, *, token: str, hosts: Collection[str]) -> None:
        self._page = page
        self._api = api
        self._token = token.encode()
        self._hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "lifespan":
            await self._api(scope, receive, send)
        else:
            path: str = scope["path"].removeprefix(scope.get("root_path", ""))
            answer = self._call if path.startswith(_API) else self._show
            await answer(path, scope, receive, _with_headers(send))

    async def _show(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        token, slash, _ = path[1:].partition("/")
        app: ASGIApp
        if not self._is_known(Headers(scope=scope).get("host", "")):
            app = PlainTextResponse(_wrong_host(self._hosts), 421)
        elif not self._is_token(token):
            app = PlainTextResponse(_NO_TOKEN, 403)
        elif not slash:  # the page names its files relative to /TOKEN/
            app = Response(status_code=307, headers={"location": f"{token}/"})
        else:
            app = self._page
            scope = {**scope, "root_path": f"{scope.get('root_path', '')}/{token}"}
        await app(scope, receive, send)

    async def _call(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        status, said = self._refusal(headers)
        body = b""
        if not status:
            body, status, said = await _read(receive)
        if status:
            await JsonResponse({"error": said}, status)(scope, receive, send)
            return
        await self._api(scope, _again(body, receive), send)

    def _refusal(self, headers: Headers) -> tuple[int, str]:
        """Return why a call of the API is refused, as a status and a sentence; or 0 and ""."""
        host = headers.get("host", "")
        if not self._is_known(host):
            return 421, _wrong_host(self._hosts)
        if not self._is_token(headers.get(TOKEN_HEADER, "")):
            return 403, _NO_TOKEN
        # A browser cannot be made to send the token's header across origins; these two say the
        # same once more, should the token have leaked.
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}".lower():
            return 403, "This call came from a page of another origin."
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "This call came from a page of another origin."
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Send JSON with the content type application/json."
        return 0, ""

    def _is_known(self, host: str) -> bool:
        return host.lower() in self._hosts

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode("utf-8", "surrogatepass"), self._token)


def _wrong_host(hosts: Collection[str]) -> str:
    return f"This server answers only as {' or '.join(sorted(hosts))}."


async def _read(receive: Receive) -> tuple[bytes, int, str]:
    """Return the body, or why it was not read."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"", 400, "The request ended early."
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return b"", 413, f"A request may have {MAX_BODY:,} bytes at most."
        if not message.get("more_body", False):
            return bytes(body), 0, ""


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read already."""
    given = False

    async def once_more() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once_more


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
        await send(message)

    return sending
