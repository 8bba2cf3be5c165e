"""Looking after a memory: re-embed it, compare its parts, mend them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from semantic_recall.errors import EmbedderError, VectorIndexError
from semantic_recall.indexer import Indexer
from semantic_recall.owned_index import drop_left_behind, left_behind
from semantic_recall.protocols import Embedder, MessageStore
from semantic_recall.records import Progress, SpaceInfo
from semantic_recall.settings import Settings
from semantic_recall.types import VectorSpace
from semantic_recall.vectorizer import Vectorizer

BATCH = 512
"""How many messages are embedded at once where nobody waits for a single one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexReport:
    """What a reindex did."""

    space: VectorSpace
    embedded: int
    """Messages that were embedded in this run; those of an earlier, stopped run are not."""
    pending: int
    """Messages that the embedder refused; they stay findable by words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What a comparison of the parts of a memory found."""

    problems: Sequence[str] = ()
    """What is wrong inside the store, a line each."""
    vectors: int = 0
    """Vectors in the store."""
    indexed: int | None = None
    """Vectors in the index; None when another process owns it or there is none."""
    missing: int = 0
    """Vectors that the index lacks."""
    orphans: int = 0
    """Vectors in the index that the store does not have."""
    pending: int = 0
    """Messages that wait for their vectors."""
    damage: str | None = None
    """Why the index cannot be read; every vector then counts as missing."""
    repaired: bool = False

    @property
    def ok(self) -> bool:
        """True when nothing is wrong (any more)."""
        differs = self.missing or self.orphans or self.damage
        return not self.problems and (self.repaired or not differs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """The size and state of a memory."""

    messages: int
    threads: int
    resources: int
    vectors: int
    pending: int
    """Messages that wait for their vectors."""
    index_lag: int
    """Changes that the vector index has not seen yet."""
    bytes: int
    """Size of the SQL database."""
    embedder: str | None
    """The fingerprint of the vectors; None in a memory without vectors."""
    dimensions: int | None
    owns_index: bool
    """True when this process writes the vector index."""
    cache_bytes: int
    """What hot scopes take in memory."""


def active_space(store: MessageStore) -> SpaceInfo | None:
    """Return the space that recall uses, None in a memory without vectors."""
    return next((info for info in store.spaces() if info.active), None)


def reindex(
    store: MessageStore,
    indexer: Indexer,
    embedder: Embedder,
    settings: Settings,
    progress: Progress | None,
) -> ReindexReport:
    """Embed every message with `embedder`, then switch to it.

    What is embedded is kept at once, so a stopped run goes on where it was. Recall uses the old
    vectors until the switch; after it every other space is removed, also what runs that were
    stopped had left.

    Raises:
        EmbedderError: The embedder failed for everything that was left; nothing was switched.
    """
    old = active_space(store)
    space = embedder.space
    vectorizer = Vectorizer(store, embedder, logger=settings.logger, telemetry=settings.telemetry)
    if space in left_behind(store):
        drop_left_behind(store, indexer.index())  # what is filled must come after the active one
    store.add_space(space, active=old is not None and old.space == space)
    total = _pending(store, space)
    done = in_vain = 0
    while in_vain < 2:  # a batch that fails as a whole is tried one by one the second time
        if progress is not None:
            progress(done, total)
        embedded = vectorizer.embed_pending(BATCH, due_only=False)
        in_vain = 0 if embedded else in_vain + 1
        done += embedded
    left = _pending(store, space)
    if left and not done:
        raise EmbedderError(
            f"{space.name} could embed none of {left} messages (see the warnings); "
            "recall still uses the old vectors; run reindex again when the embedder works"
        )
    store.add_space(space, active=True)
    indexer.flush(bulk=True)  # opens the index, so that the old space can be dropped from it
    others = [info.space for info in store.spaces() if info.space != space]
    index = indexer.index()
    for other in others:
        # The index first: should the process end in between, the store still knows the space.
        if index is not None:
            index.drop(other)
        store.drop_space(other)
    if old is not None and old.space == space:
        indexer.rebuild(space)
    indexer.flush(bulk=True)
    return ReindexReport(space=space, embedded=done, pending=left)


def verify(
    store: MessageStore,
    indexer: Indexer,
    *,
    repair: bool,
    progress: Progress | None,
) -> VerifyReport:
    """Compare the store with itself and with the vector index; mend the index from the store.

    Vectors that a reindex would have removed, had its process not ended, are removed.

    Args:
        store: The truth.
        indexer: Owns the index, or knows that another process does.
        repair: Rebuild the index from the store when they differ.
        progress: Called with the vectors compared and their number.
    """
    problems = store.check()
    active = active_space(store)
    if active is None:
        return VerifyReport(problems=problems)
    space = active.space
    indexer.flush(bulk=True)
    active = active_space(store) or active  # what waited for its vectors may have got them
    index = indexer.index()
    drop_left_behind(store, index)
    if index is None:
        return VerifyReport(problems=problems, vectors=active.vectors, pending=active.pending)
    damage = None
    indexed: set[str] = set()
    try:
        indexed.update(index.ids(space))
    except VectorIndexError as error:
        damage = str(error)
        indexed.clear()
    missing = known = 0
    for known, (vector, _) in enumerate(store.vector_ids(space), start=1):
        if vector in indexed:
            indexed.discard(vector)
        else:
            missing += 1
        if progress is not None and known % 1000 == 0:
            progress(known, active.vectors)
    orphans = len(indexed)
    repaired = repair and bool(missing or orphans or damage)
    if repaired:
        indexer.rebuild(space)
        indexer.flush(bulk=True)
    return VerifyReport(
        problems=problems,
        vectors=known,
        indexed=known - missing + orphans,
        missing=missing,
        orphans=orphans,
        pending=active.pending,
        damage=damage,
        repaired=repaired,
    )


def _pending(store: MessageStore, space: VectorSpace) -> int:
    return next((info.pending for info in store.spaces() if info.space == space), 0)
