"""A chat service under load: 64 users at once on one memory, in one event loop.

`RECALL_LOAD_TURNS=1000 pytest -s tests/core/test_load.py` is the long run.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
from fastapi import FastAPI
from pydantic import BaseModel

from semantic_recall import SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder

USERS = 64
TURNS = int(os.environ.get("RECALL_LOAD_TURNS", "200"))
TICK = 0.002


class Turn(BaseModel):
    """What a user says."""

    user: str
    text: str


class Answer(BaseModel):
    """What the service says, and what it looked up."""

    text: str
    recalled: list[str]
    owners: list[str | None]
    recall_seconds: float
    remember_seconds: float


def service(folder: Path) -> FastAPI:
    """A chat service as one would write it: recall, ask the model, remember."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with SemanticRecall.open(folder, embedder=HashEmbedder(256)) as memory:
            app.state.memory = memory
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/chat")
    async def chat(turn: Turn) -> Answer:
        memory: SemanticRecall = app.state.memory
        began = time.perf_counter()
        recalled = await memory.arecall(turn.text, resource_id=turn.user, thread_id="chat")
        found = time.perf_counter()
        answer = f"I heard: {turn.text}"
        await memory.aremember(
            [{"role": "user", "content": turn.text}, {"role": "assistant", "content": answer}],
            thread_id="chat",
            resource_id=turn.user,
        )
        return Answer(
            text=answer,
            recalled=[item.message.text for item in recalled],
            owners=[item.message.resource_id for item in recalled],
            recall_seconds=found - began,
            remember_seconds=time.perf_counter() - found,
        )

    return app


async def tick(stalls: list[float]) -> None:
    """Measure by how much a short sleep is late: that long the event loop stood still."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(TICK)
        stalls.append(time.perf_counter() - began - TICK)


async def test_64_users_at_once(tmp_path: Path) -> None:
    app = service(tmp_path)
    left = iter(range(TURNS))
    answers: list[Answer] = []
    said: dict[str, list[str]] = {f"user{number}": [] for number in range(USERS)}

    async def talk(client: httpx.AsyncClient, user: str) -> None:
        for turn in left:
            text = f"apple{turn} of {user} grows in garden{turn % 7}"
            response = await client.post("/chat", json={"user": user, "text": text})
            assert response.status_code == 200, response.text
            answer = Answer.model_validate_json(response.content)
            assert set(answer.owners) <= {user}
            assert bool(answer.recalled) == bool(said[user])
            said[user].append(text)
            answers.append(answer)

    stalls: list[float] = []
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://chat") as client:
            ticker = asyncio.create_task(tick(stalls))
            began = time.perf_counter()
            await asyncio.gather(*(talk(client, user) for user in said))
            seconds = time.perf_counter() - began
            ticker.cancel()
            with suppress(asyncio.CancelledError):
                await ticker
        memory: SemanticRecall = app.state.memory
        assert await memory.aflush(120)
        assert (await memory.averify()).ok
        assert (await memory.astats()).messages == 2 * TURNS
        for user, texts in said.items():
            for text in texts[-1:]:
                hits = (await memory.arecall(text, resource_id=user)).hits
                assert text in {hit.message.text for hit in hits}
    assert len(answers) == TURNS
    recall = np.percentile([answer.recall_seconds for answer in answers], [50, 95]) * 1e3
    remember = np.percentile([answer.remember_seconds for answer in answers], [50, 95]) * 1e3
    print(
        f"\n{USERS} users, {TURNS} turns in {seconds:.1f} s: recall p50 {recall[0]:.1f} ms, "
        f"p95 {recall[1]:.1f} ms; remember p50 {remember[0]:.1f} ms, p95 {remember[1]:.1f} ms; "
        f"event loop stalled {max(stalls) * 1e3:.0f} ms at most, "
        f"p99 {np.percentile(stalls, 99) * 1e3:.1f} ms"
    )
    # A call that blocks the loop would stop it for the whole of a write or of an opening.
    assert np.percentile(stalls, 99) < 0.25
    assert max(stalls) < 2.0
