"""Pure functions from a thread and a recall to the messages that a model gets."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock

from llamaindex_semantic_recall.history import (
    SYSTEM_ROLES,
    TOOL_ROLES,
    CountTokens,
    Entry,
    chat_tokens,
    fit,
    paired,
    protect,
    protected,
    tool_calls,
    turns,
)
from llamaindex_semantic_recall.messages import text_of, to_chat_message
from semantic_recall.formatting import FENCE_NAME, PREAMBLE, as_chat_message
from semantic_recall.result import Recall
from semantic_recall.types import Message, RecalledMessage

Insert: TypeAlias = Literal["system", "user"]
TurnKey: TypeAlias = tuple[str, str]

# All of it, so that nobody's message is left out because it begins like a record.
_RECORD = re.compile(rf"{re.escape(PREAMBLE)}\n<({FENCE_NAME}-[0-9a-f]+)>\n.*\n</\1>", re.DOTALL)
_RECALL_SHARE = 0.3
"""What recall may take of the token limit; LlamaIndex's own memory leaves its blocks as much."""


class RecalledChatMessage(ChatMessage):
    """A message that memory put into a prompt; it is never stored again."""

    source: ClassVar[str] = "memory"


@dataclass(frozen=True, slots=True)
class Question:
    """What a `get` asks of the memory."""

    text: str
    """The user's message; "" when there is nothing to search for."""
    current_id: str | None
    """The user's message in the thread; None while it is not stored yet."""
    key: TurnKey
    """The same for every `get` of one turn, and for no other."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A prompt before its recall."""

    question: Question
    systems: Sequence[ChatMessage]
    turns: Sequence[Sequence[Entry]]
    budget: int
    """Tokens for everything but the system messages."""
    recall_budget: int
    window: Sequence[Entry]
    """The history that the prompt holds in any case."""


def question(stored: Sequence[Message], input: str | ChatMessage | None) -> Question:
    """Return what to search for.

    Context engines ask before they store the user's message and name it in `input`; agents and
    the simple engine store it first, and may name it as well.
    """
    last_user = next((i for i in reversed(range(len(stored))) if stored[i].role == "user"), None)
    text = text_of(input) if isinstance(input, ChatMessage) else input
    if last_user is not None:
        message = stored[last_user]
        if text is None or (text == message.text and _is_open(stored[last_user + 1 :])):
            return Question(message.text, message.id, ("stored", message.id))
    return Question(text or "", None, (f"after {stored[-1].id if stored else ''}", text or ""))


def _is_open(after: Sequence[Message]) -> bool:
    """Tell whether the turn goes on: nothing but tool calls and results came after the user."""
    return not any(
        message.role == "assistant" and message.text and not tool_calls(to_chat_message(message))
        for message in after
    )


def entries(
    stored: Sequence[Message], count: CountTokens, known: Mapping[tuple[str, int], int]
) -> list[Entry]:
    """Return stored messages as entries; `known` spares counting tokens again."""
    found = []
    for place, message in enumerate(stored):
        chat = to_chat_message(message)
        if _says_nothing(chat) and place < len(stored) - 1:
            continue  # an empty answer, a bare tool call of another framework: models refuse it
        tokens = known.get((message.id, hash(message.text)))
        if tokens is None:
            tokens = chat_tokens(chat, count)
        found.append(Entry(message.id, chat, tokens))
    return found


def _says_nothing(chat: ChatMessage) -> bool:
    blank = all(isinstance(block, TextBlock) and not block.text.strip() for block in chat.blocks)
    return blank and chat.role not in TOOL_ROLES and not tool_calls(chat)


def plan(
    asked: Question,
    thread: Sequence[Entry],
    *,
    token_limit: int,
    max_recall: int | None,
) -> Plan:
    """Return how the token limit is shared out: recall gives way to the present turn.

    Args:
        asked: What is searched for.
        thread: The end of the thread, and its system messages.
        token_limit: What everything may take together.
        max_recall: What recall may take at most.
    """
    systems = [entry for entry in thread if entry.chat.role in SYSTEM_ROLES]
    found = turns(paired([entry for entry in thread if entry.chat.role not in SYSTEM_ROLES]))
    budget = token_limit - sum(entry.tokens for entry in systems)
    present = sum(entry.tokens for entry in found[-1]) if found else 0
    share = max(0, min(math.ceil(budget * _RECALL_SHARE), budget - present))
    recall_budget = share if max_recall is None else min(share, max_recall)
    return Plan(
        question=asked,
        systems=[entry.chat for entry in systems],
        turns=found,
        budget=budget,
        recall_budget=recall_budget,
        window=fit(found, budget - recall_budget),
    )


def compose(made: Plan, recall: Recall, *, insert: Insert, count: CountTokens) -> list[ChatMessage]:
    """Return the prompt: system messages, what was recalled, and the history that fits.

    Args:
        made: The plan.
        recall: What was recalled for it; some of it may be in the window by now.
        insert: Where the block of other conversations goes.
        count: Counts tokens.
    """
    block, again = _recalled(made, recall, count)
    used = sum(chat_tokens(chat, count) for chat in again.values()) + _block_tokens(block, count)
    window = fit(made.turns, made.budget - used)
    for entry in window:  # room that recall left is filled with older history
        again.pop(entry.id, None)
    # Only the context engines format the history, and only they ask before they store.
    templated = made.question.current_id is None
    history = [protected(entry.chat) if templated else entry.chat for entry in window]
    systems = [protected(chat) if templated else chat for chat in made.systems]
    if block and insert == "system":
        systems = _in_system(systems, block)
    elif block:
        history = _in_user(history, window, made.question.current_id, block)
    return [*systems, *again.values(), *history]


def _recalled(
    made: Plan, recall: Recall, count: CountTokens
) -> tuple[str, dict[str, RecalledChatMessage]]:
    """Return the block of other conversations, and the messages of this one by id."""
    room = made.recall_budget
    window = {entry.id for entry in made.window}
    again = {
        item.message.id: _as_chat(item)
        for item in recall.same_thread
        if item.message.id not in window
    }
    if again and next(iter(again.values())).role is not MessageRole.USER:
        # Models want the user to begin: then this conversation goes into the block as well.
        return _block(recall, "all", room, count), {}
    block = _block(recall, "cross_thread", room, count)
    used = _block_tokens(block, count)
    kept: dict[str, RecalledChatMessage] = {}
    for id, chat in again.items():
        used += chat_tokens(chat, count)
        if used > room:
            break
        kept[id] = chat
    return block, kept


def _as_chat(item: RecalledMessage) -> RecalledChatMessage:
    plain = as_chat_message(item)
    return _recalled_message(MessageRole(plain["role"]), protect(plain["content"]))


def _recalled_message(role: MessageRole, text: str) -> RecalledChatMessage:
    return RecalledChatMessage(role=role, blocks=[TextBlock(text=text)])


def _block(
    recall: Recall, include: Literal["cross_thread", "all"], room: int, count: CountTokens
) -> str:
    block = protect(recall.block(include))
    if _block_tokens(block, count) <= room:
        return block
    # The core counts without what the message around the block and `protect` add.
    slack = _block_tokens(block, count) - count(recall.block(include))
    return protect(recall.block(include, max_tokens=room - slack)) if room > slack else ""


def _block_tokens(block: str, count: CountTokens) -> int:
    return chat_tokens(ChatMessage(content=block), count) if block else 0


def _in_system(systems: Sequence[ChatMessage], block: str) -> list[ChatMessage]:
    if not systems:
        return [_recalled_message(MessageRole.SYSTEM, block)]
    # One system message: some models take no second one.
    first = systems[0].model_copy()
    first.blocks = [*first.blocks, TextBlock(text=block)]
    return [first, *systems[1:]]


def _in_user(
    history: Sequence[ChatMessage], window: Sequence[Entry], current_id: str | None, block: str
) -> list[ChatMessage]:
    found = list(history)
    for place, entry in enumerate(window):
        if entry.id == current_id:
            found[place] = found[place].model_copy()
            found[place].blocks = [TextBlock(text=block), *found[place].blocks]
            return found
    # The engine adds the user's message after this one.
    return [*found, _recalled_message(MessageRole.USER, block)]


def without_recalled(chat: ChatMessage) -> ChatMessage | None:
    """Return a chat message without what memory put into it, None when nothing is left."""
    if isinstance(chat, RecalledChatMessage):
        return None
    blocks = [
        block
        for block in chat.blocks
        if not (isinstance(block, TextBlock) and _RECORD.fullmatch(block.text))
    ]
    if len(blocks) == len(chat.blocks):
        return chat
    return chat.model_copy(update={"blocks": blocks}) if blocks else None
