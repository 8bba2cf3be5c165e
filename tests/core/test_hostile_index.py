"""A vector index that lies: a recall stays in its scope, does not fail, and still fills top_k."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, cycle
from pathlib import Path

import pytest

from semantic_recall import RecallOptions, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.records import vector_key
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace

OWNERS = ("user1", "user10", "User1", "user1 ")


class LyingIndex:
    """Keeps what it is given, and answers a search with what `lie` makes of it."""

    def __init__(self) -> None:
        self.kept: dict[str, VectorRecord] = {}
        self.deleted: list[str] = []
        self.lie: Callable[[Scope], object] = lambda scope: []
        self.asked = 0

    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        self.kept.update({record.id: record for record in records})

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        for id in ids:
            self.kept.pop(id, None)
            self.deleted.append(id)

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        self.asked += 1
        return self.lie(scope)  # type: ignore[return-value]

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        yield from list(self.kept)

    def drop(self, space: VectorSpace, /) -> None:
        self.kept.clear()

    def scrub(self) -> None:
        self.deleted.clear()

    def close(self) -> None:
        """There is nothing to close."""

    def of(self, scope: Scope, *, others: bool = False) -> list[str]:
        """Return the ids of a resource, or those of everybody else."""
        return [
            id
            for id, record in self.kept.items()
            if (record.scope.resource_id == scope.resource_id) is not others
        ]


@pytest.fixture
def index() -> LyingIndex:
    return LyingIndex()


@pytest.fixture
def memory(tmp_path: Path, index: LyingIndex) -> Iterator[SemanticRecall]:
    """40 messages of each owner, in four threads each; every scope asks the index."""
    memory = SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: index,
        HashEmbedder(64),
        RecallOptions(top_k=5, message_range=1),
        Settings(exact_limit=0),
    )
    with memory:
        for owner in OWNERS:
            for thread in range(4):
                memory.remember(
                    [
                        {"role": "user", "content": f"pin {n} of {owner}", "id": f"m{n}"}
                        for n in range(thread * 10, thread * 10 + 10)
                    ],
                    thread_id=f"t{thread}",
                    resource_id=owner,
                )
        assert memory.flush()
        assert memory.recall("open it", resource_id="user1") is not None
        assert memory.flush(5)
        yield memory


def asked(memory: SemanticRecall, index: LyingIndex, query: str = "pin 17") -> Mapping[str, int]:
    """Recall for every owner and thread; return what was dropped for the first owner."""
    before = index.asked
    dropped: list[Mapping[str, int]] = []
    for owner in OWNERS:
        for ranking in ("hybrid", "dense"):
            recalled = memory.recall(query, resource_id=owner, ranking=ranking)
            dropped.append(recalled.dropped)
            assert {m.message.resource_id for m in recalled} == {owner}
            assert all(m.message.text.endswith(f"of {owner}") for m in recalled)
            assert len(recalled.hits) == 5
            assert all(hit.score is not None and math.isfinite(hit.score) for hit in recalled.hits)
        recalled = memory.recall(query, resource_id=owner, thread_id="t1", scope="thread")
        assert {(m.message.resource_id, m.message.thread_id) for m in recalled} == {(owner, "t1")}
        assert len(recalled.hits) == 5
    assert index.asked == before + 3 * len(OWNERS)
    return dropped[0]


def hits(ids: Sequence[str], score: float = 0.9) -> list[Hit]:
    return [Hit(id, score) for id in ids]


def test_ids_of_other_tenants(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: hits(index.of(scope, others=True))
    assert asked(memory, index) == {"not in scope": 120}
    assert asked(memory, index, "words that nobody wrote") == {"not in scope": 120}


def test_ids_of_other_tenants_before_ones_own(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: hits(index.of(scope, others=True) + index.of(scope))
    assert asked(memory, index) == {"not in scope": 120}


def test_ids_of_other_threads(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: hits(index.of(Scope(scope.resource_id)))
    asked(memory, index)
    recalled = memory.recall("pin 17", resource_id="user1", thread_id="t1", scope="thread")
    assert recalled.dropped == {"not in scope": 30}


def test_stale_ids(memory: SemanticRecall, index: LyingIndex) -> None:
    """Forgotten messages that the index still returns are neither shown nor missed."""
    before = set(index.kept)
    gone = [f"m{n}" for n in range(20)]
    assert memory.forget(ids=gone, resource_id="user1").complete
    assert len(index.deleted) == 20
    index.lie = lambda scope: hits(sorted(before))
    recalled = memory.recall("pin 17", resource_id="user1")
    assert not {m.message.id for m in recalled} & set(gone)
    assert len(recalled.hits) == 5
    assert recalled.dropped == {"not in scope": 140}


def test_the_vector_of_a_text_that_was_replaced(memory: SemanticRecall, index: LyingIndex) -> None:
    """The index points to a message for what it said before: it is scored by what it says now."""
    replaced = {"role": "user", "content": "nothing of user1", "id": "m17"}
    memory.remember(replaced, thread_id="t1", resource_id="user1")
    index.lie = lambda scope: hits(index.of(scope)[:1])
    recalled = memory.recall("pin 17", resource_id="user1", ranking="dense", top_k=40)
    assert "pin 17 of user1" not in {m.message.text for m in recalled}
    assert recalled.hits[0].message.id != "m17"


def test_duplicates(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: hits([index.of(scope)[3]] * 50)
    asked(memory, index)
    recalled = memory.recall("pin 17", resource_id="user1", ranking="dense")
    shown = [(m.message.thread_id, m.message.id) for m in recalled]
    assert len(shown) == len(set(shown))
    assert len(recalled.hits) == 5


MALFORMED: list[object] = [
    "", "x", "1", ".", "1.", ".0", "1.0.0", "1.0 ", " 1.0", "1.0\n", "-1.0", "+1.0", "1_0.0",
    "0x1.0", "1e3.0", "١.0", "９.0", "inf.0", "nan", "None", "9" * 18 + ".0", "9" * 40 + ".0",
    "1" * 10_000, "1.0; DROP TABLE messages",
    "%", "*", "\x00", "\ud800", None, 7, 7.0, b"1.0", ("1", "0"),
]  # fmt: skip


def test_malformed_ids(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: [Hit(id, 0.5) for id in MALFORMED]  # type: ignore[arg-type]
    assert asked(memory, index) == {"not in scope": len(MALFORMED)}


@pytest.mark.parametrize("id", [id for id in MALFORMED if id != "9" * 18 + ".0"], ids=ascii)
def test_malformed_ids_name_no_message(id: object) -> None:
    with pytest.raises(ValueError, match="not the id of a vector"):
        vector_key(id)  # type: ignore[arg-type]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, 1e300, -5.0, None, "0.9"])
def test_scores_that_are_no_scores(memory: SemanticRecall, index: LyingIndex, score: float) -> None:
    """They are not used: the store's own vectors are compared."""
    index.lie = lambda scope: hits(index.of(scope), score)
    assert asked(memory, index) == {}
    best = memory.recall("pin 17 of user1", resource_id="user1").hits[0]
    assert best.message.id == "m17"
    assert best.dense is not None
    assert -1.0 <= best.dense <= 1.0


def test_far_too_many_hits(memory: SemanticRecall, index: LyingIndex) -> None:
    """Also without an end: as many are read as were asked for."""
    index.lie = lambda scope: (Hit(f"{n}.0", 0.9) for n in count(1_000_000))
    assert asked(memory, index) == {"not in scope": 256}
    index.lie = lambda scope: (Hit(id, 0.9) for id in cycle(index.of(scope)))
    assert asked(memory, index) == {}


@pytest.mark.parametrize("answer", [None, 7, "1.0", [None], [("1.0", 0.5)], [{"id": "1.0"}]])
def test_an_answer_that_is_none(memory: SemanticRecall, index: LyingIndex, answer: object) -> None:
    index.lie = lambda scope: answer
    assert asked(memory, index) == {}


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, ConnectionError, KeyError])
def test_an_index_that_raises(
    memory: SemanticRecall,
    index: LyingIndex,
    error: type[Exception],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def lie(scope: Scope) -> list[Hit]:
        raise error("the index is out of order")

    index.lie = lie
    with caplog.at_level(logging.WARNING, "semantic_recall"):
        assert asked(memory, index) == {}
    assert "out of order" in caplog.text


def test_an_index_that_knows_nothing(memory: SemanticRecall, index: LyingIndex) -> None:
    """Words find what there is; without a word in common the whole scope is compared."""
    index.lie = lambda scope: []
    assert asked(memory, index) == {}
    assert asked(memory, index, "words that nobody wrote") == {}


def test_filters_are_filled_beyond_the_candidates(
    memory: SemanticRecall, index: LyingIndex
) -> None:
    """Candidates that a filter drops do not cost the messages that the index did not name."""
    index.lie = lambda scope: hits(index.of(scope)[:6])
    exclude = [f"m{n}" for n in range(10)]
    recalled = memory.recall("nobody wrote this", resource_id="user1", exclude_ids=exclude)
    assert len(recalled.hits) == 5
    assert not {m.message.id for m in recalled} & set(exclude)


def test_a_threshold_is_not_lowered(memory: SemanticRecall, index: LyingIndex) -> None:
    index.lie = lambda scope: hits(index.of(scope, others=True))
    recalled = memory.recall("pin 17 of user1", resource_id="user1", threshold=0.999_9)
    assert recalled.hits == ()
    assert recalled.dropped["not in scope"] == 120
    assert recalled.dropped["below threshold"] == 40
