"""Ways to run a chain, and a chain with a placeholder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from tests.langchain.scripted import ScriptedModel

Run = Callable[[Any, Any, Any], Any]


async def _invoke(chain: Any, value: Any, config: Any) -> Any:
    return await asyncio.to_thread(chain.invoke, value, config)


async def _ainvoke(chain: Any, value: Any, config: Any) -> Any:
    return await chain.ainvoke(value, config)


async def _stream(chain: Any, value: Any, config: Any) -> Any:
    return await asyncio.to_thread(lambda: _joined(list(chain.stream(value, config))))


async def _astream(chain: Any, value: Any, config: Any) -> Any:
    return _joined([part async for part in chain.astream(value, config)])


async def _batch(chain: Any, value: Any, config: Any) -> Any:
    return (await asyncio.to_thread(chain.batch, [value], config))[0]


async def _abatch(chain: Any, value: Any, config: Any) -> Any:
    return (await chain.abatch([value], config))[0]


def _joined(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def with_placeholder(model: ScriptedModel) -> Any:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "You are {mood}."), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    return prompt | model


WAYS: list[Run] = [_invoke, _ainvoke, _stream, _astream, _batch, _abatch]
