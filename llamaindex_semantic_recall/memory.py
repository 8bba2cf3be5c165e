"""The memory of a chat engine or an agent."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    field_serializer,
)
from llama_index.core.memory.types import BaseMemory
from pydantic import SkipValidation
from typing_extensions import Self

from llamaindex_semantic_recall import _registry
from llamaindex_semantic_recall._options import from_json, overrides, to_json
from llamaindex_semantic_recall._turn_cache import TurnCache
from llamaindex_semantic_recall.messages import to_chat_message
from llamaindex_semantic_recall.prompt import (
    Insert,
    Plan,
    compose,
    entries,
    plan,
    question,
)
from llamaindex_semantic_recall.thread import Thread
from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError
from semantic_recall.formatting import PREAMBLE
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.result import Recall
from semantic_recall.tokens import count_tokens
from semantic_recall.types import Message

DEFAULT_TOKEN_LIMIT = 30_000
_FIRST_READ = 64


class SemanticRecallMemory(BaseMemory):
    """Chat memory that also brings back what matters from earlier in the thread and from others.

    It works with every chat engine (`memory=`) and agent (`agent.run(..., memory=memory)`). All
    messages are stored at once and durably; `get` returns what was recalled for the user's last
    message, then the recent history, together within `token_limit`.

        recall = SemanticRecall.open("./memory")
        memory = SemanticRecallMemory(recall, thread_id="chat-7", resource_id="user-1")
        engine = SimpleChatEngine.from_defaults(llm=llm, memory=memory)

    Recall and storing fail open: the answer goes on without them, and a warning has the cause.

    Args:
        recall: The opened memory; one serves all users and threads of a process.
        **data: The fields below.

    Raises:
        ConfigurationError: An id or option cannot be used.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    thread_id: str = Field(default_factory=lambda: uuid.uuid4().hex)
    """The conversation. Default: a new one."""
    resource_id: str | None = None
    """Whose conversation it is. Without one, only this thread is recalled."""
    token_limit: int = DEFAULT_TOKEN_LIMIT
    """The most tokens that `get` returns, images and tool calls included. When space is short
    recall shrinks first, then history; the last turn always stays."""
    insert: Insert = "system"
    """Where the record of other conversations goes: the "system" message, or the "user" message:
    for models that take one system message only, for prompt caching, and for a `ReActAgent`
    without a system prompt, which drops memory's."""
    options: SkipValidation[RecallOptions | None] = None
    """How to recall. Default: the options of `recall`."""

    _thread: Thread = PrivateAttr()
    _instance_id: str = PrivateAttr()
    _overrides: RecallOverrides = PrivateAttr()
    _turns: TurnCache[Recall] = PrivateAttr()
    _tokens: dict[tuple[str, int], int] = PrivateAttr(default_factory=dict)
    _read: int = PrivateAttr(default=_FIRST_READ)

    def __init__(self, recall: SemanticRecall, /, **data: Any) -> None:  # noqa: ANN401 - pydantic's
        super().__init__(**data)
        self._thread = Thread(recall, self.thread_id, self.resource_id)
        self._instance_id = uuid.uuid4().hex
        self._overrides = overrides(self.options or recall.options, self.resource_id)
        # A little more than the recall itself may take.
        self._turns = TurnCache(recall.settings.timeout + 1.0)
        _registry.add(recall, self._instance_id, self)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex stores with the memory's fields."""
        return "SemanticRecallMemory"

    @classmethod
    def from_defaults(
        cls,
        recall: SemanticRecall | None = None,
        *,
        chat_history: Sequence[ChatMessage] | None = None,
        **kwargs: Any,  # noqa: ANN401 - the fields
    ) -> Self:
        """Return a memory; `chat_history` replaces what its thread holds.

        Raises:
            ConfigurationError: `recall` is missing, or an id or option cannot be used.
        """
        if recall is None:
            raise ConfigurationError(
                "SemanticRecallMemory needs a memory: from_defaults(SemanticRecall.open(path))"
            )
        memory = cls(recall, **kwargs)
        if chat_history is not None:
            memory.set(list(chat_history))
        return memory

    @property
    def tokenizer_fn(self) -> Callable[[str], Sequence[object]]:
        """What `SimpleChatEngine` counts its system prompt with, to tell `get` the number."""
        return lambda text: range(count_tokens(text))

    # -- reading -----------------------------------------------------
    def get(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: ANN401
        """Return the prompt's messages: recalled ones, then the recent history.

        Args:
            input: The user's message, if it is not stored yet (or stored last).
            **kwargs: `initial_token_count` is taken off the limit; others are ignored.

        Raises:
            AbortTurn: A hook stopped the turn.
        """
        made = None
        while made is None:
            made = self._plan(*self._thread.recent(self._read), input, kwargs)
        recall = self._turns.get(made.question.key, partial(self._look_up, made))
        return compose(made, recall, insert=self.insert, count=count_tokens)

    async def aget(
        self,
        input: str | ChatMessage | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[ChatMessage]:
        """Do what `get` does, without blocking the event loop."""
        made = None
        while made is None:
            stored, more = await self._thread.arecent(self._read)
            # In a thread, because the first count of tokens loads a vocabulary.
            made = await asyncio.to_thread(self._plan, stored, more, input, kwargs)
        recall = await self._turns.aget(made.question.key, partial(self._alook_up, made))
        return compose(made, recall, insert=self.insert, count=count_tokens)

    def get_all(self) -> list[ChatMessage]:
        """Return every message of the thread, oldest first.

        Raises:
            StoreError: The database failed.
        """
        return [to_chat_message(message) for message in self._thread.everything()]

    def _plan(
        self,
        stored: Sequence[Message],
        more: bool,
        input: str | ChatMessage | None,
        kwargs: Mapping[str, object],
    ) -> Plan | None:
        """Return the plan, or None when more of the thread must be read for it."""
        count_tokens(PREAMBLE)  # loads the vocabulary here, not within the recall's time limit
        thread = entries(stored, count_tokens, self._tokens)
        texts = {message.id: message.text for message in stored}
        self._tokens = {(entry.id, hash(texts[entry.id])): entry.tokens for entry in thread}
        asked = question(stored, input)
        taken = kwargs.get("initial_token_count")
        made = plan(
            asked,
            thread,
            token_limit=self.token_limit - (taken if isinstance(taken, int) else 0),
            max_recall=self._overrides["max_tokens"],
        )
        if more and len(made.window) == sum(map(len, made.turns)):  # all of it fits
            self._read *= 4
            return None
        return made

    def _look_up(self, made: Plan) -> Recall:
        return self._thread.recall.recall_for_turn(
            made.question.text,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            **self._overrides_for(made),
        )

    async def _alook_up(self, made: Plan) -> Recall:
        return await self._thread.recall.arecall_for_turn(
            made.question.text,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
            **self._overrides_for(made),
        )

    def _overrides_for(self, made: Plan) -> RecallOverrides:
        # The window always holds the user's present message, if it is stored.
        known = {entry.id for entry in made.window}.union(self._overrides["exclude_ids"])
        return {**self._overrides, "exclude_ids": known, "max_tokens": made.recall_budget}

    # -- writing -----------------------------------------------------
    def put(self, message: ChatMessage) -> None:
        """Store a message; what memory itself put into a prompt is left out.

        It is committed before this returns and embedded in the background. If the database
        fails, the message is kept in this object and stored with the next one.

        Raises:
            AbortTurn: The hook `before_store` stopped it.
        """
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages in one transaction; see `put`."""
        self._thread.append(messages)

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Make `messages` the history; what is stored already is neither stored nor embedded again.

        A list that continues the end of the thread keeps what is before it, because chat clients
        send their last messages only. Any other list replaces the thread from the first message
        that differs; an empty one empties it.

        Raises:
            StoreError: The database failed.
            AbortTurn: The hook `before_store` stopped it.
        """
        if self._thread.replace(messages):
            self._turns.clear()

    def reset(self) -> None:
        """Delete the thread: messages, vectors and everything made from them.

        Raises:
            StoreError: The database failed.
        """
        self._thread.clear()
        self._turns.clear()

    # -- the same memory, wherever it is carried ---------------------
    @field_serializer("options")
    def _serialize_options(self, options: RecallOptions | None) -> dict[str, Any] | None:
        return None if options is None else to_json(options)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's
        """Return JSON values that `from_dict` turns into this same memory."""
        return {
            **super().to_dict(**kwargs),
            "instance_id": self._instance_id,
            "memory_id": self._thread.recall.memory_id,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:  # noqa: ANN401 - pydantic's
        """Return the memory that `to_dict` wrote: the same object, or one on the same store.

        Raises:
            ConfigurationError: Its store is not open in this process; see `connect`.
        """
        values = {
            key: value for key, value in {**data, **kwargs}.items() if key in cls.model_fields
        }
        living = _registry.find(data["instance_id"])
        if isinstance(living, cls) and living._is(values, data["memory_id"]):
            return living
        if values["options"] is not None:
            values["options"] = from_json(values["options"])
        memory = cls(_registry.opened(data["memory_id"]), **values)
        memory._instance_id = data["instance_id"]
        _registry.add(memory._thread.recall, memory._instance_id, memory)
        return memory

    def _is(self, values: Mapping[str, Any], memory_id: str) -> bool:
        same = all(getattr(self, key) == values[key] for key in ("thread_id", "resource_id"))
        return same and _registry.serves(self._thread.recall, memory_id)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[dict[str, Any]]]:
        return type(self).from_dict, (self.to_dict(),)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self  # a handle on the stored thread: there is no second one
