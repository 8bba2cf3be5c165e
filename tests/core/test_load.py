"""A chat service under load: 64 users at once on one memory, in one event loop.

`RECALL_LOAD_TURNS=1000 pytest -s tests/core/test_load.py` is the long run.

What made the loop late, as seen by dumping all stacks whenever it was: (1) Chroma, which holds the
GIL for the whole of a write and of several steps of being opened: so the service has it in a
process of its own (`index_process`); (2) full collections of garbage, which go through all that
was ever imported, here pytest and what it has loaded: so the service takes that out (`gc.freeze`);
(3) the GIL going round among the threads that recall and remember, 5 ms each; (4) on a busy
machine, that whoever holds the GIL is not running.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder

USERS = 64
TURNS = int(os.environ.get("RECALL_LOAD_TURNS", "200"))
TICK = 0.005
STALL = 0.05
"""By how much one tick in a hundred may be late on a machine that does nothing else."""


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
        settings = Settings(index_process=True)
        async with SemanticRecall.open(
            folder, embedder=HashEmbedder(256), settings=settings
        ) as memory:
            await memory.aflush()  # opens the vector index before anybody waits for an answer
            app.state.memory = memory
            gc.collect()
            gc.freeze()
            try:
                yield
            finally:
                gc.unfreeze()

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


def slowness() -> float:
    """Measure how many seconds a second of work takes here and now, 1 if nobody else works."""
    began, worked = time.perf_counter(), time.thread_time()
    while time.thread_time() - worked < 0.2:
        pass
    return (time.perf_counter() - began) / (time.thread_time() - worked)


@pytest.mark.alone
async def test_64_users_at_once(tmp_path: Path) -> None:
    app = service(tmp_path)
    left = iter(range(TURNS))
    answers: list[Answer] = []
    said: dict[str, list[str]] = {f"user{number}": [] for number in range(USERS)}

    async def talk(client: httpx.AsyncClient, user: str, number: int) -> None:
        await asyncio.sleep(number * TICK)  # they do not all come in the same instant
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
    slow = slowness()
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://chat") as client:
            ticker = asyncio.create_task(tick(stalls))
            began = time.perf_counter()
            await asyncio.gather(*(talk(client, user, n) for n, user in enumerate(said)))
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
        f"event loop late by p99 {np.percentile(stalls, 99) * 1e3:.1f} ms, at most "
        f"{max(stalls) * 1e3:.0f} ms, and by more than {STALL * 1e3:.0f} ms in "
        f"{np.mean(np.array(stalls) > STALL):.2%} of {len(stalls)} ticks; "
        f"a second of work took {slow:.1f} s"
    )
    # A call that blocks the loop would stop it for the whole of a write or of an opening.
    slow = max(slow, slowness())
    assert np.mean(np.array(stalls) > STALL * slow) <= 0.01
    assert max(stalls) < max(0.5, STALL * 5 * slow)
