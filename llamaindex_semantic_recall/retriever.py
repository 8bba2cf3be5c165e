"""Past messages as nodes."""

from __future__ import annotations

import hashlib
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from typing_extensions import Unpack

from llamaindex_semantic_recall._options import scoped
from semantic_recall import SemanticRecall
from semantic_recall.options import RecallOverrides
from semantic_recall.result import Recall
from semantic_recall.types import RecalledMessage

# What a model should not have to read; role and time are shown to it.
_HIDDEN = ["message_id", "thread_id", "resource_id", "is_hit", "name"]


class SemanticRecallRetriever(BaseRetriever):
    """A retriever over the past messages of one thread or resource.

    Each message is a node: its text, a score, and role, time and ids as metadata. Hits come
    first, best first, then their neighbours in order. Failures are raised: where an answer must
    go on without recall, use `SemanticRecallMemory`.

        retriever = SemanticRecallRetriever(recall, resource_id="user-1", top_k=8)

    Args:
        recall: The opened memory.
        thread_id: The conversation; needed with scope "thread".
        resource_id: Whose conversations; without one only the thread is searched.
        callback_manager: LlamaIndex's callbacks.
        **wanted: Any option of `RecallOptions`.

    Raises:
        InvalidScopeError: Neither thread_id nor resource_id was given.
    """

    def __init__(
        self,
        recall: SemanticRecall,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        callback_manager: CallbackManager | None = None,
        **wanted: Unpack[RecallOverrides],
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self._recall = recall
        self._overrides = scoped(recall, thread_id, resource_id, wanted)
        self._thread_id = thread_id
        self._resource_id = resource_id

    # The bundle's `embedding` is not used: other retrievers leave there what their model made.
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._recall.recall(
            query_bundle.query_str,
            thread_id=self._thread_id,
            resource_id=self._resource_id,
            **self._overrides,
        )
        return nodes(found)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = await self._recall.arecall(
            query_bundle.query_str,
            thread_id=self._thread_id,
            resource_id=self._resource_id,
            **self._overrides,
        )
        return nodes(found)


def nodes(found: Recall) -> list[NodeWithScore]:
    """Return what was recalled as nodes, hits first."""
    neighbours = (recalled for recalled in found.messages if not recalled.is_hit)
    return [_node(recalled) for recalled in (*found.hits, *neighbours)]


def _node(recalled: RecalledMessage) -> NodeWithScore:
    message = recalled.message
    metadata: dict[str, Any] = {
        "role": message.role,
        "created_at": message.created_at.isoformat(),
        "message_id": message.id,
        "thread_id": message.thread_id,
        "is_hit": recalled.is_hit,
    }
    if message.resource_id is not None:
        metadata["resource_id"] = message.resource_id
    if message.name is not None:
        metadata["name"] = message.name
    # A message's id is unique in its thread only.
    key = "\0".join((message.resource_id or "", message.thread_id, message.id))
    node = TextNode(
        id_=hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest(),
        text=message.text,
        metadata=metadata,
        excluded_embed_metadata_keys=list(metadata),
        excluded_llm_metadata_keys=_HIDDEN,
    )
    return NodeWithScore(node=node, score=recalled.score)
