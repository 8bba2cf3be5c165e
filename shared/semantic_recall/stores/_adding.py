"""Adding and replacing messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, insert, select, update

from semantic_recall.records import Embedded, MessageRecord, Part, Stored
from semantic_recall.stores import _queues, _scopes
from semantic_recall.stores._backend import Indexed, NewVectors
from semantic_recall.stores._database import UsesDatabase, retried
from semantic_recall.stores._lists import among, listed_pairs, paired
from semantic_recall.stores._schema import messages, resources, terms, threads
from semantic_recall.stores._spaces import space_key
from semantic_recall.stores._statements import Statement, Transaction
from semantic_recall.stores._text import escape, to_json, to_microseconds
from semantic_recall.stores._writing_vectors import Owned, check_shape, write_vectors

TERM = np.dtype("<u4")

_Identity = tuple[int, str]
"""Thread key and escaped message id."""


@dataclass(slots=True)
class _Change:
    """One message of the batch: what it becomes and what it was."""

    record: MessageRecord
    thread: _scopes.ThreadId
    entry: _scopes.Entry
    key: int = 0
    is_new: bool = True
    old_digest: bytes | None = None
    old_part: int = Part.HIDDEN

    @property
    def changed(self) -> bool:
        return self.old_digest != self.record.digest or self.old_part != self.record.part

    @property
    def loses_vectors(self) -> bool:
        return not self.is_new and (
            self.old_digest != self.record.digest or self.record.part != Part.SEARCHABLE
        )


class Adding(UsesDatabase):
    """The part of the store that adds messages."""

    @retried
    def add(
        self, records: Sequence[MessageRecord], embedded: Embedded | None = None, /
    ) -> list[Stored]:
        """See `MessageStore.add`."""
        if not records:
            return []
        if embedded is not None:
            for vectors in embedded.vectors.values():
                check_shape(vectors, embedded.space, "a text")
        with self._db.write() as tx:
            return _add(tx, records, embedded, self._outbox)


def _add(
    tx: Transaction, records: Sequence[MessageRecord], embedded: Embedded | None, outbox: bool
) -> list[Stored]:
    owners = [(record.message.resource_id, record.message.thread_id) for record in records]
    stored = {owner: _scopes.thread_ids(*owner) for owner in dict.fromkeys(owners)}
    ids = [stored[owner] for owner in owners]
    entries = _scopes.enter(tx, dict.fromkeys(ids))
    identities = [
        (entries[id].thread_key, escape(record.message.id))
        for id, record in zip(ids, records, strict=True)
    ]
    changes: dict[_Identity, _Change] = {}
    for identity, id, record in zip(identities, ids, records, strict=True):
        # A dict keeps the first place of a key: the last of the same id wins, where it first was.
        changes[identity] = _Change(record, id, entries[id])
    _look_up(tx, changes)
    _give_keys(tx, [change for change in changes.values() if change.is_new])
    done = list(changes.values())
    _write_messages(tx, changes)
    _write_terms(tx, done)
    _count(tx, done)
    _queues.drop_vectors(tx, [c.key for c in done if c.loses_vectors], outbox=outbox)
    unembedded = [c for c in done if c.changed and c.record.part == Part.SEARCHABLE]
    written = _write_vectors(tx, unembedded, embedded, outbox)
    _queues.require(tx, [c.key for c in unembedded], done=written)
    keys_written = {key for key, _ in written}
    return [
        Stored(change.key, change.changed, change.key in keys_written)
        for change in (changes[identity] for identity in identities)
    ]


def _write_vectors(
    tx: Transaction, changes: Sequence[_Change], embedded: Embedded | None, outbox: bool
) -> set[tuple[int, int]]:
    """Write the vectors that came with the messages; returns (message, space) of each."""
    space = None if embedded is None else space_key(tx, embedded.space)
    if embedded is None or space is None:
        return set()
    known = embedded.vectors
    rows = [
        Owned(
            NewVectors(
                change.key,
                change.entry.resource_key,
                change.entry.thread_key,
                known[change.record.digest],
            ),
            change.thread,
        )
        for change in changes
        if change.record.digest in known
    ]
    new = {change.key for change in changes if change.is_new}
    write_vectors(tx, space, rows, replaced={}, outbox=outbox, new=new)
    return {(row.vectors.key, space) for row in rows}


_PAIRS, _JOINED = paired(messages.c.thread_key, messages.c.id, "pairs")
_EXISTING = Statement(
    select(
        messages.c.thread_key, messages.c.id, messages.c.key, messages.c.digest, messages.c.part
    ).select_from(_PAIRS.join(messages, _JOINED))
)


def _look_up(tx: Transaction, changes: dict[_Identity, _Change]) -> None:
    pairs = [identity for identity, change in changes.items() if not change.entry.is_new]
    if not pairs:
        return
    for thread_key, id, key, digest, part in tx.all(_EXISTING, pairs=listed_pairs(pairs)):
        change = changes[thread_key, id]
        change.key, change.is_new, change.old_digest, change.old_part = key, False, digest, part


def _give_keys(tx: Transaction, new: Sequence[_Change]) -> None:
    if not new:
        return
    for key, change in zip(tx.backend.new_keys(tx, len(new)), new, strict=True):
        change.key = key


_CONTENT = (
    "part", "version", "created_at", "digest", "role", "name", "metadata", "payload", "text",
)  # fmt: skip
_INSERT = Statement(insert(messages), ("key", "thread_key", "resource_key", "id", *_CONTENT))
_REPLACE = Statement(update(messages).where(messages.c.key == bindparam("at")), _CONTENT)


def _write_messages(tx: Transaction, changes: dict[_Identity, _Change]) -> None:
    new: list[dict[str, Any]] = []
    replaced: list[dict[str, Any]] = []
    for (thread_key, id), change in changes.items():
        row = _row(change)
        if change.is_new:
            row["key"] = change.key
            row["thread_key"] = thread_key
            row["resource_key"] = change.entry.resource_key
            row["id"] = id
            new.append(row)
        else:
            row["at"] = change.key
            replaced.append(row)
    tx.many(_INSERT, new)
    tx.many(_REPLACE, replaced)


def _row(change: _Change) -> dict[str, Any]:
    message = change.record.message
    return {
        "part": int(change.record.part),
        "version": change.entry.version,
        "created_at": to_microseconds(message.created_at),
        "digest": change.record.digest,
        "role": escape(message.role),
        "name": None if message.name is None else escape(message.name),
        "metadata": to_json(message.metadata) if message.metadata else None,
        "payload": None if message.payload is None else to_json(message.payload),
        "text": escape(message.text),
    }


_INSERT_TERMS = Statement(insert(terms), ("key", "terms"))


def _write_terms(tx: Transaction, changes: Sequence[_Change]) -> None:
    replaced = [change.key for change in changes if not change.is_new]
    if replaced:
        forget_terms(tx, replaced)
    kept = [(c, c.record.terms.astype(TERM, copy=False)) for c in changes if len(c.record.terms)]
    if not kept:
        return
    tx.many(
        _INSERT_TERMS, [{"key": change.key, "terms": words.tobytes()} for change, words in kept]
    )
    tx.backend.full_text.insert(
        tx,
        [Indexed(c.key, c.entry.resource_key, c.entry.thread_key, words) for c, words in kept],
    )


_OLD_TERMS = Statement(
    select(messages.c.key, messages.c.resource_key, messages.c.thread_key, terms.c.terms)
    .join_from(terms, messages, messages.c.key == terms.c.key)
    .where(among(terms.c.key, "keys"))
)
_DELETE_TERMS = Statement(terms.delete().where(among(terms.c.key, "keys")))


def forget_terms(tx: Transaction, keys: Sequence[int]) -> None:
    """Take messages out of terms and full text; the messages themselves must still be there."""
    wanted = tx.listed(keys)
    old = [
        Indexed(key, resource_key, thread_key, words_of(blob))
        for key, resource_key, thread_key, blob in tx.all(_OLD_TERMS, keys=wanted)
    ]
    tx.backend.full_text.delete(tx, old)
    tx.run(_DELETE_TERMS, keys=wanted)


def words_of(blob: bytes) -> NDArray[np.uint32]:
    """Return the terms in a stored blob."""
    return np.frombuffer(blob, dtype=TERM)


_COUNT_RESOURCES = Statement(
    update(resources)
    .where(resources.c.key == bindparam("at"))
    .values(recallable=resources.c.recallable + bindparam("n"))
)
_COUNT_THREADS = Statement(
    update(threads)
    .where(threads.c.key == bindparam("at"))
    .values(recallable=threads.c.recallable + bindparam("n"))
)
_HID_RESOURCES = Statement(
    update(resources)
    .where(resources.c.key == bindparam("at"))
    .values(deleted_version=bindparam("stamp"))
)
_HID_THREADS = Statement(
    update(threads)
    .where(threads.c.key == bindparam("at"))
    .values(deleted_version=bindparam("stamp"))
)


def _count(tx: Transaction, changes: Sequence[_Change]) -> None:
    by_resource: Counter[int] = Counter()
    by_thread: Counter[int] = Counter()
    hid: dict[int, _scopes.Entry] = {}
    for change in changes:
        was, now = change.old_part != Part.HIDDEN, change.record.part != Part.HIDDEN
        if was != now:
            by_resource[change.entry.resource_key] += now - was
            by_thread[change.entry.thread_key] += now - was
        if was and not now:
            hid[change.entry.thread_key] = change.entry
    count(tx, by_resource, by_thread)
    mark_deleted(tx, hid.values())


def count(tx: Transaction, by_resource: Counter[int], by_thread: Counter[int]) -> None:
    """Change the numbers of recallable messages by these differences."""
    for statement, differences in ((_COUNT_RESOURCES, by_resource), (_COUNT_THREADS, by_thread)):
        tx.many(statement, [{"at": key, "n": n} for key, n in differences.items() if n])


def mark_deleted(tx: Transaction, entries: Iterable[_scopes.Entry]) -> None:
    """Remember that messages of these threads left at the current version."""
    for entry in entries:
        tx.run(_HID_RESOURCES, at=entry.resource_key, stamp=entry.version)
        tx.run(_HID_THREADS, at=entry.thread_key, stamp=entry.version)
