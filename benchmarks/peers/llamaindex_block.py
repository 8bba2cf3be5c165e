"""LlamaIndex's `VectorMemoryBlock` on Chroma."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from pathlib import Path

import chromadb
from chromadb.api import ClientAPI
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.vector_stores.chroma import ChromaVectorStore
from pydantic import PrivateAttr

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import Found, Options, content
from semantic_recall.types import Message


class MemoModel(BaseEmbedding):
    """Hands out the common vectors: of a message, not of the markup around it."""

    _memo: MemoEmbedder = PrivateAttr()

    def __init__(self, memo: MemoEmbedder, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self._memo = memo

    def _get_text_embedding(self, text: str) -> list[float]:
        vector: list[float] = self._memo.embed_documents([_inside(text)])[0].tolist()
        return vector

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._memo.embed_query(query).tolist()
        return vector

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)


class _Witness(BaseNodePostprocessor):
    """Sees the nodes before the block makes one text of them."""

    _nodes: list[NodeWithScore] = PrivateAttr(default_factory=list)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        self._nodes = nodes
        return nodes


def _inside(text: str) -> str:
    return text.removesuffix("</message>").split(">", 1)[-1]


class BlockSubject:
    """A block for each user, over one collection."""

    def __init__(self, client: ClientAPI, name: str, model: MemoModel) -> None:
        collection = client.get_or_create_collection(name, metadata={"hnsw:space": "cosine"})
        self._store = ChromaVectorStore(chroma_collection=collection)
        self._model = model
        self._witness = _Witness()
        self._loop = asyncio.new_event_loop()
        self._writer = self._block(1)
        self._ids: dict[tuple[str, str], str] = {}
        """Nodes carry no message ids: which message a text was is kept here."""

    def _block(self, k: int) -> VectorMemoryBlock:
        return VectorMemoryBlock(
            vector_store=self._store,
            embed_model=self._model,
            similarity_top_k=k,
            retrieval_context_window=1,
            node_postprocessors=[self._witness],
        )

    def remember(self, messages: Sequence[Message]) -> None:
        """Put messages, one at a time: those of one call would become one node."""
        for message in messages:
            text, user = content(message), str(message.resource_id)
            self._ids.setdefault((user, text), str(message.id))
            role = message.role if message.role in ("user", "assistant") else "user"
            chat = ChatMessage(role=role, content=text, additional_kwargs={"session_id": user})
            self._loop.run_until_complete(self._writer.aput([chat]))

    def recall(
        self, query: str, k: int, *, resource_id: str, thread_id: str | None = None
    ) -> list[Found]:
        """Return what the block puts into the prompt."""
        ask = self._block(k).aget([ChatMessage(content=query)], session_id=resource_id)
        self._loop.run_until_complete(ask)
        texts = [_inside(node.get_content()) for node in self._witness._nodes]
        return [
            Found(self._ids[resource_id, text], text)
            for text in texts
            if (resource_id, text) in self._ids
        ]

    def settle(self) -> None:
        """Do nothing: nothing waits."""

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> BlockSubject:
    """Open the blocks on a folder."""
    settings = chromadb.Settings(anonymized_telemetry=False)
    if options.durable:
        client = chromadb.PersistentClient(str(folder), settings)
        return BlockSubject(client, "messages", MemoModel(embedder))
    # All ephemeral clients of a process share one database.
    return BlockSubject(
        chromadb.EphemeralClient(settings), f"messages-{uuid.uuid4().hex}", MemoModel(embedder)
    )
