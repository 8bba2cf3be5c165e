"""The endpoints: each reads its fields, asks the memory and describes the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from semantic_recall import MessageRange, RecallOptions, RecallOverrides, SemanticRecall
from semantic_recall.inspector.documents import message_document, recall_document
from semantic_recall.inspector.wire import Body, JsonResponse
from semantic_recall.types import Ranking, ScopeKind, ThreadInfo

T = TypeVar("T")

PAGE = 50
"""Entries of a list that are sent at once."""
MOST_HITS = 100
MOST_NEIGHBOURS = 20
MOST_TOKENS = 1_000_000
_DEEPEST = 100_000
"""The page of a thread is counted from its end and read from there: not without end."""


class Views:
    """The endpoints of one memory.

    Args:
        memory: What is asked.
        name: What the page calls it.
    """

    def __init__(self, memory: SemanticRecall, name: str) -> None:
        self._memory = memory
        self._name = name

    async def overview(self, request: Request) -> Response:
        """Tell the size of the memory, and the options that a recall starts from."""
        (await Body.of(request)).done()
        options = self._memory.options
        reach = MessageRange.of(options.message_range)
        return JsonResponse(
            {
                "name": self._name,
                "stats": dataclasses.asdict(await self._memory.astats()),
                "options": {
                    "top_k": options.top_k,
                    "before": reach.before,
                    "after": reach.after,
                    "threshold": options.threshold,
                    "max_tokens": options.max_tokens,
                    "ranking": options.ranking,
                },
            }
        )

    async def resources(self, request: Request) -> Response:
        """List the resources by id, a page at a time."""
        body = await Body.of(request)
        skip, wanted = _skipped(body), _wanted(body)
        body.done()
        found = [
            dataclasses.asdict(info)
            for info in await self._memory.aresources()
            if wanted in (info.resource_id or "").casefold()
        ]
        return JsonResponse({"total": len(found), "resources": _page(found, skip)})

    async def threads(self, request: Request) -> Response:
        """List the threads of a resource, the newest first, a page at a time."""
        body = await Body.of(request)
        resource_id = body.optional_text("resource_id")
        skip, wanted = _skipped(body), _wanted(body)
        body.done()
        found = [
            info
            for info in await self._memory.athreads(resource_id)
            if info.resource_id == resource_id and wanted in info.thread_id.casefold()
        ]
        shown = [_thread(info) for info in _page(found, skip)]
        return JsonResponse({"total": len(found), "threads": shown})

    async def messages(self, request: Request) -> Response:
        """Show the messages of a thread, oldest first, a page at a time from its end."""
        body = await Body.of(request)
        thread_id, resource_id = body.text("thread_id"), body.optional_text("resource_id")
        skip = _skipped(body)
        body.done()
        # One more than is shown tells whether there are earlier ones.
        found = await self._memory.ahistory(thread_id, resource_id, last=skip + PAGE + 1)
        if not found:
            raise HTTPException(404, f"There is no thread {thread_id!r} here (any more).")
        older = found[: len(found) - skip]
        return JsonResponse(
            {
                "messages": [message_document(message) for message in older[-PAGE:]],
                "more": len(older) > PAGE,
            }
        )

    async def recall(self, request: Request) -> Response:
        """Recall, and say why."""
        body = await Body.of(request)
        query = body.text("query")
        thread_id, resource_id = body.optional_text("thread_id"), body.optional_text("resource_id")
        options = _options(body, self._memory.options)
        body.done()
        recall = await self._memory.arecall(
            query, thread_id=thread_id, resource_id=resource_id, **options
        )
        return JsonResponse(recall_document(recall))

    async def forget(self, request: Request) -> Response:
        """Delete one message and return the receipt."""
        body = await Body.of(request)
        thread_id, resource_id = body.text("thread_id"), body.optional_text("resource_id")
        message_id, secure = body.text("id"), body.flag("secure")
        body.done()
        receipt = await self._memory.aforget(
            ids=[message_id], thread_id=thread_id, resource_id=resource_id, secure=secure
        )
        return JsonResponse(
            {
                "messages": receipt.messages,
                "threads": receipt.threads,
                "vectors": receipt.vectors,
                "remaining": dict(receipt.remaining),
                "secure": receipt.secure,
                "complete": receipt.complete,
            }
        )


def _options(body: Body, default: RecallOptions) -> RecallOverrides:
    """Return the options of a request; what it does not say is as the memory has it.

    The page draws what comes back, so the counts have limits here that the library does not have.
    """
    reach = MessageRange.of(default.message_range)
    return {
        "top_k": body.whole("top_k", 1, MOST_HITS, default.top_k),
        "message_range": MessageRange(
            body.whole("before", 0, MOST_NEIGHBOURS, reach.before),
            body.whole("after", 0, MOST_NEIGHBOURS, reach.after),
        ),
        # The library checks these three, and its sentences are as good.
        "scope": cast("ScopeKind", body.optional_text("scope") or default.scope),
        "ranking": cast("Ranking", body.optional_text("ranking") or default.ranking),
        "threshold": body.optional_number("threshold"),
        "max_tokens": body.optional_whole("max_tokens", 1, MOST_TOKENS),
    }


def _skipped(body: Body) -> int:
    return body.whole("skip", 0, _DEEPEST, 0)


def _wanted(body: Body) -> str:
    return (body.optional_text("contains") or "").casefold()


def _page(found: Sequence[T], skip: int) -> Sequence[T]:
    return found[skip : skip + PAGE]


def _thread(info: ThreadInfo) -> dict[str, Any]:
    return {
        "thread_id": info.thread_id,
        "resource_id": info.resource_id,
        "messages": info.messages,
        "first_at": info.first_at.isoformat(),
        "last_at": info.last_at.isoformat(),
    }
