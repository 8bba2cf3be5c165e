"""Who is let in: nobody without the token, under another name, or from another page."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.types import Message

from semantic_recall import SemanticRecall
from semantic_recall.inspector import inspector_app
from semantic_recall.inspector.guard import MAX_BODY

TOKEN = "the-right-token_1"
HOST = "127.0.0.1:8123"
GOOD = {"x-inspector-token": TOKEN, "content-type": "application/json"}

CALLS = [f"/api/{name}" for name in ("overview", "resources", "threads", "messages")] + [
    "/api/recall",
    "/api/forget",
    "/api/nothing",
]
FILES = ["", "index.html", "app.js", "style.css", "messages.css", "icon.svg", "nothing"]
WRONG = ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "api"]


@pytest.fixture
async def client(memory: SemanticRecall) -> AsyncIterator[httpx.AsyncClient]:
    app = inspector_app(memory, token=TOKEN, hosts=[HOST, "localhost:8123"])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as opened:
        yield opened


@pytest.mark.parametrize("token", WRONG)
@pytest.mark.parametrize("name", FILES)
async def test_no_file_without_the_token(client: httpx.AsyncClient, token: str, name: str) -> None:
    answer = await client.get(f"/{token}/{name}")
    assert answer.status_code == 403
    assert "semantic-recall inspect" in answer.text
    assert TOKEN not in answer.text


@pytest.mark.parametrize("path", ["/", "/app.js", "//", f"/x/{TOKEN}/", f"/?token={TOKEN}"])
async def test_the_token_stands_where_it_belongs(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 403


@pytest.mark.parametrize("path", CALLS)
async def test_no_call_without_the_token(client: httpx.AsyncClient, path: str) -> None:
    for token in (None, *WRONG):
        sent = [] if token is None else [(b"x-inspector-token", token.encode())]
        answer = await client.post(path, json={}, headers=sent)
        assert answer.status_code == 403
        assert "token" in answer.json()["error"]
        assert TOKEN not in answer.text
    # The token of the address is none of a call, which a page of another origin could make.
    assert (await client.post(f"{path}?token={TOKEN}", json={})).status_code == 403
    assert (await client.post(f"/{TOKEN}{path}", json={})).status_code == 404


@pytest.mark.parametrize("path", CALLS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
async def test_only_post_calls(client: httpx.AsyncClient, path: str, method: str) -> None:
    answer = await client.request(method, path, headers=GOOD)
    assert answer.status_code in (404, 405)
    assert "access-control-allow-origin" not in answer.headers
    assert (await client.request(method, path)).status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8123", "127.0.0.1", "127.0.0.1:8124", "127.0.0.1:8123.evil", ""],
)
async def test_no_answer_under_another_name(client: httpx.AsyncClient, host: str) -> None:
    page = await client.get(f"/{TOKEN}/", headers={"host": host})
    call = await client.post("/api/overview", json={}, headers={**GOOD, "host": host})
    assert page.status_code == call.status_code == 421
    assert HOST in page.text
    assert HOST in call.json()["error"]


async def test_localhost_is_a_name_of_it(client: httpx.AsyncClient) -> None:
    for host in ("localhost:8123", "LOCALHOST:8123"):
        headers = {**GOOD, "host": host}
        assert (await client.get(f"/{TOKEN}/", headers=headers)).status_code == 200
        assert (await client.post("/api/overview", json={}, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": f"https://{HOST}"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_no_call_from_another_page_even_with_the_token(
    client: httpx.AsyncClient, memory: SemanticRecall, headers: dict[str, str]
) -> None:
    fields = {"id": "trip-0", "thread_id": "trip", "resource_id": "ana"}
    answer = await client.post("/api/forget", json=fields, headers={**GOOD, **headers})
    assert answer.status_code == 403
    assert len(memory.history("trip", "ana")) == 3


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_form_is_no_call(client: httpx.AsyncClient, kind: str) -> None:
    answer = await client.post(
        "/api/overview", content="{}", headers={**GOOD, "content-type": kind}
    )
    assert answer.status_code == 415


async def test_a_call_from_the_page_itself_is_answered(client: httpx.AsyncClient) -> None:
    headers = {**GOOD, "origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    assert (await client.post("/api/overview", json={}, headers=headers)).status_code == 200


async def test_a_body_has_a_limit(client: httpx.AsyncClient) -> None:
    answer = await client.post("/api/recall", content=b" " * (MAX_BODY + 1), headers=GOOD)
    assert answer.status_code == 413
    assert f"{MAX_BODY:,}" in answer.json()["error"]


async def test_every_answer_has_the_headers(client: httpx.AsyncClient) -> None:
    answers = [
        await client.get(f"/{TOKEN}/"),
        await client.get(f"/{TOKEN}/app.js"),
        await client.get(f"/{TOKEN}/nothing"),
        await client.get("/wrong/"),
        await client.post("/api/overview", json={}, headers=GOOD),
        await client.post("/api/overview", json={}),
        await client.get(f"/{TOKEN}/", headers={"host": "evil.example"}),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 404, 403, 200, 403, 421]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers


async def test_the_page_names_only_files_of_its_own(client: httpx.AsyncClient) -> None:
    page = (await client.get(f"/{TOKEN}/")).text
    assert "://" not in page
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == 1
    for name, kind in (("app.js", "text/javascript"), ("style.css", "text/css")):
        answer = await client.get(f"/{TOKEN}/{name}")
        assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize("name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "static/app.js"])
async def test_a_name_is_never_a_path(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get(f"/{TOKEN}/{name}")).status_code in (403, 404)


async def test_the_address_without_its_slash_leads_to_the_page(client: httpx.AsyncClient) -> None:
    answer = await client.get(f"/{TOKEN}", follow_redirects=True)
    assert (answer.status_code, answer.url.path) == (200, f"/{TOKEN}/")


async def test_it_can_stand_below_another_application(memory: SemanticRecall) -> None:
    app = inspector_app(memory, token=TOKEN, hosts=[HOST])
    transport = httpx.ASGITransport(app, root_path="/tools")
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}/tools") as client:
        assert (await client.get(f"/{TOKEN}/app.js")).status_code == 200
        assert (await client.get("/wrong/app.js")).status_code == 403
        assert (await client.post("/api/overview", json={}, headers=GOOD)).status_code == 200


async def test_a_websocket_is_closed(memory: SemanticRecall) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    app = inspector_app(memory, token=TOKEN, hosts=[HOST])
    await app({"type": "websocket", "path": f"/{TOKEN}/", "headers": []}, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_a_request_that_ends_early_is_no_call(memory: SemanticRecall) -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    app = inspector_app(memory, token=TOKEN, hosts=[HOST])
    headers = [(name.encode(), value.encode()) for name, value in {**GOOD, "host": HOST}.items()]
    scope = {"type": "http", "method": "POST", "path": "/api/forget", "headers": headers}
    await app(scope, receive, send)
    assert sent[0]["status"] == 400
