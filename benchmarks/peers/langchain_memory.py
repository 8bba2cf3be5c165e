"""LangChain's `VectorStoreRetrieverMemory`: `save_context(input, output)` makes one document."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import chromadb
from chromadb.api import ClientAPI
from langchain_chroma import Chroma
from langchain_classic.memory import VectorStoreRetrieverMemory
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options, content
from benchmarks.peers._langchain_embeddings import MemoEmbeddings
from semantic_recall.types import Message


class RetrieverMemorySubject:
    """A memory for each user: the class has no filter that could keep them apart."""

    def __init__(self, folder: Path, embeddings: MemoEmbeddings, durable: bool) -> None:
        self._client: ClientAPI | None = None
        if durable:
            settings = chromadb.Settings(anonymized_telemetry=False)
            self._client = chromadb.PersistentClient(str(folder), settings)
        self._embeddings = embeddings
        self._memories: dict[str, VectorStoreRetrieverMemory] = {}
        self._ids: dict[tuple[str, str], list[Message]] = {}
        """Documents carry no ids: which messages a text was made of is kept here."""

    def _memory(self, resource_id: str) -> VectorStoreRetrieverMemory:
        if resource_id not in self._memories:
            name = "u" + hashlib.sha256(resource_id.encode()).hexdigest()[:40]
            store: VectorStore = (
                InMemoryVectorStore(self._embeddings)
                if self._client is None
                else Chroma(
                    collection_name=name,
                    embedding_function=self._embeddings,
                    client=self._client,
                    collection_metadata={"hnsw:space": "cosine"},
                )
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is deprecated, and this is why we compare
                self._memories[resource_id] = VectorStoreRetrieverMemory(
                    retriever=store.as_retriever(), return_docs=True
                )
        return self._memories[resource_id]

    def remember(self, messages: Sequence[Message]) -> None:
        """Save turns."""
        for turn in turns(messages):
            texts = [content(message) for message in turn]
            memory = self._memory(str(turn[0].resource_id))
            names = ("input", "output")[: len(turn)]
            memory.save_context({"input": texts[0]}, dict(zip(names[1:], texts[1:], strict=True)))
            page = "\n".join(f"{n}: {t}" for n, t in zip(names, texts, strict=True))
            self._ids.setdefault((str(turn[0].resource_id), page), turn)

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Return the messages of the nearest documents."""
        memory = self._memory(resource_id)
        memory.retriever.search_kwargs = {"k": k}
        documents = memory.load_memory_variables({"prompt": query})["history"]
        return [
            Found(str(message.id), content(message))
            for document in documents
            for message in self._ids.get((resource_id, document.page_content), ())
        ]

    def settle(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Do nothing: Chroma has nothing to close."""


def turns(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Yield pairs of messages of one thread, as they follow each other."""
    waiting: list[Message] = []
    for message in messages:
        if waiting and waiting[0].thread_id != message.thread_id:
            yield waiting
            waiting = []
        waiting.append(message)
        if len(waiting) == 2:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> RetrieverMemorySubject:
    """Open the memories in a folder."""
    return RetrieverMemorySubject(folder, MemoEmbeddings(embedder), options.durable)
