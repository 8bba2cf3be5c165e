"""`SemanticRecall`: a memory for chat, sync and async."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from typing_extensions import Self, Unpack

from semantic_recall import opening
from semantic_recall.erasure import ForgetReceipt
from semantic_recall.incoming import Incoming
from semantic_recall.maintenance import ReindexReport, Stats, VerifyReport
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.protocols import Embedder
from semantic_recall.records import Progress
from semantic_recall.result import Recall
from semantic_recall.settings import Settings
from semantic_recall.turns import Turns
from semantic_recall.types import Message, ResourceInfo, Scope, ThreadInfo, Vector


class SemanticRecall(Turns):
    """Finds the past messages that matter and puts them before the model.

    Open one with `SemanticRecall.open`, or make one from parts (see
    `semantic_recall.core.RecallCore`). It is a
    context manager, also with `async with`. Each async method does what its sync twin does, with
    one thread hop; a natively async embedder is awaited.
    """

    id = "semantic-recall"
    name = "SemanticRecall"

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        embedder: Embedder | str | None = opening.DEFAULT_EMBEDDER,
        index_name: str | None = None,
        options: RecallOptions | None = None,
        settings: Settings | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> Self:
        """Open the memory in a folder, or create it.

        Args:
            path: The folder. It holds recall.sqlite3 (the truth) and chroma/ (the vector index).
                Any number of processes may open it; one at a time writes the index for all.
                Or a PostgreSQL URL (postgresql://...): everything is kept in that database.
            embedder: An `Embedder`; "wordllama" (default, offline), "multilingual" (needs the
                extra) or "hash" (for tests); None searches by words alone.
            index_name: Names the collections of the vector index; made from the embedder's
                fingerprint when not given.
            options: What a recall does unless a call says otherwise.
            settings: Limits, hooks and logger.
            **overrides: Any option of `RecallOptions`, on top of `options`.

        Raises:
            VectorSpaceMismatchError: The memory was embedded by another embedder.
            StoreError: The database cannot be opened.
            ConfigurationError: An option is wrong, or an extra is not installed.
        """
        settings = settings or Settings()
        parts = opening.parts(path, embedder, index_name, index_process=settings.index_process)
        wanted = (options or RecallOptions()).replace(**overrides)
        try:
            return cls(parts.store, parts.index, parts.embedder, wanted, settings)
        except BaseException:
            parts.store.close()
            raise

    @property
    def memory_id(self) -> str:
        """What names the stored memory, the same in every process that opens it.

        Raises:
            StoreError: The database failed.
        """
        return self._store.setting("memory_id", uuid.uuid4().hex)

    @property
    def embedder_name(self) -> str | None:
        """The fingerprint of the embedder; None in a memory that searches by words alone."""
        return None if self._embedder is None else self._embedder.space.name

    def find(
        self, ids: Sequence[str], *, thread_id: str | None = None, resource_id: str | None = None
    ) -> list[Message]:
        """Return the messages with these ids, in the order in which they were stored.

        Ids that no message has are left out; one may stand in several threads of a resource.

        Raises:
            InvalidScopeError: Neither thread_id nor resource_id was given.
            StoreError: The database failed.
        """
        scope = Scope(resource_id, thread_id)
        found = self._store.keys(scope, list(dict.fromkeys(ids)))
        messages = self._store.fetch(scope, [key for keys in found.values() for key in keys])
        return [messages[key] for key in sorted(messages)]

    async def afind(
        self, ids: Sequence[str], *, thread_id: str | None = None, resource_id: str | None = None
    ) -> list[Message]:
        """Do what `find` does, without blocking the event loop."""
        return await asyncio.to_thread(self.find, ids, thread_id=thread_id, resource_id=resource_id)

    async def aremember(
        self,
        messages: Incoming | Iterable[Incoming],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        background: bool = False,
        strict: bool = False,
    ) -> list[Message]:
        """Do what `remember` does, without blocking the event loop."""
        return await self._writer.aremember(
            messages,
            thread_id=thread_id,
            resource_id=resource_id,
            background=background,
            strict=strict,
        )

    async def arecall(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        query_vector: Vector | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> Recall:
        """Do what `recall` does, without blocking the event loop."""
        return await self._recaller.arecall(
            self._question(query, thread_id, resource_id, overrides), query_vector
        )

    async def aforget(
        self,
        *,
        ids: Sequence[str] | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        secure: bool = False,
    ) -> ForgetReceipt:
        """Do what `forget` does, without blocking the event loop."""
        return await asyncio.to_thread(
            self.forget, ids=ids, thread_id=thread_id, resource_id=resource_id, secure=secure
        )

    async def ahistory(
        self, thread_id: str, resource_id: str | None = None, *, last: int | None = 50
    ) -> list[Message]:
        """Do what `history` does, without blocking the event loop."""
        return await asyncio.to_thread(self.history, thread_id, resource_id, last=last)

    async def athreads(self, resource_id: str | None = None) -> list[ThreadInfo]:
        """Do what `threads` does, without blocking the event loop."""
        return await asyncio.to_thread(self.threads, resource_id)

    async def aresources(self) -> list[ResourceInfo]:
        """Do what `resources` does, without blocking the event loop."""
        return await asyncio.to_thread(self.resources)

    async def astats(self) -> Stats:
        """Do what `stats` does, without blocking the event loop."""
        return await asyncio.to_thread(self.stats)

    async def areindex(
        self, embedder: Embedder | None = None, *, progress: Progress | None = None
    ) -> ReindexReport:
        """Do what `reindex` does, without blocking the event loop."""
        return await asyncio.to_thread(self.reindex, embedder, progress=progress)

    async def averify(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> VerifyReport:
        """Do what `verify` does, without blocking the event loop."""
        return await asyncio.to_thread(self.verify, repair=repair, progress=progress)

    async def aflush(self, timeout: float | None = None) -> bool:
        """Do what `flush` does, without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    async def aclose(self) -> None:
        """Do what `close` does, without blocking the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
