"""Recall inside LlamaIndex's own `Memory`: a block, and a `Memory` that indexes every message."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock, Memory
from llama_index.core.storage.chat_store.base_db import MessageStatus
from pydantic import SkipValidation
from typing_extensions import Self

from llamaindex_semantic_recall._options import overrides
from llamaindex_semantic_recall._turn_cache import TurnCache
from llamaindex_semantic_recall.history import protect
from llamaindex_semantic_recall.messages import text_of, to_message
from llamaindex_semantic_recall.thread import Thread
from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError, StoreError
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.result import Recall
from semantic_recall.tokens import count_tokens
from semantic_recall.turn import aguarded
from semantic_recall.types import Message

_MAX_SHOWN = 32
_SLACK = 20
"""LlamaIndex counts with another vocabulary: a cut block is made a twentieth smaller."""


class SemanticRecallMemoryBlock(BaseMemoryBlock[str]):
    """A block that recalls what matters for the user's last message.

        Memory.from_defaults(
            session_id="chat-7",
            memory_blocks=[SemanticRecallMemoryBlock(recall, resource_id="user-1")],
        )

    `Memory` hands messages to its blocks only when its buffer overflows, after some 21,000
    tokens by default; use `IndexingMemory` to have every message indexed at once. One block may
    serve several sessions: the session is an argument of each call.

    Args:
        recall: The opened memory.
        **data: The fields below.
    """

    name: str = "semantic_recall"
    description: str | None = "What was said earlier that matters for the user's message."
    priority: int = 1
    """0 is never cut; 1 and more when `Memory` runs out of tokens, the lowest first."""
    resource_id: str | None = None
    """Whose conversations are searched and stored. Without one, only the session's."""
    thread_id: str | None = None
    """The conversation. Default: the `session_id` of the `Memory`."""
    options: SkipValidation[RecallOptions | None] = Field(default=None, exclude=True)
    """How to recall. Default: the options of `recall`."""

    _recall: SemanticRecall = PrivateAttr()
    _overrides: RecallOverrides = PrivateAttr()
    _turns: TurnCache[Recall] = PrivateAttr()
    _shown: OrderedDict[str, Recall] = PrivateAttr(default_factory=OrderedDict)

    def __init__(self, recall: SemanticRecall, /, **data: Any) -> None:  # noqa: ANN401 - pydantic's
        super().__init__(**data)
        self._recall = recall
        self._overrides = overrides(self.options or recall.options, self.resource_id)
        self._turns = TurnCache(recall.settings.timeout + 1.0)

    async def _aget(
        self,
        messages: list[ChatMessage] | None = None,
        session_id: str | None = None,
        **block_kwargs: Any,  # noqa: ANN401 - what the engine passes to `get`
    ) -> str:
        """Return the prompt block for the last user message, "" when nothing is recalled."""
        active = list(messages or ())
        thread_id = self.thread_id or session_id
        place = _question_place(active)
        if place is None:
            return ""
        query = text_of(active[place])
        key = (thread_id, query, place)
        recall = await self._turns.aget(key, partial(self._look_up, query, thread_id, active))
        block = protect(recall.block("all"))
        self._remember_shown(block, recall)
        return block

    async def _look_up(
        self, query: str, thread_id: str | None, active: Sequence[ChatMessage]
    ) -> Recall:
        known = set(self._overrides["exclude_ids"])
        if thread_id is not None:
            told = {text_of(chat) for chat in active}
            known.update(m.id for m in await self._recent(thread_id, len(active)) if m.text in told)
        chosen: RecallOverrides = {**self._overrides, "exclude_ids": known}
        return await self._recall.arecall_for_turn(
            query, thread_id=thread_id, resource_id=self.resource_id, **chosen
        )

    async def _recent(self, thread_id: str, last: int) -> list[Message]:
        settings = self._recall.settings
        nothing: list[Message] = []
        return await aguarded(
            self._recall.ahistory(thread_id, self.resource_id, last=last),
            timeout=settings.timeout,
            logger=settings.logger,
            otherwise=nothing,
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages that leave the buffer; a failing database is a warning in the log.

        Raises:
            ConfigurationError: There is neither a `thread_id` nor a session.
        """
        new = [self._as_message(chat) for chat in messages]
        if not new:
            return
        try:
            await self._recall.aremember(new, background=True)
        except StoreError as error:
            self._recall.settings.logger.warning("messages were not stored: %s", error)

    def _as_message(self, chat: ChatMessage) -> Message:
        # `BaseMemoryBlock.aput` writes the session into the messages; there is no other way.
        kwargs = {
            key: value for key, value in chat.additional_kwargs.items() if key != "session_id"
        }
        thread_id = self.thread_id or chat.additional_kwargs.get("session_id")
        if not isinstance(thread_id, str):
            raise ConfigurationError(
                "SemanticRecallMemoryBlock needs a thread_id when it is used without a Memory"
            )
        plain = chat.model_copy(update={"additional_kwargs": kwargs})
        return to_message(plain, thread_id=thread_id, resource_id=self.resource_id)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return a smaller block: whole messages are left out, the least important first."""
        recall = self._shown.get(content)
        room = count_tokens(content) - tokens_to_truncate
        if recall is None or room <= 0:
            return None
        block = protect(recall.block("all", max_tokens=room - room // _SLACK))
        self._remember_shown(block, recall)
        return block or None

    def _remember_shown(self, block: str, recall: Recall) -> None:
        self._shown[block] = recall
        while len(self._shown) > _MAX_SHOWN:
            self._shown.popitem(last=False)


def _question_place(active: Sequence[ChatMessage]) -> int | None:
    """Return where the user's last message stands; the same in every `get` of a turn.

    `Memory` adds its `input` to messages that may end with it already.
    """
    users = [i for i, chat in enumerate(active) if chat.role is MessageRole.USER]
    if not users:
        return None
    if len(users) > 1 and text_of(active[users[-2]]) == text_of(active[users[-1]]):
        between = active[users[-2] + 1 : users[-1]]
        if not any(chat.role is MessageRole.ASSISTANT and text_of(chat) for chat in between):
            return users[-2]
    return users[-1]


class IndexingMemory(Memory):
    """LlamaIndex's `Memory` with a recall block, and with every message indexed when it is put.

        memory = IndexingMemory.from_recall(recall, session_id="chat-7", resource_id="user-1")

    The buffer, its token limit and other blocks work as in `Memory`; `reset` also deletes the
    session from the recall memory. A workflow's `Context` cannot carry a `Memory` (LlamaIndex
    writes none down): pass `memory=` to every run, or use `SemanticRecallMemory`.
    """

    _thread: Thread | None = PrivateAttr(default=None)

    def _indexed(self) -> Thread:
        if self._thread is None:
            raise ConfigurationError("make an IndexingMemory with IndexingMemory.from_recall(...)")
        return self._thread

    @classmethod
    def from_recall(
        cls,
        recall: SemanticRecall,
        *,
        resource_id: str | None = None,
        options: RecallOptions | None = None,
        memory_blocks: Sequence[BaseMemoryBlock[Any]] = (),
        chat_history: Sequence[ChatMessage] | None = None,
        **kwargs: Any,  # noqa: ANN401 - those of `Memory.from_defaults`
    ) -> Self:
        """Return a memory.

        Args:
            recall: The opened memory.
            resource_id: Whose conversation it is. Without one, only the session is recalled.
            options: How to recall. Default: the options of `recall`.
            memory_blocks: Further blocks.
            chat_history: What the session holds from the start.
            **kwargs: `session_id` and the rest of `Memory.from_defaults`.
        """
        block = SemanticRecallMemoryBlock(
            recall, resource_id=resource_id, options=options, accept_short_term_memory=False
        )
        memory = cls.from_defaults(memory_blocks=[*memory_blocks, block], **kwargs)
        if not isinstance(memory, cls):
            raise ConfigurationError(f"this LlamaIndex makes a {type(memory).__name__}, not {cls}")
        memory._thread = Thread(recall, memory.session_id, resource_id)
        if chat_history is not None:
            memory.set(list(chat_history))
        return memory

    async def aget(
        self,
        input: str | ChatMessage | None = None,
        **block_kwargs: Any,  # noqa: ANN401 - as in `Memory`
    ) -> list[ChatMessage]:
        """Return the buffer with what the blocks add."""
        if isinstance(input, ChatMessage):
            input = input.content  # `Memory` does not show a message to its blocks
        return await super().aget(input=input, **block_kwargs)

    async def aput(self, message: ChatMessage) -> None:
        """Add a message to the buffer and index it."""
        await self.aput_messages([message])

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Add messages to the buffer and index them."""
        if not messages:
            return  # `Memory` fails on an empty list
        await super().aput_messages(messages)
        await asyncio.to_thread(self._indexed().append, messages)

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Set the buffer, and make it the indexed session; see `SemanticRecallMemory.set`."""
        if messages:
            await super().aset(messages)
        else:
            await super().areset()
        await asyncio.to_thread(self._indexed().replace, messages)

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Empty the buffer; without a `status` the indexed session is deleted as well."""
        await super().areset(status)
        if status is None:
            await asyncio.to_thread(self._indexed().clear)
