"""The pure functions: pairs of tool calls, turns that fit, what `set` must change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from llamaindex_semantic_recall.history import (
    Entry,
    chat_tokens,
    difference,
    fit,
    paired,
    protect,
    tool_calls,
    turns,
)
from llamaindex_semantic_recall.messages import to_message
from semantic_recall.types import Message
from tests.llamaindex.conftest import chats
from tests.llamaindex.scripted import HAS_TOOL_BLOCKS, call, refuse_what_providers_refuse


def result(id: str | None, text: str = "3") -> ChatMessage:
    kwargs = {} if id is None else {"tool_call_id": id}
    return ChatMessage(role="tool", content=text, additional_kwargs=kwargs)


def entries(*messages: ChatMessage) -> list[Entry]:
    return [Entry(str(i), chat, chat_tokens(chat, len)) for i, chat in enumerate(messages)]


def shapes(kept: list[Entry]) -> list[str]:
    return [entry.chat.role.value for entry in kept]


def both(text: str) -> ChatMessage:
    chat = call("add", "c1")
    chat.blocks = [*ChatMessage(text).blocks, *chat.blocks]
    return chat


# -- pairs ---------------------------------------------------------------------------------------
def test_a_pair_stays_and_halves_go() -> None:
    whole = entries(ChatMessage("hi"), call("add", "c1"), result("c1"), *chats("x")[:1])
    assert shapes(paired(whole)) == ["user", "assistant", "tool", "user"]
    no_call = entries(ChatMessage("hi"), result("c1"), ChatMessage("x"))
    assert shapes(paired(no_call)) == ["user", "user"]
    no_result = entries(ChatMessage("hi"), call("add", "c1"), ChatMessage("x"))
    assert shapes(paired(no_result)) == ["user", "user"]
    foreign = entries(ChatMessage("hi"), call("add", "c1"), result("c2"), ChatMessage("x"))
    assert shapes(paired(foreign)) == ["user", "user"]


def test_parallel_calls_need_all_their_results() -> None:
    two = call("add", "c1")
    other = call("add", "c2")
    two.blocks += other.blocks
    for key, calls in other.additional_kwargs.items():
        two.additional_kwargs[key] += calls
    whole = entries(ChatMessage("hi"), two, result("c1"), result("c2"), ChatMessage("x"))
    assert shapes(paired(whole)) == ["user", "assistant", "tool", "tool", "user"]
    half = entries(ChatMessage("hi"), two, result("c1"), ChatMessage("x"))
    assert shapes(paired(half)) == ["user", "user"]


def test_the_text_beside_a_lost_call_stays() -> None:
    kept = paired(entries(ChatMessage("hi"), both("I will add."), ChatMessage("x")))
    assert [entry.chat.content for entry in kept] == ["hi", "I will add.", "x"]
    assert tool_calls(kept[1].chat) == []


def test_calls_at_the_end_wait_for_their_results() -> None:
    assert shapes(paired(entries(ChatMessage("hi"), call("add", "c1")))) == ["user", "assistant"]


def test_calls_of_older_integrations_are_calls_too() -> None:
    asking = ChatMessage(role="assistant", additional_kwargs={"tool_calls": [{"id": "c9"}]})
    assert tool_calls(asking) == ["c9"]
    kept = paired(entries(ChatMessage("hi"), asking, ChatMessage("x")))
    assert shapes(kept) == ["user", "user"]
    with_result = entries(ChatMessage("hi"), asking, result("c9"), ChatMessage("x"))
    assert len(paired(with_result)) == 4
    function = ChatMessage(role="assistant", additional_kwargs={"function_call": {"name": "f"}})
    answer = ChatMessage(role="function", content="3", additional_kwargs={"name": "f"})
    assert len(paired(entries(ChatMessage("hi"), function, answer, ChatMessage("x")))) == 4
    in_both = call("add", "c1")
    in_both.additional_kwargs.setdefault("tool_calls", [{"id": "c1"}])
    assert tool_calls(in_both) == ["c1"]


_MESSAGES = st.lists(
    st.sampled_from(
        [
            ChatMessage("user"),
            ChatMessage(role="assistant", content="assistant"),
            call("add", "c1"),
            call("add", "c2"),
            both("text and call"),
            result("c1"),
            result("c2"),
        ]
    ),
    max_size=14,
)


@given(_MESSAGES, st.integers(0, 200))
def test_report_9_no_cut_is_refused(messages: list[ChatMessage], budget: int) -> None:
    """Whatever was stored and whatever fits: it begins with the user, and pairs are whole."""
    messages = [*messages, ChatMessage("the present question")]
    kept = fit(turns(paired(entries(*messages))), budget)
    refuse_what_providers_refuse([entry.chat for entry in kept])
    assert kept[-1].id == str(len(messages) - 1)
    order = [int(entry.id) for entry in kept]
    assert order == sorted(order)
    assert sum(entry.tokens for entry in kept) <= budget or (
        sum(entry.chat.role is MessageRole.USER for entry in kept) == 1
    )


def test_more_fits_into_more() -> None:
    told = turns(entries(*chats(*"abcdefghij")))
    lengths = [len(fit(told, budget)) for budget in range(120)]
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (2, 10)


# -- set -----------------------------------------------------------------------------------------
def stored(*messages: ChatMessage) -> list[Message]:
    return [to_message(chat, thread_id="t", id=str(i)) for i, chat in enumerate(messages)]


TOLD = chats("one", "two", "three", "four")


@pytest.mark.parametrize(
    ("wanted", "forget", "add"),
    [
        (TOLD, "", []),
        (TOLD[2:], "", []),
        ([*TOLD, ChatMessage("five")], "", ["five"]),
        ([*TOLD[2:], ChatMessage("five")], "", ["five"]),
        ([*TOLD[:3], ChatMessage("new")], "3", ["new"]),
        (TOLD[:2], "23", []),
        ([], "0123", []),
        ([ChatMessage("four")], "0123", ["four"]),
        (chats("other", "list"), "0123", ["other", "list"]),
        (chats("three", "four?"), "0123", ["three", "four?"]),
    ],
)
def test_difference(wanted: list[ChatMessage], forget: str, add: list[str]) -> None:
    change = difference(stored(*TOLD), wanted)
    assert "".join(change.forget) == forget
    assert [chat.content for chat in change.add] == add


def test_a_client_that_shows_no_tools_changes_nothing() -> None:
    system = ChatMessage(role="system", content="Be brief.")
    have = stored(system, ChatMessage("add"), call("add", "c1"), result("c1"), *chats("x", "3")[1:])
    shown = [ChatMessage("add"), ChatMessage(role="assistant", content="3")]
    assert difference(have, shown) == difference(have, [*shown])
    change = difference(have, [*shown, ChatMessage("next")])
    assert (list(change.forget), [c.content for c in change.add]) == ([], ["next"])
    change = difference(have, [ChatMessage(role="system", content="Be long."), *shown])
    assert (list(change.forget), [c.content for c in change.add]) == (["0"], ["Be long."])


def test_tool_calls_of_an_interrupted_turn_are_not_stored_twice() -> None:
    told = [ChatMessage("add"), call("add", "c1"), result("c1")]
    change = difference(stored(*told), [*told, ChatMessage("next")])
    assert (list(change.forget), [c.content for c in change.add]) == ([], ["next"])


@given(_MESSAGES, _MESSAGES)
def test_what_is_wanted_is_what_there_is_then(
    have: list[ChatMessage], wanted: list[ChatMessage]
) -> None:
    before = stored(*have)
    change = difference(before, wanted)
    gone = set(change.forget)
    left = [m for m in before if m.id not in gone] + stored(*change.add)
    after = [(m.role, m.text) for m in left if m.role in ("user", "assistant") and m.text]
    told = [(m.role, m.text) for m in stored(*wanted) if m.role in ("user", "assistant") and m.text]
    assert after[len(after) - len(told) :] == told
    if change.forget:
        assert after == told


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("{context_str}", "{ context_str }"),
        ("{{query_str}}", "{{ query_str }}"),
        ('{"a": {"b": 1}} {other} {}', '{"a": {"b": 1}} {other} {}'),
    ],
)
def test_protect(text: str, safe: str) -> None:
    assert protect(text) == safe


def test_every_kind_of_block_counts() -> None:
    from tests.llamaindex.test_messages import MESSAGES

    plain: dict[str, Any] = {name: chat_tokens(chat, len) for name, chat in MESSAGES.items()}
    assert plain["no blocks"] == 4
    assert plain["citable"] == 4 + len("quoted")
    assert plain["image url"] == 4 + 256
    assert plain["document"] == 4 + 2048
    assert plain["tool call in additional_kwargs"] > 20
    if HAS_TOOL_BLOCKS:
        assert plain["tool call in a block"] > 20
        assert plain["thinking"] >= 4 + 3 + len("answer")
