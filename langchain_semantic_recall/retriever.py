"""The memory as a LangChain retriever."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, cast

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from pydantic import Field, PrivateAttr
from typing_extensions import Unpack

from langchain_semantic_recall.ids import resolve
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.types import MessageRange, RecalledMessage, ScopeKind


class SemanticRecallRetriever(BaseRetriever):
    """Finds past messages as documents, the best first.

    Each document has the message's text as its page and in `metadata`: "thread_id",
    "resource_id", "role", "name", "created_at" (ISO 8601, UTC), "score", "dense", "lexical",
    "source" ("memory") and the message's own "metadata". `Document.id` is the message id.

    Thread and owner are taken from the call, else from these fields, else from
    `config["configurable"]` (`thread_id`; `resource_id` or `user_id`). Without an owner only the
    thread is searched. Everything else that a call may say is an option of `RecallOptions`.

    Raises:
        InvalidScopeError: Neither a thread nor an owner was given.
        InvalidOptionError: An option of a call has a value that it cannot have; at construction
            that is a `pydantic.ValidationError` with the same text.
        EmbedderError: The query could not be embedded.
    """

    memory: SemanticRecall
    """The memory; one for all users."""
    k: int | None = None
    """How many documents at most; None: the memory's `top_k`."""
    thread_id: str | None = None
    """Fixes the current thread."""
    resource_id: str | None = None
    """Fixes the owner."""
    neighbours: Literal["metadata", "page", "none"] = "metadata"
    """Where the messages around a hit go: a list in `metadata["neighbours"]` (default), into the
    page with the hit, a line each, or nowhere."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of `RecallOptions` on top of the memory's, for every call."""

    _said: bool = PrivateAttr(default=False)

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's signature
        """Check the options once, rather than at the first question."""
        super().model_post_init(context)
        self._overrides(self.k, {})

    def invoke(
        self,
        input: str,
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ANN401 - the base class's signature
    ) -> list[Document]:
        """Return documents; see `BaseRetriever.invoke`.

        Args:
            input: The query.
            config: May hold `thread_id`, `resource_id` or `user_id` in "configurable".
            **kwargs: `k`, `thread_id`, `resource_id`, or any option of `RecallOptions`.
        """
        return super().invoke(input, config, **self._with_ids(config, kwargs))

    async def ainvoke(
        self,
        input: str,
        config: RunnableConfig | None = None,
        **kwargs: Any,  # noqa: ANN401 - the base class's signature
    ) -> list[Document]:
        """Do what `invoke` does, without blocking the event loop."""
        return await super().ainvoke(input, config, **self._with_ids(config, kwargs))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> list[Document]:
        options = self._scoped(self._overrides(k, overrides), thread_id, resource_id)
        recall = self.memory.recall(query, thread_id=thread_id, resource_id=resource_id, **options)
        return self._documents(recall, options)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> list[Document]:
        options = self._scoped(self._overrides(k, overrides), thread_id, resource_id)
        recall = await self.memory.arecall(
            query, thread_id=thread_id, resource_id=resource_id, **options
        )
        return self._documents(recall, options)

    def _get_ls_params(self, **kwargs: Any) -> LangSmithRetrieverParams:  # noqa: ANN401
        params = super()._get_ls_params(**kwargs)
        params["ls_vector_store_provider"] = self.memory.id
        embedder = self.memory.embedder_name
        if embedder is not None:
            # A fingerprint begins with the family: "wordllama-l2...", "langchain:...", "hash-1-64".
            params["ls_embedding_provider"] = re.split(r"\W", embedder, maxsplit=1)[0]
            params["ls_embedding_model"] = embedder
        return params

    def _with_ids(self, config: RunnableConfig | None, kwargs: dict[str, Any]) -> dict[str, Any]:
        ids = resolve(
            ensure_config(config).get("configurable", {}),
            thread_id=kwargs.get("thread_id") or self.thread_id,
            resource_id=kwargs.get("resource_id") or self.resource_id,
        )
        return {**kwargs, "thread_id": ids.thread_id, "resource_id": ids.resource_id}

    def _overrides(self, k: int | None, overrides: RecallOverrides) -> RecallOverrides:
        merged = cast("RecallOverrides", {**self.options, **overrides})
        wanted = self.k if k is None else k
        if wanted is not None:
            merged["top_k"] = wanted
        if self.neighbours == "none":
            merged["message_range"] = 0
        self.memory.options.replace(**merged)
        return merged

    def _scoped(
        self, overrides: RecallOverrides, thread_id: str | None, resource_id: str | None
    ) -> RecallOverrides:
        wanted: ScopeKind = overrides.get("scope", self.memory.options.scope)
        if wanted == "resource" and resource_id is None and thread_id is not None:
            if not self._said:
                self._said = True
                self.memory.settings.logger.warning(
                    "%s: no resource id was given: only the thread itself is searched",
                    self.get_name(),
                )
            return {**overrides, "scope": "thread"}
        return overrides

    def _documents(self, recall: Recall, options: RecallOverrides) -> list[Document]:
        around = MessageRange.of(options.get("message_range", self.memory.options.message_range))
        windows = _windows(recall, around)
        return [self._document(hit, windows[_identity(hit)]) for hit in recall.hits]

    def _document(self, hit: RecalledMessage, window: Sequence[RecalledMessage]) -> Document:
        message = hit.message
        metadata: dict[str, Any] = {
            "thread_id": message.thread_id,
            "resource_id": message.resource_id,
            "role": message.role,
            "name": message.name,
            "created_at": message.created_at.isoformat(),
            "score": hit.score,
            "dense": hit.dense,
            "lexical": hit.lexical,
            "source": hit.source,
            "metadata": dict(message.metadata),
        }
        page = message.text
        if self.neighbours == "page":
            page = "\n".join(map(_line, window))
        elif self.neighbours == "metadata":
            metadata["neighbours"] = [_neighbour(found) for found in window if found is not hit]
        return Document(page_content=page, id=message.id, metadata=metadata)


_Identity = tuple[str | None, str, str]


def _identity(found: RecalledMessage) -> _Identity:
    message = found.message
    return message.resource_id, message.thread_id, message.id


def _windows(recall: Recall, around: MessageRange) -> dict[_Identity, list[RecalledMessage]]:
    """Return for each hit its neighbours and itself, in the order of their thread."""
    threads: dict[tuple[str | None, str], list[RecalledMessage]] = {}
    for found in recall.messages:
        threads.setdefault(_identity(found)[:2], []).append(found)
    return {
        _identity(found): thread[max(0, place - around.before) : place + around.after + 1]
        for thread in threads.values()
        for place, found in enumerate(thread)
        if found.is_hit
    }


def _line(found: RecalledMessage) -> str:
    return f"{found.message.name or found.message.role}: {found.message.text}"


def _neighbour(found: RecalledMessage) -> dict[str, Any]:
    message = found.message
    return {
        "id": message.id,
        "role": message.role,
        "name": message.name,
        "text": message.text,
        "created_at": message.created_at.isoformat(),
    }
