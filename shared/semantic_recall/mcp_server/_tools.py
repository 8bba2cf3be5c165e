"""What the tools do, all of it inside one scope."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from datetime import datetime, timezone

from semantic_recall.errors import ConfigurationError, InvalidScopeError
from semantic_recall.incoming import NEVER_RECALLED
from semantic_recall.mcp_server._arguments import (
    ForgetArguments,
    ForgetOfThreadArguments,
    RecentArguments,
    RecentOfThreadArguments,
    RememberArguments,
    RememberInThreadArguments,
    SearchArguments,
)
from semantic_recall.mcp_server._results import Kept, Receipt, Record, as_record
from semantic_recall.options import RecallOverrides
from semantic_recall.recall import SemanticRecall
from semantic_recall.result import Recall
from semantic_recall.types import Message, RecalledMessage, Scope

_THREADS_LOOKED_AT = 50
_HIDDEN_BETWEEN = 4
"""How many messages of a thread are read for one that is shown: calls of tools are not."""


class Tools:
    """The tools of one server.

    Args:
        memory: The memory; it may hold other owners' messages.
        scope: What the tools see and change: a resource, or one thread.
        max_tokens: What the record in a result may take.
    """

    def __init__(self, memory: SemanticRecall, scope: Scope, max_tokens: int) -> None:
        self._memory = memory
        self._scope = scope
        self._max_tokens = max_tokens
        self._secret = secrets.token_bytes(16)
        now = datetime.now(timezone.utc)
        self._session = f"mcp-{now:%Y-%m-%d}-{secrets.token_hex(4)}"

    async def search(self, asked: SearchArguments) -> Record:
        """Find messages by meaning and words, with their neighbours."""
        options = RecallOverrides(
            scope="resource" if self._scope.thread_id is None else "thread",
            since=asked.since,
            until=asked.until,
        )
        if asked.top_k is not None:
            options["top_k"] = asked.top_k
        checked = self._memory.options.replace(**options)
        if checked.since and checked.until and checked.since >= checked.until:
            raise ConfigurationError("since must be before until")
        recall = await self._memory.arecall(
            asked.query,
            thread_id=self._scope.thread_id,
            resource_id=self._scope.resource_id,
            **options,
        )
        return await self._record(recall)

    async def recent(self, asked: RecentArguments) -> Record:
        """Return the last messages: of the newest threads, or of one."""
        named = asked.thread_id if isinstance(asked, RecentOfThreadArguments) else None
        thread = self._scope.thread_id or named
        if thread is not None:
            found = await self._last(thread, asked.last)
            if named is not None and not found:
                raise InvalidScopeError(f"there is no conversation {named!r} in this memory")
        else:
            found = await self._newest(asked.last)
        # Where not all fit, the last ones matter most.
        shown = tuple(
            RecalledMessage(message=message, is_hit=True, score=float(place))
            for place, message in enumerate(found)
        )
        return await self._record(
            Recall(
                query="",
                messages=shown,
                thread_id=self._scope.thread_id,
                resource_id=self._scope.resource_id,
                secret=self._secret,
            )
        )

    async def _newest(self, count: int) -> list[Message]:
        found: list[Message] = []
        threads = await self._memory.athreads(self._scope.resource_id)
        for info in threads[:_THREADS_LOOKED_AT]:
            if len(found) == count:
                break
            found = [*await self._last(info.thread_id, count - len(found)), *found]
        return found

    async def _last(self, thread_id: str, count: int) -> list[Message]:
        messages = await self._memory.ahistory(
            thread_id, self._scope.resource_id, last=count * _HIDDEN_BETWEEN
        )
        said = [one for one in messages if one.text.strip() and one.role not in NEVER_RECALLED]
        return said[-count:]

    async def _record(self, recall: Recall) -> Record:
        hook = self._memory.settings.before_inject
        shown = recall if hook is None else hook(recall)
        # In a thread: many long messages take a while to count and to clean.
        return await asyncio.to_thread(as_record, shown, self._max_tokens)

    async def forget(self, asked: ForgetArguments) -> Receipt:
        """Delete messages of the scope and everything made from them."""
        named = asked.thread_id if isinstance(asked, ForgetOfThreadArguments) else None
        found = await self._memory.afind(
            asked.message_ids,
            thread_id=self._scope.thread_id or named,
            resource_id=self._scope.resource_id,
        )
        _refuse_ambiguous(found)
        ids: dict[str, list[str]] = {}
        for message in found:
            ids.setdefault(message.thread_id, []).append(message.id)
        receipts = [
            await self._memory.aforget(
                ids=of_thread, thread_id=thread_id, resource_id=self._scope.resource_id
            )
            for thread_id, of_thread in ids.items()
        ]
        known = {message.id for message in found}
        unknown = [id for id in dict.fromkeys(asked.message_ids) if id not in known]
        return Receipt.of(receipts, unknown)

    async def remember(self, asked: RememberArguments) -> Kept:
        """Store a message; without a thread in the one of this session."""
        named = asked.thread_id if isinstance(asked, RememberInThreadArguments) else None
        stored = await self._memory.aremember(
            {
                "role": asked.role,
                "content": asked.content,
                # So that it can be told from what was said to the application itself.
                "metadata": {"source": "mcp"},
            },
            thread_id=self._scope.thread_id or named or self._session,
            resource_id=self._scope.resource_id,
        )
        if not stored:
            raise ConfigurationError("this memory does not store that message")
        return Kept.of(stored[0])


def _refuse_ambiguous(found: Sequence[Message]) -> None:
    """Refuse ids that mean several messages: more than was meant would be deleted."""
    threads: dict[str, str] = {}
    for message in found:
        first = threads.setdefault(message.id, message.thread_id)
        if first != message.thread_id:
            raise ConfigurationError(
                f"message {message.id!r} stands in several conversations, such as {first!r} and "
                f"{message.thread_id!r}; say which with thread_id"
            )
