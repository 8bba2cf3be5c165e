"""A whole turn: what to put before the model, what to keep of its answer.

For callers without a framework, with plain role/content dicts; the plugins share the parts.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal, TypeAlias, TypeVar

from semantic_recall.errors import AbortTurn, ConfigurationError
from semantic_recall.formatting import as_chat_message
from semantic_recall.incoming import text_of
from semantic_recall.result import Recall
from semantic_recall.types import Message

Insert: TypeAlias = Literal["system", "user"]
ChatMessage: TypeAlias = Mapping[str, Any]

T = TypeVar("T")

_NOT_STORED = frozenset({"system", "developer"})


class MemoryMessage(dict[str, Any]):
    """A prompt message that came out of the memory; it is never stored again.

    Args:
        values: Role and content.
        original: The caller's system message that the block was added to, if it was.
    """

    def __init__(
        self, values: Mapping[str, Any], original: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(values)
        self.original = original


def live(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the caller's own messages, without what the memory added in earlier turns."""
    own: list[ChatMessage] = []
    for message in messages:
        if not isinstance(message, MemoryMessage):
            own.append(message)
        elif message.original is not None:
            own.append(message.original)
    return own


def repeated_ids(history: Sequence[Message], messages: Sequence[ChatMessage]) -> set[str]:
    """Return the ids of stored messages that the live ones hold, by id or by role and text."""
    ids = {message["id"] for message in messages if isinstance(message.get("id"), str)}
    told = {(message.get("role"), text_of(message.get("content"))) for message in messages}
    return ids.union(m.id for m in history if (m.role, m.text) in told)


def query_text(messages: Sequence[ChatMessage]) -> str:
    """Return the text of the last user message, "" when it has none.

    An older message is not taken instead: an image without words asks nothing of the past.
    """
    for message in reversed(messages):
        if message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def prompt(
    messages: Sequence[ChatMessage], recall: Recall, history: Sequence[Message], insert: Insert
) -> list[dict[str, Any]]:
    """Return the live messages with what was recalled and the recent history before them.

    Args:
        messages: What the caller has (see `live`): perhaps a system message, then at least the
            user's message.
        recall: What was recalled; messages of other threads become one block.
        history: The end of the current thread, oldest first.
        insert: Where the block goes: "system" adds it to the system message (made if there is
            none), "user" puts it into a user message before the conversation.
    """
    front = 0
    while front < len(messages) and messages[front].get("role") in _NOT_STORED:
        front += 1
    lead: list[dict[str, Any]] = [dict(message) for message in messages[:front]]
    if recall.text and insert == "user":
        lead.append(MemoryMessage({"role": "user", "content": recall.text}))
    elif recall.text and lead:
        lead[-1] = _with_block(lead[-1], recall.text)
    elif recall.text:
        lead.append(MemoryMessage({"role": "system", "content": recall.text}))
    recalled = [MemoryMessage(as_chat_message(message)) for message in recall.same_thread]
    recent = [
        MemoryMessage({"role": message.role, "content": message.text})
        for message in history
        if message.role in ("user", "assistant") and message.text
    ]
    return [*lead, *recalled, *recent, *(dict(message) for message in messages[front:])]


def _with_block(system: dict[str, Any], block: str) -> MemoryMessage:
    content = system.get("content")
    if isinstance(content, str) or content is None:
        joined: object = "\n\n".join(part for part in (content, block) if part)
    else:
        joined = [*content, {"type": "text", "text": block}]
    return MemoryMessage({**system, "content": joined}, original=system)


def unseen(history: Sequence[Message], messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return the messages that are not stored yet.

    Left out are system messages, what came out of the memory, and a beginning that repeats the
    end of the stored thread, as clients send it that resend the whole conversation each turn.

    Args:
        history: The end of the stored thread, oldest first; at least as long as `messages`.
        messages: What the caller hands over, oldest first.
    """
    wanted = [
        message
        for message in messages
        if message.get("role") not in _NOT_STORED and not isinstance(message, MemoryMessage)
    ]
    told = [(message.get("role"), text_of(message.get("content"))) for message in wanted]
    stored = [(message.role, message.text) for message in history]
    repeated = 0
    # A lone repeated message ("yes") is taken as new: only a conversation is recognised.
    for length in range(min(len(told), len(stored)), 1, -1):
        if stored[-length:] == told[:length]:
            repeated = length
            break
    return wanted[repeated:]


def without_live(history: Sequence[Message], messages: Sequence[ChatMessage]) -> list[Message]:
    """Return the history without the end that the live messages begin with."""
    told = [
        (message.get("role"), text_of(message.get("content")))
        for message in messages
        if message.get("role") not in _NOT_STORED
    ]
    stored = [(message.role, message.text) for message in history]
    for length in range(min(len(told), len(stored)), 0, -1):
        if stored[-length:] == told[:length]:
            return list(history[:-length])
    return list(history)


def guarded(
    work: Callable[[], T],
    *,
    timeout: float,
    logger: logging.Logger,
    otherwise: T,
    what: str = "recall",
) -> T:
    """Return what `work` gives, or `otherwise` when it fails or takes too long: a model waits.

    Args:
        work: The recall, or what else must not stop the turn.
        timeout: Seconds.
        logger: Gets a warning with the cause.
        otherwise: What the turn goes on with.
        what: The work's name in the warning.

    Raises:
        AbortTurn: A hook stopped the turn.
        ConfigurationError: The call is wrong; it would fail every time.
    """
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it is raised again by `result`
            future.set_exception(error)

    # A daemon, because a pool's thread that hangs would also hang the exit of the process.
    threading.Thread(target=run, name="semantic-recall-turn", daemon=True).start()
    try:
        return future.result(timeout)
    except (AbortTurn, ConfigurationError):
        raise
    except FutureTimeoutError:
        logger.warning("%s took more than %s s; the turn goes on without it", what, timeout)
    except Exception as error:  # whatever fails here, the user gets an answer
        logger.warning("%s failed; the turn goes on without it: %s", what, error, exc_info=True)
    return otherwise


async def aguarded(
    work: Awaitable[T],
    *,
    timeout: float,
    logger: logging.Logger,
    otherwise: T,
    what: str = "recall",
) -> T:
    """Do the same for an awaitable."""
    try:
        return await asyncio.wait_for(work, timeout)
    except (AbortTurn, ConfigurationError):
        raise
    except asyncio.TimeoutError:
        logger.warning("%s took more than %s s; the turn goes on without it", what, timeout)
    except Exception as error:  # whatever fails here, the user gets an answer
        logger.warning("%s failed; the turn goes on without it: %s", what, error, exc_info=True)
    return otherwise
