"""Pure functions over a thread's chat messages: what fits, what belongs together, what is new."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from llama_index.core.base.llms.types import ChatMessage, ContentBlock, MessageRole, TextBlock

from llamaindex_semantic_recall.messages import block_texts, dump, same_message, text_of
from semantic_recall.types import Message

CountTokens: TypeAlias = Callable[[str], int]

TOOL_ROLES = frozenset({MessageRole.TOOL, MessageRole.FUNCTION})
SYSTEM_ROLES = frozenset({MessageRole.SYSTEM, MessageRole.DEVELOPER})

_MESSAGE_TOKENS = 4
"""What chat formats add to each message."""
_MEDIA_TOKENS = 256
_DOCUMENT_TOKENS = 2048
"""LlamaIndex's own estimates for media and documents."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of the thread."""

    id: str
    chat: ChatMessage
    tokens: int


def chat_tokens(chat: ChatMessage, count: CountTokens) -> int:
    """Return how many tokens a chat message takes, every kind of block and kwargs included."""
    total = _MESSAGE_TOKENS + sum(_block_tokens(block, count) for block in chat.blocks)
    if chat.additional_kwargs:
        total += count(json.dumps(dump(chat)["additional_kwargs"], ensure_ascii=False))
    return total


# Blocks are told apart by their type's name: the first releases of LlamaIndex 0.13 have neither
# thinking nor tool calls among them.
def _block_tokens(block: ContentBlock, count: CountTokens) -> int:
    if block.block_type == "thinking":
        return block.num_tokens or count(block.content or "")
    if block.block_type == "tool_call":
        call = dump(ChatMessage(blocks=[block]))["blocks"]
        return count(json.dumps(call, ensure_ascii=False))
    if block.block_type == "document":
        return _DOCUMENT_TOKENS
    texts = block_texts(block)
    return sum(map(count, texts)) if texts else _MEDIA_TOKENS


def tool_calls(chat: ChatMessage) -> list[str | None]:
    """Return the ids of a message's tool calls, None for a call without an id."""
    found: list[str | None] = [
        block.tool_call_id for block in chat.blocks if block.block_type == "tool_call"
    ]
    for call in chat.additional_kwargs.get("tool_calls") or ():
        id = call.get("id") if isinstance(call, Mapping) else None
        if id is None or id not in found:
            found.append(id)
    if chat.additional_kwargs.get("function_call") and not found:
        found.append(None)
    return found


def paired(entries: Sequence[Entry]) -> list[Entry]:
    """Return the messages without tool calls that lack results and results that lack calls.

    Models refuse such a history. Calls at the very end may still get their results, and stay.
    """
    kept: list[Entry] = []
    position = 0
    while position < len(entries):
        entry = entries[position]
        position += 1
        if entry.chat.role in TOOL_ROLES:
            continue  # its call is gone: those with a call are taken below
        calls = tool_calls(entry.chat)
        results: list[Entry] = []
        while position < len(entries) and entries[position].chat.role in TOOL_ROLES:
            results.append(entries[position])
            position += 1
        if not calls:
            kept.append(entry)
        elif _answered(calls, results) or position == len(entries):
            kept += [entry, *(result for result in results if _result_of(result, calls))]
        elif text_of(entry.chat):
            kept.append(_without_calls(entry))
    return kept


def _result_id(entry: Entry) -> object:
    return entry.chat.additional_kwargs.get("tool_call_id")


def _result_of(result: Entry, calls: Sequence[str | None]) -> bool:
    id = _result_id(result)
    return id is None or None in calls or id in calls


def _answered(calls: Sequence[str | None], results: Sequence[Entry]) -> bool:
    ids = {_result_id(result) for result in results}
    if None in calls or None in ids:
        return len(results) >= len(calls)
    return ids.issuperset(calls)


def _without_calls(entry: Entry) -> Entry:
    chat = entry.chat.model_copy()
    chat.blocks = [block for block in chat.blocks if block.block_type != "tool_call"]
    chat.additional_kwargs = {
        key: value
        for key, value in chat.additional_kwargs.items()
        if key not in ("tool_calls", "function_call")
    }
    return Entry(entry.id, chat, entry.tokens)


def turns(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return the messages by turn: each starts with a user message.

    What stands before the first user message is left out: models want the user to begin.
    """
    found: list[list[Entry]] = []
    for entry in entries:
        if entry.chat.role is MessageRole.USER:
            found.append([entry])
        elif found:
            found[-1].append(entry)
    return found


def fit(found: Sequence[Sequence[Entry]], budget: int) -> list[Entry]:
    """Return the last turns that fit into `budget` tokens; the last one always."""
    kept: list[Sequence[Entry]] = []
    for turn in reversed(found):
        budget -= sum(entry.tokens for entry in turn)
        if kept and budget < 0:
            break
        kept.append(turn)
    return [entry for turn in reversed(kept) for entry in turn]


@dataclass(frozen=True, slots=True)
class Difference:
    """How to get from a stored thread to a wanted one."""

    forget: Sequence[str]
    """Ids of stored messages to delete."""
    add: Sequence[ChatMessage]
    """Messages to store after those that stay."""


def difference(stored: Sequence[Message], wanted: Sequence[ChatMessage]) -> Difference:
    """Return what must change so that the thread is `wanted`.

    A list of two and more messages that continues the end of the thread keeps all of it: chat
    clients send the last messages only, which is no order to forget the others. Any other list
    replaces the thread from the first message that differs.
    """
    known = _same_messages(stored, wanted)
    if known is not None:
        return Difference((), wanted[known:])
    known = _same_texts(stored, wanted)
    if known is not None:
        rest = [chat for chat in wanted[known:] if chat.role not in SYSTEM_ROLES]
        systems = _system_change(stored, wanted)
        return Difference(systems.forget, [*systems.add, *rest])
    same = 0
    while same < min(len(stored), len(wanted)) and same_message(stored[same], wanted[same]):
        same += 1
    return Difference([message.id for message in stored[same:]], wanted[same:])


def _same_messages(stored: Sequence[Message], wanted: Sequence[ChatMessage]) -> int | None:
    """Return how many of `wanted` are the end of `stored`, None when it does not continue it."""
    if not stored:
        return 0
    for length in range(min(len(stored), len(wanted)), 0, -1):
        if length == 1 and len(stored) > 1:
            break  # a lone repeated message ("yes") proves nothing
        if all(map(same_message, stored[-length:], wanted[:length])):
            return length
    return None


def _same_texts(stored: Sequence[Message], wanted: Sequence[ChatMessage]) -> int | None:
    """Do the same by role and text alone, for clients that show neither tools nor images."""
    have = [(m.role, m.text) for m in stored if m.role in ("user", "assistant") and m.text]
    places = [i for i, chat in enumerate(wanted) if _told(chat) is not None]
    told = [_told(wanted[i]) for i in places]
    for length in range(min(len(have), len(told)), 0, -1):
        if length == 1 and len(have) > 1:
            break
        if have[-length:] == told[:length]:
            return places[length - 1] + 1
    return None


def _told(chat: ChatMessage) -> tuple[str, str] | None:
    text = text_of(chat)
    if chat.role in SYSTEM_ROLES or chat.role in TOOL_ROLES or not text:
        return None
    return ("user" if chat.role is MessageRole.USER else "assistant"), text


def _system_change(stored: Sequence[Message], wanted: Sequence[ChatMessage]) -> Difference:
    old = [message for message in stored if message.role in ("system", "developer")]
    new = [chat for chat in wanted if chat.role in SYSTEM_ROLES]
    if not new or [message.text for message in old] == [text_of(chat) for chat in new]:
        return Difference((), ())
    return Difference([message.id for message in old], new)


def protect(text: str) -> str:
    """Return text in which chat engines find no field of their prompt templates.

    They format the history together with their template, and would put documents in place of
    "{context_str}" in somebody's message. The space inside the braces stops that.
    """
    for field in _TEMPLATE_FIELDS:
        text = text.replace(f"{{{field}}}", f"{{ {field} }}")
    return text


_TEMPLATE_FIELDS = ("context_str", "query_str", "existing_answer", "context_msg")


def protected(chat: ChatMessage) -> ChatMessage:
    """Return a chat message with its text blocks protected."""
    blocks = [
        TextBlock(text=protect(block.text)) if isinstance(block, TextBlock) else block
        for block in chat.blocks
    ]
    return chat.model_copy(update={"blocks": blocks})
