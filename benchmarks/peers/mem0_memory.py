"""mem0 without an LLM: messages are stored as they are (`infer=False`)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

# Both are read when it is imported: it writes an id of the user into its folder.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ.setdefault("MEM0_DIR", os.path.join(tempfile.gettempdir(), "semantic-recall-bench-mem0"))

from mem0 import Memory
from qdrant_client import QdrantClient

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options, content
from benchmarks.peers._langchain_embeddings import MemoEmbeddings
from semantic_recall.types import Message


class Mem0Subject:
    """A memory: the user is `user_id`, a thread is `run_id`; neither may hold blanks."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def remember(self, messages: Sequence[Message]) -> None:
        """Add messages, each with its id as metadata."""
        for message in messages:
            self._memory.add(
                [{"role": message.role, "content": content(message)}],
                user_id=quote(str(message.resource_id)),
                run_id=quote(str(message.thread_id)),
                metadata={"message": str(message.id)},
                infer=False,
            )

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Search a user or one run."""
        filters = {"user_id": quote(resource_id)}
        if thread_id is not None:
            filters["run_id"] = quote(thread_id)
        # A threshold would only take away; its default is 0.1.
        results = self._memory.search(query, filters=filters, top_k=k, threshold=0.0)["results"]
        return [Found(item["metadata"]["message"], item["memory"]) for item in results]

    def settle(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Close the local database."""
        self._memory.close()
        self._memory.vector_store.client.close()


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> Mem0Subject:
    """Open a memory in a folder; the LLM that it insists on is never called."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "vector_store": {
            "provider": "qdrant",
            "config": {
                "embedding_model_dims": embedder.space.dimensions,
                "on_disk": options.durable,
                **(
                    {"path": str(folder / "qdrant")}
                    if options.durable
                    else {"client": QdrantClient(":memory:")}
                ),
            },
        },
        "embedder": {
            "provider": "langchain",
            "config": {"model": MemoEmbeddings(embedder)},
        },
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": str(folder / "history.db"),
    }
    return Mem0Subject(Memory.from_config(config))
