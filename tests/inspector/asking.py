"""Asks the endpoints of the inspector as the page does."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from semantic_recall import SemanticRecall
from semantic_recall.inspector import inspector_app

TOKEN = "a-token"
HOST = "127.0.0.1:8000"


class Api:
    """Asks the endpoints with everything that they want to see."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def answer(self, name: str, **fields: object) -> httpx.Response:
        # json.dumps, as JavaScript, writes half a surrogate pair as an escape; httpx does not.
        return await self.client.post(
            f"/api/{name}",
            content=json.dumps(fields),
            headers={"x-inspector-token": TOKEN, "content-type": "application/json"},
        )

    async def __call__(self, name: str, **fields: object) -> Any:
        answer = await self.answer(name, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def refused(self, name: str, *, code: int = 400, **fields: object) -> str:
        answer = await self.answer(name, **fields)
        assert answer.status_code == code, answer.text
        said = answer.json()["error"]
        assert isinstance(said, str)
        return said


@asynccontextmanager
async def asking(memory: SemanticRecall) -> AsyncIterator[Api]:
    app = inspector_app(memory, token=TOKEN, hosts=[HOST], name="the memory")
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        yield Api(client)
