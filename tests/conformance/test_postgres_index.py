"""pgvector keeps the contract of a vector index, written to through the store it searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import numpy as np
import pytest

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes.pgvector import PgVectorIndex
from semantic_recall.records import MessageRecord, MessageVectors, Part, vector_id, vector_key
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.testing.vector_index import VectorIndexSuite
from semantic_recall.types import Hit, Message, Scope, Vector, VectorRecord, VectorSpace
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


class StoredVectors:
    """Writes as the library does, into the store, and searches with the index.

    The suite makes up ids; the store gives out keys. So each vector is a message of its own with
    the suite's id, and the hits are translated back.
    """

    def __init__(self, store: SQLMessageStore) -> None:
        self._store = store
        self._index = PgVectorIndex(store)

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        self._index.upsert(space, [])
        if not np.isfinite([record.vector for record in records]).all():
            raise VectorIndexError("what the vectorizer refuses never reaches the store")
        self._store.add_space(space, active=False)
        stored = self._store.add([_message(space, record) for record in records])
        self._store.set_vectors(
            space,
            [
                MessageVectors(item.key, _digest(record.id), record.vector[np.newaxis])
                for item, record in zip(stored, records, strict=True)
            ],
        )

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        self._index.delete(space, ids)
        scopes: dict[Scope, list[str]] = {}
        for id, scope in ids.items():
            scopes.setdefault(scope, []).append(id)
        for scope, some in scopes.items():
            self._store.delete(scope, ids=some)

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        hits = self._index.search(space, vector, scope, top_k=top_k)
        messages = self._store.fetch(scope, [vector_key(hit.id) for hit in hits])
        return [Hit(messages[vector_key(hit.id)].id, hit.score) for hit in hits]

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        known = set(self._index.ids(space))
        for message in self._store.export(None):
            scope = Scope(message.resource_id, message.thread_id)
            (key,) = self._store.keys(scope, [message.id])[message.id]
            if vector_id(key, 0) in known:
                yield message.id

    def drop(self, space: VectorSpace, /) -> None:
        self._store.drop_space(space)
        self._index.drop(space)

    def scrub(self) -> None:
        self._index.scrub()

    def close(self) -> None:
        self._index.close()


def _message(space: VectorSpace, record: VectorRecord) -> MessageRecord:
    return MessageRecord(
        message=Message(
            role="user",
            text=record.id,
            id=record.id,
            thread_id=record.scope.thread_id or "",
            resource_id=record.scope.resource_id,
        ),
        part=Part.SEARCHABLE,
        terms=np.zeros(0, np.uint32),
        digest=_digest(record.id),
    )


def _digest(id: str) -> bytes:
    return blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class TestPgVector(VectorIndexSuite):
    @pytest.fixture
    def index(self, postgres_url: str) -> Iterator[StoredVectors]:
        with SQLMessageStore.connect(postgres_url, outbox=False) as store:
            index = StoredVectors(store)
            yield index
            index.close()
