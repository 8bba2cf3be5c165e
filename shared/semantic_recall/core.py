"""The sync half of a memory: remember, recall, forget, list, look after."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from typing_extensions import Unpack

from semantic_recall import maintenance
from semantic_recall.erasure import Eraser, ForgetReceipt
from semantic_recall.errors import ConfigurationError
from semantic_recall.incoming import Incoming
from semantic_recall.indexer import Indexer
from semantic_recall.maintenance import ReindexReport, Stats, VerifyReport
from semantic_recall.options import RecallOptions, RecallOverrides
from semantic_recall.protocols import Embedder, MessageStore, VectorIndex
from semantic_recall.question import Question
from semantic_recall.recalling import Recaller
from semantic_recall.records import Progress
from semantic_recall.result import Recall
from semantic_recall.scope_cache import ScopeCache
from semantic_recall.searching import Searcher
from semantic_recall.settings import Settings
from semantic_recall.types import Message, ResourceInfo, Scope, ThreadInfo, Vector
from semantic_recall.vector_space import open_space
from semantic_recall.vectorizer import Vectorizer
from semantic_recall.writing import Writer


class RecallCore:
    """A memory made from its parts; `SemanticRecall` adds `open` and the async methods.

    Safe to call from many threads: one instance serves a whole process.

    Args:
        store: The truth; closed with the memory.
        index: Opens the vector index, or raises `IndexLockedError` while another process owns
            it; None for a memory that always searches exactly. Closed with the memory.
        embedder: None searches by words alone.
        options: What a recall does unless a call says otherwise.
        settings: Limits, hooks and logger.

    Raises:
        VectorSpaceMismatchError: The store holds vectors of another embedder.
    """

    def __init__(
        self,
        store: MessageStore,
        index: Callable[[], VectorIndex] | None = None,
        embedder: Embedder | None = None,
        options: RecallOptions | None = None,
        settings: Settings | None = None,
    ) -> None:
        self._store = store
        self._options = options or RecallOptions()
        self._settings = settings or Settings()
        self._open_index = index
        self._assemble(embedder)

    def _assemble(self, embedder: Embedder | None) -> None:
        store, settings, log = self._store, self._settings, self._settings.logger
        telemetry = settings.telemetry
        self._embedder = embedder
        self._vectorizer: Vectorizer | None = None
        if embedder is not None:
            open_space(store, embedder)
            self._vectorizer = Vectorizer(store, embedder, logger=log, telemetry=telemetry)
        embed = None if self._vectorizer is None else self._vectorizer.embed_pending
        self._indexer = Indexer(store, self._open_index, embed, logger=log, telemetry=telemetry)
        self._cache = ScopeCache(store, limit_bytes=settings.cache_bytes)
        searcher = Searcher(
            store,
            self._cache,
            index=self._indexer.index,
            exact_limit=settings.exact_limit,
            logger=log,
        )
        self._writer = Writer(store, self._vectorizer, self._indexer, settings)
        self._recaller = Recaller(
            store,
            self._vectorizer,
            searcher,
            secret=bytes.fromhex(store.setting("fence_secret", secrets.token_hex(16))),
            settings=settings,
        )
        self._eraser = Eraser(store, self._vectorizer, self._indexer, self._cache, telemetry, log)
        vectors = None if self._vectorizer is None else self._vectorizer.cache
        telemetry.watch(store, self._cache, vectors)
        if embedder is not None:
            self._indexer.wake()  # what an earlier process left undone

    @property
    def options(self) -> RecallOptions:
        """What a recall does unless a call says otherwise."""
        return self._options

    @property
    def settings(self) -> Settings:
        """Limits, hooks and logger."""
        return self._settings

    def remember(
        self,
        messages: Incoming | Iterable[Incoming],
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        background: bool = False,
        strict: bool = False,
    ) -> list[Message]:
        """Store and embed messages; returns them as stored, with their ids.

        They are committed before anything slow happens. If the embedder fails they stay stored,
        findable by words, and are embedded later; that is logged as a warning.

        Args:
            messages: One or many: `Message`, or mappings with role and content (see
                `semantic_recall.incoming.as_messages`). The same id again replaces.
            thread_id: The thread of mappings that name none.
            resource_id: The resource of mappings that name none.
            background: Return once they are committed and embed in the background.
            strict: Raise when the embedder fails (they are stored all the same).

        Raises:
            ConfigurationError: An id is missing or invalid; nothing was stored.
            StoreError: The database failed; nothing was stored.
            EmbedderError: The embedder failed and `strict` is set.
            AbortTurn: The hook `before_store` stopped it; nothing was stored.
        """
        return self._writer.remember(
            messages,
            thread_id=thread_id,
            resource_id=resource_id,
            background=background,
            strict=strict,
        )

    def recall(
        self,
        query: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        query_vector: Vector | None = None,
        **overrides: Unpack[RecallOverrides],
    ) -> Recall:
        """Find the past messages that matter for `query`, with their neighbours.

        Args:
            query: What is searched for; blank finds nothing.
            thread_id: The current thread: what scope "thread" searches, what splits
                `same_thread` from `cross_thread`, and what a follow-up ("And why?") is about.
            resource_id: The owner; needed with scope "resource" (the default).
            query_vector: The query's embedding, shape (dimensions,), if it is known already.
            **overrides: Any option of `RecallOptions`, for this call.

        Raises:
            InvalidScopeError: The id that the scope needs is missing.
            InvalidOptionError: An option has a value that it cannot have.
            EmbedderError: The query could not be embedded.
            StoreError: The database failed.
        """
        return self._recaller.recall(
            self._question(query, thread_id, resource_id, overrides), query_vector
        )

    def _question(
        self,
        query: str,
        thread_id: str | None,
        resource_id: str | None,
        overrides: RecallOverrides,
        *,
        words_suffice: bool = False,
    ) -> Question:
        return Question(
            text=query,
            options=self._options.replace(**overrides),
            thread_id=thread_id,
            resource_id=resource_id,
            words_suffice=words_suffice,
        )

    def forget(
        self,
        *,
        ids: Sequence[str] | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        secure: bool = False,
    ) -> ForgetReceipt:
        """Delete messages and everything made from them; returns what a recount found.

        Args:
            ids: Only these messages of the thread or resource; None: all of it.
            thread_id: The thread.
            resource_id: The thread's owner, or, without a thread_id, everything of the owner.
            secure: Overwrite the freed bytes as well (slow: the files are rewritten).

        Raises:
            InvalidScopeError: Neither thread_id nor resource_id was given.
            StoreError: The database failed.
        """
        return self._eraser.forget(
            ids=ids, thread_id=thread_id, resource_id=resource_id, secure=secure
        )

    def history(
        self, thread_id: str, resource_id: str | None = None, *, last: int | None = 50
    ) -> list[Message]:
        """Return the last messages of a thread (all with None), oldest first."""
        return self._store.history(Scope(resource_id, thread_id), last=last)

    def threads(self, resource_id: str | None = None) -> list[ThreadInfo]:
        """Return the threads of a resource, or all threads; the newest first."""
        return self._store.threads(resource_id)

    def resources(self) -> list[ResourceInfo]:
        """Return the resources that have messages."""
        return self._store.resources()

    def messages(
        self, *, thread_id: str | None = None, resource_id: str | None = None
    ) -> Iterator[Message]:
        """Yield every message of a thread, of a resource, or of the whole memory, in order."""
        everything = thread_id is None and resource_id is None
        return self._store.export(None if everything else Scope(resource_id, thread_id))

    def stats(self) -> Stats:
        """Return the size and state of the memory."""
        size = self._store.size()
        active = maintenance.active_space(self._store)
        space = None if active is None else active.space
        return Stats(
            messages=size["messages"],
            threads=size["threads"],
            resources=size["resources"],
            vectors=size["vectors"],
            pending=size["pending"],
            index_lag=size["outbox"],
            bytes=size["bytes"],
            embedder=None if space is None else space.name,
            dimensions=None if space is None else space.dimensions,
            owns_index=self._indexer.owns_index,
            cache_bytes=self._cache.nbytes,
        )

    def reindex(
        self, embedder: Embedder | None = None, *, progress: Progress | None = None
    ) -> ReindexReport:
        """Embed everything with `embedder` (default: the present one) and switch to it.

        A stopped run goes on where it was when it is called again.

        Raises:
            ConfigurationError: The memory has no embedder and none was given.
            EmbedderError: The embedder failed; recall still uses the old vectors.
        """
        embedder = embedder or self._embedder
        if embedder is None:
            raise ConfigurationError("reindex needs an embedder; this memory was opened with none")
        report = maintenance.reindex(self._store, self._indexer, embedder, self._settings, progress)
        if embedder is not self._embedder:
            self._indexer.close()
            self._assemble(embedder)
        return report

    def verify(self, *, repair: bool = False, progress: Progress | None = None) -> VerifyReport:
        """Compare the store with itself and with the vector index.

        Args:
            repair: Rebuild the vector index from the store when they differ.
            progress: Called with the vectors compared and their number.
        """
        return maintenance.verify(self._store, self._indexer, repair=repair, progress=progress)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything stored is embedded and indexed; False when time ran out.

        What the embedder refuses is tried once more; the index of another process is left to that.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        if self._vectorizer is not None:
            # Not left to the thread, which lets failures wait. The second try is one by one.
            in_vain = 0
            while in_vain < 2:
                done = self._vectorizer.embed_pending(maintenance.BATCH, due_only=False)
                in_vain = 0 if done else in_vain + 1
                if deadline is not None and time.monotonic() > deadline:
                    return False
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        return self._indexer.flush(left, bulk=True)

    def close(self) -> None:
        """Stop the background work and release the database and the index; twice is fine."""
        self._indexer.close()
        self._store.close()
