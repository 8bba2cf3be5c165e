"""A chat model that follows a script, records its prompts, and refuses what providers refuse."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from typing import Any, TypeAlias

from llama_index.core.base.llms import types
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import ToolSelection
from pydantic import PrivateAttr

HAS_TOOL_BLOCKS = "ToolCallBlock" in dir(types)

Answer: TypeAlias = "str | ChatMessage | Callable[[Sequence[ChatMessage]], ChatMessage]"


def call(name: str, id: str = "c1", **kwargs: Any) -> ChatMessage:
    """An answer that calls a tool, in the form of the installed LlamaIndex."""
    if HAS_TOOL_BLOCKS:
        block = types.ToolCallBlock(tool_call_id=id, tool_name=name, tool_kwargs=kwargs)
        return ChatMessage(role="assistant", blocks=[block])
    function = {"name": name, "arguments": json.dumps(kwargs)}
    return ChatMessage(
        role="assistant", additional_kwargs={"tool_calls": [{"id": id, "function": function}]}
    )


def calls_in(message: ChatMessage) -> list[tuple[str, str, dict[str, Any]]]:
    """The tool calls of a message: id, name and arguments."""
    found = [
        (block.tool_call_id or "", block.tool_name, block.tool_kwargs)
        for block in message.blocks
        if block.block_type == "tool_call" and isinstance(block.tool_kwargs, dict)
    ]
    for item in message.additional_kwargs.get("tool_calls", ()):
        function = item["function"]
        found.append((item["id"], function["name"], json.loads(function["arguments"])))
    return found


class ScriptedLLM(FunctionCallingLLM):
    """Gives its answers one after the other, the last one for ever.

    `prompts` holds copies of all message lists it was given; `texts` the prompts of completions.
    """

    functions: bool = True
    context_window: int = 100_000
    _answers: list[Answer] = PrivateAttr()
    _prompts: list[list[ChatMessage]] = PrivateAttr(default_factory=list)
    _texts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, *answers: Answer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._answers = list(answers) or ["ok"]

    @property
    def prompts(self) -> list[list[ChatMessage]]:
        return self._prompts

    @property
    def texts(self) -> list[str]:
        return self._texts

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(
            context_window=self.context_window,
            is_chat_model=True,
            is_function_calling_model=self.functions,
            model_name="scripted",
        )

    def _next(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        refuse_what_providers_refuse(messages)
        self._prompts.append(copy.deepcopy(list(messages)))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if callable(answer):
            return answer(messages)
        if isinstance(answer, str):
            return ChatMessage(role="assistant", content=answer)
        return copy.deepcopy(answer)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._next(messages))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._next(messages))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        answer = self._next(messages)

        def stream() -> Generator[ChatResponse, None, None]:
            yield from _pieces(answer)

        return stream()

    @llm_chat_callback()
    async def astream_chat(
        self, messages: Sequence[ChatMessage], **kwargs: Any
    ) -> ChatResponseAsyncGen:
        answer = self._next(messages)

        async def stream() -> AsyncGenerator[ChatResponse, None]:
            for piece in _pieces(answer):
                yield piece

        return stream()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self._texts.append(prompt)
        return CompletionResponse(text=str(self._next([ChatMessage(prompt)]).content))

    async def acomplete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponse:
        return self.complete(prompt)

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseGen:
        raise NotImplementedError

    async def astream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        raise NotImplementedError

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[Any],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        messages = list(chat_history or [])
        if user_msg is not None:
            messages.append(ChatMessage(user_msg) if isinstance(user_msg, str) else user_msg)
        return {"messages": messages}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=id, tool_name=name, tool_kwargs=kwargs)
            for id, name, kwargs in calls_in(response.message)
        ]


def _pieces(answer: ChatMessage) -> list[ChatResponse]:
    """An answer as a stream: what has come so far, and what is new."""
    words = (answer.content or "").split(" ")
    pieces = []
    for count in range(1, len(words)):
        so_far = " ".join(words[:count]) + " "
        message = ChatMessage(role="assistant", content=so_far)
        pieces.append(ChatResponse(message=message, delta=words[count - 1] + " "))
    return [*pieces, ChatResponse(message=answer, delta=words[-1])]


def refuse_what_providers_refuse(messages: Sequence[ChatMessage]) -> None:
    """Raise for a prompt that a model's API would not take."""
    systems = [m for m in messages if m.role in (MessageRole.SYSTEM, MessageRole.DEVELOPER)]
    rest = [m for m in messages if m not in systems]
    if not rest or rest[0].role is not MessageRole.USER:
        raise ValueError(f"the conversation must begin with the user: {messages}")
    open_calls: set[str] = set()
    for message in rest:
        if message.role is MessageRole.TOOL:
            if message.additional_kwargs.get("tool_call_id") not in open_calls:
                raise ValueError(f"a tool result without its call: {messages}")
            open_calls.discard(message.additional_kwargs["tool_call_id"])
            continue
        if open_calls:
            raise ValueError(f"a tool call without its result: {messages}")
        open_calls = {id for id, _, _ in calls_in(message)}
    if open_calls:
        raise ValueError(f"a tool call without its result: {messages}")


def shown(messages: Sequence[ChatMessage]) -> str:
    """All text of a prompt."""
    return "\n".join(message.content or "" for message in messages)
