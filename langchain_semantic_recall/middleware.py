"""Semantic recall for agents made with `create_agent`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from langchain.agents.middleware import (
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from typing_extensions import Unpack

from langchain_semantic_recall.ids import Ids, resolve
from langchain_semantic_recall.injecting import Insert, Prompt, inject, query_message
from langchain_semantic_recall.messages import text_of
from langchain_semantic_recall.recalling import PromptRecaller, Question
from langchain_semantic_recall.run_config import ConfigAware
from langchain_semantic_recall.turn_cache import Turn, TurnCache
from langchain_semantic_recall.turns import Fingerprint, current_turn, worth_storing
from semantic_recall.errors import InvalidIdError, InvalidOptionError
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.turn import aguarded, guarded
from semantic_recall.types import Message

State: TypeAlias = "AgentState[Any]"
Request: TypeAlias = "ModelRequest[Any]"
Response: TypeAlias = "ModelResponse[Any]"

_TOOL_NODE: Final = "tools"


@dataclass(frozen=True, slots=True)
class _Run:
    """Where a hook runs."""

    ids: Ids
    around: tuple[str, ...]
    """The nodes that the agent itself runs in, outermost first; () for an agent of its own."""


@dataclass(frozen=True, slots=True)
class _New:
    """What a turn has that is not stored yet."""

    turn: Turn
    messages: Sequence[Message] = ()
    fingerprints: Sequence[Fingerprint] = ()

    def done(self, stored: object) -> None:
        """Note that it is stored; None: it failed, and the next hook tries again."""
        if stored is not None:
            self.turn.stored.update(self.fingerprints)


class SemanticRecallMiddleware(ConfigAware):
    """Recalls before each model call, and stores what the user and the model said.

    The user's last message is the query, once per message: the tool loop sees the same bytes.
    Messages of other threads go as one block into the system message, those of this thread that
    the prompt no longer holds before the live messages. Nothing of it is kept in the agent's state.
    Whatever fails or takes longer than `Settings.timeout` is logged, and the answer goes on.

    The thread and its owner come from the arguments, a LangGraph server's authenticated user, the
    run's context or `config["configurable"]`, in this order (`thread_id`; `resource_id` or
    `user_id`). Without an owner only the thread itself is searched.

    Args:
        memory: The memory; one for all users.
        thread_id: Fixes the thread.
        resource_id: Fixes the owner of the threads.
        insert: Where the block of other threads goes: "system" (default) or "user", a user
            message of its own before the user's last one.
        read_only: Recall and store nothing.
        store_tools: Also store tool calls and results. They are kept for the history and never
            embedded or recalled.
        store_nested: Store the turns of an agent that runs inside another one. None (default):
            not when a tool called it, as its thread is the outer agent's conversation.
        name: Tells several of these in one agent apart.
        **overrides: Any option of `RecallOptions`, on top of the memory's.

    Raises:
        InvalidOptionError: An argument or option has a value that it cannot have.
    """

    def __init__(
        self,
        memory: SemanticRecall,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        insert: Insert = "system",
        read_only: bool = False,
        store_tools: bool = False,
        store_nested: bool | None = None,
        name: str = "SemanticRecallMiddleware",
        **overrides: Unpack[RecallOverrides],
    ) -> None:
        super().__init__()
        if insert not in get_args(Insert):
            raise InvalidOptionError(f'insert must be "system" or "user", not {insert!r}')
        self._memory = memory
        self._recaller = PromptRecaller(memory, overrides)
        self._fixed = {"thread_id": thread_id, "resource_id": resource_id}
        self._insert: Insert = insert
        self._read_only = read_only
        self._store_tools = store_tools
        self._store_nested = store_nested
        self._name = name
        self._turns = TurnCache()
        self._said: set[str] = set()

    @property
    def name(self) -> str:
        """What the agent calls this middleware."""
        return self._name

    # -- recalling ------------------------------------------------------------------------------
    def wrap_model_call(self, request: Request, handler: Callable[[Request], Response]) -> Response:
        """Add what is recalled to the request."""
        run = self._run(self.configurable(request.state), request.runtime)
        question = self._question(request, run)
        recall = None
        if question is not None:
            turn = self._turns.get(_key(run.ids, request.messages))
            if turn.recall is None or not self._recaller.still_holds(turn.recall):
                turn.recall = self._recaller.recall(question)
            recall = turn.recall
        self._store(request.state, run, final=False)
        return handler(self._injected(request, recall))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Add what is recalled to the request."""
        run = self._run(self.configurable(request.state), request.runtime)
        question = self._question(request, run)
        recall = None
        if question is not None:
            turn = self._turns.get(_key(run.ids, request.messages))
            if turn.recall is None or not await self._recaller.astill_holds(turn.recall):
                turn.recall = await self._recaller.arecall(question)
            recall = turn.recall
        await self._astore(request.state, run, final=False)
        return await handler(self._injected(request, recall))

    def _question(self, request: Request, run: _Run) -> Question | None:
        wanted = self._recaller.scope
        scope = run.ids.scope(wanted)
        if scope is None:
            self._say("no thread or resource id was given: nothing is recalled")
        elif scope != wanted:
            self._say("no resource id was given: only the thread itself is searched")
        return self._recaller.question(run.ids, request.messages)

    def _injected(self, request: Request, recall: Recall | None) -> Request:
        if not recall:
            return request
        before = Prompt(request.system_message, list(request.messages))
        prompt = inject(before, recall, self._insert)
        # `list` is invariant, and the request's type names each message class.
        messages: list[Any] = list(prompt.messages)
        return request.override(system_message=prompt.system, messages=messages)

    # -- storing --------------------------------------------------------------------------------
    # LangGraph fills `config` in by its name.
    def after_agent(  # type: ignore[override]
        self, state: State, runtime: Runtime[Any], config: RunnableConfig
    ) -> dict[str, Any] | None:
        """Store the turn."""
        run = self._run(config.get("configurable", {}), runtime)
        self._store(state, run, final=True)
        self._turns.end(_key(run.ids, state.get("messages") or []))
        return None

    async def aafter_agent(  # type: ignore[override]
        self, state: State, runtime: Runtime[Any], config: RunnableConfig
    ) -> dict[str, Any] | None:
        """Store the turn."""
        run = self._run(config.get("configurable", {}), runtime)
        await self._astore(state, run, final=True)
        self._turns.end(_key(run.ids, state.get("messages") or []))
        return None

    def _store(self, state: State, run: _Run, *, final: bool) -> None:
        new = self._unstored(state, run, final=final)
        if new.messages:
            stored = guarded(
                lambda: self._memory.remember(new.messages, background=not final),
                timeout=self._memory.settings.timeout,
                logger=self._logger,
                otherwise=None,
                what="storing",
            )
            new.done(stored)

    async def _astore(self, state: State, run: _Run, *, final: bool) -> None:
        new = self._unstored(state, run, final=final)
        if new.messages:
            stored = await aguarded(
                self._memory.aremember(new.messages, background=not final),
                timeout=self._memory.settings.timeout,
                logger=self._logger,
                otherwise=None,
                what="storing",
            )
            new.done(stored)

    def _unstored(self, state: State, run: _Run, *, final: bool) -> _New:
        """Return what is new since the last call."""
        messages: Sequence[BaseMessage] = state.get("messages") or []
        turn = self._turns.get(_key(run.ids, messages))
        thread_id = run.ids.thread_id
        if not self._stores(run) or thread_id is None:
            return _New(turn)
        kept = worth_storing(
            current_turn(messages),
            tools=self._store_tools,
            structured=state.get("structured_response") if final else None,
        )
        new = [each for each in kept if each.fingerprint not in turn.stored]
        return _New(
            turn,
            [each.as_stored(thread_id=thread_id, resource_id=run.ids.resource_id) for each in new],
            [each.fingerprint for each in new],
        )

    def _stores(self, run: _Run) -> bool:
        if self._read_only:
            return False
        if run.ids.thread_id is None:
            self._say("no thread id was given: nothing is stored")
        if not run.around:
            return True
        return _TOOL_NODE not in run.around if self._store_nested is None else self._store_nested

    # -- where it runs --------------------------------------------------------------------------
    def _run(self, configurable: Mapping[str, Any], runtime: Runtime[Any]) -> _Run:
        namespace = configurable.get("checkpoint_ns")
        # Older versions of LangGraph have none.
        info = getattr(runtime, "execution_info", None)
        if info is not None:
            # Where Python 3.10 shows the config of the outer agent, this is still the inner one's.
            namespace = info.checkpoint_ns
        try:
            ids = resolve(configurable, runtime.context, **self._fixed)
        except InvalidIdError as error:
            self._say(f"memory is not used: {error}")
            ids = Ids()
        return _Run(ids, _nodes_around(str(namespace or "")))

    @property
    def _logger(self) -> logging.Logger:
        return self._memory.settings.logger

    def _say(self, what: str) -> None:
        """Log a warning, each text once: it would come with every model call."""
        if what not in self._said:
            self._said.add(what)
            self._logger.warning("%s: %s", self._name, what)


def _nodes_around(namespace: str) -> tuple[str, ...]:
    """Return the node names in a checkpoint namespace ("node:id|node:id") without the last."""
    return tuple(node.partition(":")[0] for node in namespace.split("|")[:-1])


def _key(ids: Ids, messages: Sequence[BaseMessage]) -> Hashable:
    query = query_message(messages)
    return ids, None if query is None else (query.id, text_of(query))
