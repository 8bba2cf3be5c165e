"""Semantic recall for LCEL chains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

from langchain_core._api.deprecation import suppress_langchain_deprecation_warning
from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tracers.schemas import Run
from pydantic import PrivateAttr

from langchain_semantic_recall.chat_history import SemanticRecallChatMessageHistory
from langchain_semantic_recall.ids import Ids, resolve
from langchain_semantic_recall.injecting import Prompt, inject, memory_messages
from langchain_semantic_recall.messages import (
    complete_tool_turns,
    from_langchain,
    is_conversation,
    says_nothing,
    to_langchain,
)
from langchain_semantic_recall.recalling import PromptRecaller, Question
from langchain_semantic_recall.turns import current_turn
from semantic_recall.errors import ConfigurationError
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.turn import aguarded, guarded
from semantic_recall.types import Message

HistoryFactory: TypeAlias = Callable[..., SemanticRecallChatMessageHistory]

_HISTORY: Final = "message_history"
_THREAD: Final = ConfigurableFieldSpec(
    id="thread_id", annotation=str, name="Thread", description="The conversation."
)
_RESOURCE: Final = ConfigurableFieldSpec(
    id="resource_id", annotation=str, name="Resource", description="The owner of the thread."
)


class RunnableWithSemanticRecall(RunnableWithMessageHistory):
    """Gives a chain its thread's recent messages and what else matters of the past.

    The current input is the query. A chain that takes a list of messages is given: its system
    message with the block of other threads, recalled messages of this thread, the recent ones,
    the input. One with a `MessagesPlaceholder` (`history_messages_key`) is given the same there,
    with the block as a user message, as the prompt has its own system message. Afterwards the
    user's new messages and the answer are stored, and nothing else. Recall and storing never fail
    a call: what goes wrong is logged.

    LangChain plans to remove the base class in 2.0; new agents use `SemanticRecallMiddleware`.

    Args:
        runnable: The chain or model.
        get_session_history: The memory (the config then names `thread_id`, or `session_id`, and
            `resource_id` or `user_id`), or a function that makes the history of a session.
        input_messages_key: The key of the input messages, if the chain takes a dict.
        output_messages_key: The key of the answer, if the chain returns a dict.
        history_messages_key: The key of a separate placeholder for past messages.
        history_factory_config: The config keys that the function takes.
        last_messages: How many recent messages of the thread are shown.
        recall_options: Options on top of the memory's.
        **kwargs: For the base class.

    Raises:
        InvalidOptionError: An option has a value that it cannot have.
    """

    _overrides: RecallOverrides = PrivateAttr(default_factory=lambda: RecallOverrides())
    _last: int = PrivateAttr(default=50)

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        get_session_history: SemanticRecall | HistoryFactory,
        *,
        input_messages_key: str | None = None,
        output_messages_key: str | None = None,
        history_messages_key: str | None = None,
        history_factory_config: Sequence[ConfigurableFieldSpec] | None = None,
        last_messages: int = 50,
        recall_options: RecallOverrides | None = None,
        **kwargs: Any,  # noqa: ANN401 - the base class's
    ) -> None:
        overrides: RecallOverrides = {**(recall_options or {})}
        RecallOptions().replace(**overrides)
        factory: HistoryFactory
        if isinstance(get_session_history, SemanticRecall):
            factory = _FromMemory(get_session_history)
            history_factory_config = (_THREAD, _RESOURCE)
        else:
            factory = get_session_history
        with suppress_langchain_deprecation_warning():
            super().__init__(
                runnable,
                factory,
                input_messages_key=input_messages_key,
                output_messages_key=output_messages_key,
                history_messages_key=history_messages_key,
                history_factory_config=history_factory_config,
                **kwargs,
            )
        self._overrides = overrides
        self._last = last_messages

    def _merge_configs(self, *configs: RunnableConfig | None) -> RunnableConfig:
        """Make the history of this call's session, and what the call knows about it."""
        merged = super()._merge_configs(*configs, self._ids(configs))
        history = merged["configurable"][_HISTORY]
        if not isinstance(history, SemanticRecallChatMessageHistory):
            raise ConfigurationError(
                "get_session_history must return a SemanticRecallChatMessageHistory, "
                f"not {type(history).__name__}"
            )
        merged["configurable"][_HISTORY] = _Call(history, self._overrides)
        return merged

    def _ids(self, configs: Sequence[RunnableConfig | None]) -> RunnableConfig:
        if not isinstance(self.get_session_history, _FromMemory):
            return {}
        configurable: dict[str, Any] = {}
        for config in (self.config, *configs):
            configurable.update((config or {}).get("configurable", {}))
        ids = resolve(configurable)
        given = {"resource_id": ids.resource_id}
        if ids.thread_id is not None:  # without one, the base class says which key is missing
            given["thread_id"] = ids.thread_id
        return {"configurable": given}

    def _enter_history(self, value: Any, config: RunnableConfig) -> list[BaseMessage]:  # noqa: ANN401
        call, live = self._entered(value, config)
        window = self._whole_turns(call.history.last(self._last))
        question = call.question(live, window)
        recall = None if question is None else call.recaller.recall(question)
        return self._assembled(live, window, recall)

    async def _aenter_history(self, value: Any, config: RunnableConfig) -> list[BaseMessage]:  # noqa: ANN401
        call, live = self._entered(value, config)
        window = self._whole_turns(await asyncio.to_thread(call.history.last, self._last))
        question = call.question(live, window)
        recall = None if question is None else await call.recaller.arecall(question)
        return self._assembled(live, window, recall)

    def _exit_history(self, run: Run, config: RunnableConfig) -> None:
        call: _Call = config["configurable"][_HISTORY]
        messages = call.new(self._answers(run, call))
        memory = call.history.memory
        guarded(
            lambda: memory.remember(messages),
            timeout=memory.settings.timeout,
            logger=memory.settings.logger,
            otherwise=None,
            what="storing",
        )

    async def _aexit_history(self, run: Run, config: RunnableConfig) -> None:
        call: _Call = config["configurable"][_HISTORY]
        messages = call.new(self._answers(run, call))
        memory = call.history.memory
        await aguarded(
            memory.aremember(messages),
            timeout=memory.settings.timeout,
            logger=memory.settings.logger,
            otherwise=None,
            what="storing",
        )

    def _entered(self, value: Any, config: RunnableConfig) -> tuple[_Call, list[BaseMessage]]:  # noqa: ANN401
        call: _Call = config["configurable"][_HISTORY]
        try:
            call.live = self._get_input_messages(value)
        except KeyError as error:
            raise ConfigurationError(
                f"the input has no {error}: name the key of its messages with input_messages_key"
            ) from error
        return call, call.live

    def _whole_turns(self, window: list[Message]) -> list[Message]:
        """Return recent messages from a user's on: what was cut off left answers alone."""
        if len(window) < self._last:
            return window
        users = (place for place, message in enumerate(window) if message.role == "user")
        return window[next(users, len(window)) :]

    def _assembled(
        self, live: list[BaseMessage], window: Sequence[Message], recall: Recall | None
    ) -> list[BaseMessage]:
        past = [chat for message in window if not says_nothing(chat := to_langchain(message))]
        front = [message for message in live if isinstance(message, SystemMessage)]
        own = {id(message) for message in live}
        talk = [message for message in live if not isinstance(message, SystemMessage)]
        whole = complete_tool_turns([*past, *talk])
        if self.history_messages_key:
            past = [message for message in whole if id(message) not in own]
            return [*(memory_messages(recall) if recall else ()), *past]
        prompt = Prompt(None, [*front, *whole])
        return (inject(prompt, recall) if recall else prompt).whole

    def _answers(self, run: Run, call: _Call) -> list[BaseMessage]:
        caught = _Caught()
        try:
            # The base class reads the outputs of chains, models and streams. It is shown no
            # inputs: what it would read back of them has lost whatever its loader does not know.
            super()._exit_history(
                cast("Run", _Outputs(run.outputs)), {"configurable": {_HISTORY: caught}}
            )
        except (KeyError, ValueError) as error:
            call.history.memory.settings.logger.warning(
                "%s: the answer is not stored, as it was not read to its end or "
                "output_messages_key does not name it: %r",
                self.get_name(),
                error,
            )
        return caught.messages


class _Call:
    """What one call knows about its session."""

    def __init__(
        self, history: SemanticRecallChatMessageHistory, overrides: RecallOverrides
    ) -> None:
        self.history = history
        self.recaller = PromptRecaller(history.memory, overrides)
        self.live: list[BaseMessage] = []

    def question(self, live: Sequence[BaseMessage], window: Sequence[Message]) -> Question | None:
        ids = Ids(self.history.thread_id, self.history.resource_id)
        return self.recaller.question(ids, live, [message.id for message in window])

    def new(self, answers: Sequence[BaseMessage]) -> list[Message]:
        """Return what the call added to the conversation, as it is stored."""
        return [
            from_langchain(
                message,
                thread_id=self.history.thread_id,
                resource_id=self.history.resource_id,
            )
            for message in [*current_turn(self.live), *answers]
            if is_conversation(message) and not isinstance(message, SystemMessage)
        ]


class _FromMemory:
    """Makes the history of a session of one memory."""

    def __init__(self, memory: SemanticRecall) -> None:
        self._memory = memory

    def __call__(self, thread_id: str, resource_id: str | None) -> SemanticRecallChatMessageHistory:
        return SemanticRecallChatMessageHistory(self._memory, thread_id, resource_id)


class _Outputs:
    """A run without inputs, for the base class."""

    inputs: tuple[BaseMessage, ...] = ()

    def __init__(self, outputs: dict[str, Any] | None) -> None:
        self.outputs = outputs


class _Caught:
    """A history that the base class adds to."""

    def __init__(self) -> None:
        self.messages: list[BaseMessage] = []

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self.messages = list(messages)
