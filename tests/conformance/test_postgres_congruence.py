"""The same conversations in SQLite and in PostgreSQL: the same answers to every question."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from semantic_recall import Message, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.records import MessageRecord, MessageVectors, Part, ScopeRows
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Scope, VectorSpace
from tests.postgres import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]

NOON = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)
SPACES = (VectorSpace("one", 6), VectorSpace("two", 9))
OWNERS = ("anna", "Anna", "anna ", "x" * 1024, "a\x00b", "\ud800", "🙂" * 1024, "%", None)
THREADS = ("t1", "T1", "t1\x00", "ü" * 1024)
WORDS = [
    "tea", "coffee", "the", "a", "of", "moon", "ship", "garden", "is", "was", "train", "猫",
    "naïve", "\x00", "\udfff", "%s", "{x}", "'", "\\",
]  # fmt: skip
"""Some are rare, some common, some hard to store."""


class Pair:
    """Two stores that are told and asked the same."""

    def __init__(self, first: SQLMessageStore, second: SQLMessageStore) -> None:
        self.stores = (first, second)

    def ask(self, question: Callable[[SQLMessageStore], object]) -> object:
        first, second = (question(store) for store in self.stores)
        assert first == second
        return first


@pytest.fixture
def pair(tmp_path: Path, postgres_url: str) -> Iterator[Pair]:
    with (
        SQLMessageStore.open(tmp_path / "recall.sqlite3") as first,
        SQLMessageStore.connect(postgres_url) as second,
    ):
        yield Pair(first, second)


def any_scope(chance: random.Random) -> Scope:
    owner = chance.choice(OWNERS)
    if owner is not None and chance.random() < 0.4:
        return Scope(owner)
    return Scope(owner, chance.choice(THREADS))


def any_record(chance: random.Random) -> MessageRecord:
    words = chance.choices(WORDS, [1 / (n + 1) for n in range(len(WORDS))], k=chance.randint(1, 9))
    text = " ".join(words)
    part = chance.choices([Part.SEARCHABLE, Part.CONTEXT, Part.HIDDEN], [6, 2, 1])[0]
    terms = [abs(hash_of(word)) % 2**32 for word in words] if part == Part.SEARCHABLE else []
    return MessageRecord(
        message=Message(
            role=chance.choice(["user", "assistant", "tool\x00"]),
            text=text,
            id=f"{chance.randint(1, 12)}\x1a",
            thread_id=chance.choice(THREADS),
            resource_id=chance.choice(OWNERS),
            name=chance.choice([None, "Ännchen"]),
            created_at=NOON + timedelta(microseconds=chance.randint(-(10**12), 10**12)),
            metadata=chance.choice([{}, {"tag": "x"}, {"n": 1.5, "deep": {"\ud800": [None]}}]),
            payload=chance.choice([None, {}, {"a": "\x00"}]),
        ),
        part=part,
        terms=np.array(terms, dtype=np.uint32),
        digest=hash_of(text).to_bytes(16, "big"),
    )


def hash_of(text: str) -> int:
    return int.from_bytes(text.encode("utf-8", "surrogatepass")[:16].ljust(16), "big")


def write(chance: random.Random, pair: Pair) -> None:
    """Change both stores in the same random way."""
    kind = chance.choices(["add", "vectors", "delete", "postpone", "acknowledge"], [8, 6, 1, 1, 1])
    space = chance.choice(SPACES)
    if kind == ["add"]:
        records = [any_record(chance) for _ in range(chance.randint(1, 6))]
        pair.ask(lambda store: store.add(records))
    elif kind == ["vectors"]:
        waiting = pair.stores[0].pending(space, limit=5, due_only=False)
        rows = [
            MessageVectors(item.key, item.digest, any_vectors(chance, space)) for item in waiting
        ]
        pair.ask(lambda store: store.set_vectors(space, rows))
    elif kind == ["delete"]:
        scope = any_scope(chance)
        ids = None if chance.random() < 0.3 else [f"{n}\x1a" for n in range(4)]
        pair.ask(lambda store: deleted(store, scope, ids))
    elif kind == ["postpone"]:
        keys = [item.key for item in pair.stores[0].pending(space, limit=2, due_only=False)]
        pair.ask(lambda store: store.postpone(space, keys, seconds=3600))
    else:
        pair.ask(lambda store: store.acknowledge(store.operations(limit=3)))


def deleted(store: SQLMessageStore, scope: Scope, ids: list[str] | None) -> object:
    removal = store.delete(scope, ids=ids)
    remains = dict(store.remains(removal.keys))
    return removal.messages, removal.threads, removal.vectors, list(removal.keys), remains


def any_vectors(chance: random.Random, space: VectorSpace) -> NDArray[np.float32]:
    chunks = chance.choice([1, 1, 1, 3])
    numbers = np.random.default_rng(chance.randint(0, 2**32)).normal(
        size=(chunks, space.dimensions)
    )
    return numbers.astype(np.float32)


def plain(rows: ScopeRows) -> object:
    arrays = (
        rows.keys, rows.threads, rows.created_at, rows.searchable, rows.digests, rows.terms,
        rows.term_counts, rows.vector_keys,
    )  # fmt: skip
    vectors = (rows.vectors.shape, rows.vectors.dtype.name, rows.vectors.tobytes())
    return rows.version, list(rows.roles), [array.tolist() for array in arrays], vectors


def compare(chance: random.Random, pair: Pair) -> None:
    """Ask both stores everything about a scope, and about the whole."""
    scope, space = any_scope(chance), chance.choice([*SPACES, None])
    since = chance.randint(0, 8)
    keys = sorted(chance.sample(range(1, 60), 20))
    terms = sorted({hash_of(word) % 2**32 for word in WORDS})
    ids = [f"{n}\x1a" for n in range(1, 13)]
    pair.ask(lambda store: store.state(scope))
    pair.ask(lambda store: plain(store.rows(scope, space)))
    pair.ask(lambda store: plain(store.rows(scope, space, since=since)))
    pair.ask(lambda store: plain(store.rows(scope, space, keys=keys)))
    pair.ask(lambda store: store.deleted_since(scope, since))
    pair.ask(lambda store: store.lexical_candidates(scope, terms, limit=7))
    pair.ask(lambda store: store.metadata(scope))
    pair.ask(lambda store: dict(sorted(store.fetch(scope, keys).items())))
    pair.ask(lambda store: store.keys(scope, ids))
    pair.ask(lambda store: dict(sorted(store.window(scope, keys, before=2, after=1).items())))
    pair.ask(lambda store: (store.history(scope, last=3), store.history(scope)))
    pair.ask(lambda store: list(store.export(scope)))
    pair.ask(lambda store: (store.threads(), store.threads(scope.resource_id), store.resources()))
    pair.ask(lambda store: store.spaces())
    pair.ask(lambda store: {**store.size(), "bytes": 0})
    pair.ask(lambda store: store.check())
    for one in SPACES:
        pair.ask(partial(about_space, space=one))
    pair.ask(operations)


def about_space(store: SQLMessageStore, space: VectorSpace) -> object:
    digests = [hash_of(word).to_bytes(16, "big") for word in WORDS]
    return (
        list(store.vector_ids(space)),
        store.pending(space, limit=99),
        store.pending(space, limit=4, due_only=False),
        # Which of the messages with the same text gives its vectors is not said.
        set(store.find_vectors(space, digests)),
    )


def add_space(store: SQLMessageStore, space: VectorSpace) -> None:
    store.add_space(space, active=space is SPACES[0])


def operations(store: SQLMessageStore) -> object:
    return [
        (op.kind, op.space, op.scope, op.key, op.vectors.tobytes(), op.chunks)
        for op in sorted(store.operations(limit=999), key=lambda op: (op.id, op.key))
    ]


@pytest.mark.parametrize("seed", range(4))
def test_every_method_answers_alike(pair: Pair, seed: int) -> None:
    """Random writes, with every question in between; texts and ids of every kind."""
    chance = random.Random(seed)
    for space in SPACES:
        pair.ask(partial(add_space, space=space))
    for step in range(48):
        write(chance, pair)
        if step % 6 == 5:
            compare(chance, pair)
    pair.ask(lambda store: (store.queue_all(SPACES[0]), operations(store)))
    pair.ask(lambda store: store.drop_space(SPACES[1]))
    compare(chance, pair)


@pytest.mark.parametrize("exact_limit", [100_000, 0])
def test_rankings_are_the_same(tmp_path: Path, postgres_url: str, exact_limit: int) -> None:
    """The same recalls, hit for hit and score for score, exact and by candidates."""
    chance = random.Random(5)
    settings = Settings(exact_limit=exact_limit)
    with (
        SemanticRecall.open(tmp_path, embedder=HashEmbedder(), settings=settings) as first,
        SemanticRecall.open(postgres_url, embedder=HashEmbedder(), settings=settings) as second,
    ):
        subjects = [
            "tea",
            "ships",
            "gardens",
            "trains",
            "moons",
            "cats",
            "letters",
            "bread",
            "rivers",
            "clocks",
        ]
        verbs = [
            "likes",
            "dislikes",
            "remembers",
            "paints",
            "forgets",
            "sells",
            "repairs",
            "counts",
        ]
        for n in range(120):
            thread, owner = f"t{n % 7}", ("anna", "ben")[n % 2]
            text = f"{chance.choice(verbs)} {chance.choice(subjects)} and {chance.choice(subjects)}"
            text += "?" if n % 5 == 0 else f", number {n}"
            turn = Message(
                role=("user", "assistant")[n % 3 == 0], text=text, id=str(n), thread_id=thread,
                resource_id=owner, created_at=NOON + timedelta(minutes=n),
            )  # fmt: skip
            for memory in (first, second):
                memory.remember(turn)
        for memory in (first, second):
            memory.forget(ids=["4", "10", "16"], resource_id="anna")
            assert memory.flush(30)
        queries = [f"{verb} {subject}" for verb in verbs[:4] for subject in subjects[:5]]
        # What the default ranking treats in its own way: who is asked about, and when.
        queries += ["What did you say about bread?", "what did I tell you about rivers in March?"]
        queries += ["clocks", "Who paints tea and moons, and who sells letters and trains?", "xyz"]
        for query in queries:
            for ranking in ("hybrid", "dense"):
                recalls = [
                    memory.recall(
                        query, resource_id="anna", thread_id="t0", top_k=5, ranking=ranking
                    )
                    for memory in (first, second)
                ]
                assert recalls[0].messages == recalls[1].messages
                assert len(recalls[0].hits) == 5
