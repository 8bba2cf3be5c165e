"""Mastra itself: `@mastra/memory` on LibSQL, in a process of Node 22 (npm brings it)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, NotRunnableError, Options, content
from semantic_recall.types import Message

HERE = Path(__file__).parent
PACKAGES = ("@mastra/core", "@mastra/memory", "@mastra/libsql", "node")


class MastraSubject:
    """A `Memory` in a Node process."""

    def __init__(self, folder: Path, embedder: MemoEmbedder, options: Options) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._embedder = embedder
        self._neighbours = options.neighbours
        self._known = folder / "threads.json"
        self._some_thread: dict[str, str] = (
            json.loads(self._known.read_text("utf-8")) if self._known.exists() else {}
        )
        """A thread of each user: a recall wants to be asked in one."""
        self._process = subprocess.Popen(
            [HERE / "node_modules" / ".bin" / "node", HERE / "serve.mjs", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={"MASTRA_TELEMETRY_DISABLED": "1", "PATH": "/usr/bin:/bin"},
        )
        self.pid = self._process.pid
        """Of the process whose memory counts."""

    def _call(self, method: str, given: dict[str, list[float]], **rest: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"method": method, "given": given, **rest}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def remember(self, messages: Sequence[Message]) -> None:
        """Save messages; their threads are made when they are new."""
        texts = [content(message) for message in messages]
        vectors = self._embedder.embed_documents(texts)
        for message in messages:
            self._some_thread[str(message.resource_id)] = _thread(message)
        self._call(
            "remember",
            {text: vector.tolist() for text, vector in zip(texts, vectors, strict=True)},
            messages=[
                {
                    "id": f"{_thread(message)}/{message.id}",
                    "role": message.role,
                    "text": text,
                    "createdAt": message.created_at.isoformat(),
                    "threadId": _thread(message),
                    "resourceId": message.resource_id,
                }
                for message, text in zip(messages, texts, strict=True)
            ],
        )

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Recall as the processor does."""
        answer = self._call(
            "recall",
            {query: self._embedder.embed_query(query).tolist()},
            query=query,
            k=k,
            neighbours=self._neighbours,
            resourceId=resource_id,
            threadId=(
                self._some_thread.get(resource_id, "")
                if thread_id is None
                else f"{resource_id}/{thread_id}"
            ),
            scope="resource" if thread_id is None else "thread",
        )
        return [Found(item["id"].rsplit("/", 1)[-1], item["text"]) for item in answer["found"]]

    def settle(self) -> None:
        """Do nothing: it answers when it is done."""

    def close(self) -> None:
        """End the process."""
        self._known.write_text(json.dumps(self._some_thread), encoding="utf-8")
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process.terminate()
        self._process.wait()


def _thread(message: Message) -> str:
    """Return a thread id that no other user has: its threads have one owner."""
    return f"{message.resource_id}/{message.thread_id}"


def versions() -> dict[str, str]:
    """Return the installed versions of its packages."""
    found = {}
    for name in PACKAGES:
        path = HERE / "node_modules" / name / "package.json"
        if path.exists():
            found[name] = json.loads(path.read_text(encoding="utf-8"))["version"]
    return found


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> MastraSubject:
    """Start a memory on a folder."""
    if len(versions()) < len(PACKAGES):
        raise NotRunnableError(f"run npm install in {HERE.name}/ (it brings Node 22)")
    return MastraSubject(folder, embedder, options)
