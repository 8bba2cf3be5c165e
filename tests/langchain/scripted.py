"""A chat model that follows a script and refuses what OpenAI or Anthropic would refuse."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr

Step: TypeAlias = "str | AIMessage | Exception | Callable[[list[BaseMessage]], AIMessage]"


class RequestRefusedError(ValueError):
    """What a provider answers with status 400."""


def refusals(messages: Sequence[BaseMessage]) -> list[str]:
    """Return why OpenAI or Anthropic would refuse the request; empty when they would not."""
    found = []
    systems = [i for i, message in enumerate(messages) if isinstance(message, SystemMessage)]
    if systems not in ([], [0]):
        found.append(f"system messages at {systems}")
    talk = messages[1:] if systems[:1] == [0] else messages
    if not talk or not isinstance(talk[0], HumanMessage):
        found.append("the conversation does not start with a user message")
    elif not isinstance(talk[-1], (HumanMessage, ToolMessage)):
        found.append("the conversation ends with an answer")
    for message in messages:
        if not isinstance(message, (HumanMessage, AIMessage, SystemMessage, ToolMessage)):
            found.append(f"role {message.type}")
        elif not isinstance(message, ToolMessage) and _is_blank(message):
            found.append(f"blank {message.type} message")
        str(message.text).encode()  # a lone surrogate raises, as in every HTTP client
    return [*found, *_tool_refusals(talk)]


def _is_blank(message: BaseMessage) -> bool:
    if isinstance(message, AIMessage) and message.tool_calls:
        return False
    if isinstance(message.content, str):
        return not message.content.strip()
    texts = [b["text"] for b in message.content if isinstance(b, dict) and b.get("type") == "text"]
    return not message.content or any(not text.strip() for text in texts)


def _tool_refusals(talk: Sequence[BaseMessage]) -> list[str]:
    found = []
    awaited: set[str | None] = set()
    for message in talk:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in awaited:
                found.append(f"result of {message.tool_call_id} without its call")
            awaited.discard(message.tool_call_id)
            continue
        if awaited:
            found.append(f"calls {awaited} without results")
        awaited = set()
        if isinstance(message, AIMessage):
            awaited = {call["id"] for call in message.tool_calls}
    return [*found, *([f"calls {awaited} without results"] if awaited else [])]


class ScriptedModel(BaseChatModel):
    """Answers with the steps of its script, then with "answer to <last user message>".

    `requests` are the messages of each call, as they were given. A request that a provider would
    refuse raises, unless `strict` is False.
    """

    steps: list[Any] = Field(default_factory=list)
    strict: bool = True
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @classmethod
    def of(cls, *steps: Step, strict: bool = True) -> ScriptedModel:
        """Return a model with that script."""
        return cls(steps=list(steps), strict=strict)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """What each call was given."""
        return self._requests

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=[str(tool) for tool in tools], **kwargs)

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        with self._lock:
            self._requests.append([message.model_copy(deep=True) for message in messages])
            step = self.steps.pop(0) if self.steps else None
        if self.strict and (why := refusals(messages)):
            raise RequestRefusedError("; ".join(why))
        if step is None:
            asked = [message.text for message in messages if isinstance(message, HumanMessage)]
            step = f"answer to {asked[-1] if asked else 'nothing'}"
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            step = AIMessage(step)
        elif not isinstance(step, AIMessage):
            step = step(messages)
        return step.model_copy(update={"id": step.id or f"lc_run--{uuid4()}"})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        calls = AIMessageChunk(
            content="",
            id=answer.id,
            tool_call_chunks=[
                {
                    "name": call["name"],
                    "args": json.dumps(call["args"]),
                    "id": call["id"],
                    "index": i,
                    "type": "tool_call_chunk",
                }
                for i, call in enumerate(answer.tool_calls)
            ],
        )
        for word in [AIMessageChunk(content=w, id=answer.id) for w in _words(answer)] + [calls]:
            chunk = ChatGenerationChunk(message=word)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(word.text), chunk=chunk)
            yield chunk


def calling(*calls: tuple[str, dict[str, Any]], text: str = "", start: int = 1) -> AIMessage:
    """Return an answer that calls tools: pairs of name and arguments."""
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": f"call_{i}"}
            for i, (name, args) in enumerate(calls, start)
        ],
    )


def _words(answer: AIMessage) -> list[str]:
    words = str(answer.text).split(" ")
    return [word if i == 0 else f" {word}" for i, word in enumerate(words)]
