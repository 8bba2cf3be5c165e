"""What every vector index must do, as tests for pytest.

A binding is a class with a fixture, in a file `test_*.py`:

    from collections.abc import Iterator
    import pytest
    from semantic_recall.testing.vector_index import VectorIndexSuite

    class TestMyIndex(VectorIndexSuite):
        @pytest.fixture
        def index(self) -> Iterator[MyIndex]:
            index = MyIndex()
            yield index
            index.close()

Bind `DurableVectorIndexSuite` instead when the index keeps its vectors where it can be opened
again, and give it the fixture `reopen` too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from semantic_recall.errors import VectorIndexError
from semantic_recall.protocols import VectorIndex
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace

SPACE = VectorSpace("suite", 8)
OTHER_SPACE = VectorSpace("suite-2", 8)
ANNA = Scope("anna", "t1")


def vector(*values: float) -> Vector:
    """Return a vector of the suite's space that begins with `values` and ends with zeros."""
    row = np.zeros(SPACE.dimensions, dtype=np.float32)
    row[: len(values)] = values
    return row


def record(id: str, scope: Scope, *values: float) -> VectorRecord:
    """Return a record for the suite's space."""
    return VectorRecord(id=id, scope=scope, vector=vector(*values))


def ids(hits: list[Hit]) -> list[str]:
    """Return the ids, best first."""
    return [hit.id for hit in hits]


class VectorIndexSuite:
    """The contract of `VectorIndex`; give it a fixture `index` with an empty one."""

    @pytest.fixture
    def index(self) -> Iterator[VectorIndex]:
        """Yield an empty index and close it."""
        raise NotImplementedError("a binding gives the fixture `index`")

    # -- finding --------------------------------------------------------------------------------
    def test_empty_index_finds_nothing(self, index: VectorIndex) -> None:
        """Searching before anything was written is no error."""
        assert index.search(SPACE, vector(1), Scope("anna"), top_k=3) == []
        assert list(index.ids(SPACE)) == []

    def test_best_first_by_cosine(self, index: VectorIndex) -> None:
        """Direction counts and length does not; L2 or inner product would order otherwise."""
        index.upsert(
            SPACE,
            [
                record("far-but-parallel.0", ANNA, 100, 1),
                record("near-but-askew.0", ANNA, 1, 0.7),
                record("long-and-askew.0", ANNA, 500, 900),
            ],
        )
        hits = index.search(SPACE, vector(1), Scope("anna"), top_k=3)
        assert ids(hits) == ["far-but-parallel.0", "near-but-askew.0", "long-and-askew.0"]

    def test_scores_are_cosine_similarities(self, index: VectorIndex) -> None:
        """From 1 for the same direction over 0 to -1 for the opposite."""
        index.upsert(
            SPACE,
            [
                record("same.0", ANNA, 3),
                record("half.0", ANNA, 1, 3**0.5),
                record("square.0", ANNA, 0, 2),
                record("opposite.0", ANNA, -1),
            ],
        )
        hits = index.search(SPACE, vector(1), Scope("anna"), top_k=4)
        assert ids(hits) == ["same.0", "half.0", "square.0", "opposite.0"]
        assert [hit.score for hit in hits] == pytest.approx([1.0, 0.5, 0.0, -1.0], abs=1e-5)

    def test_top_k_limits(self, index: VectorIndex) -> None:
        """At most top_k come back; more than there are returns all of them."""
        index.upsert(SPACE, [record(f"{i}.0", ANNA, 1, i) for i in range(6)])
        assert ids(index.search(SPACE, vector(1), Scope("anna"), top_k=2)) == ["0.0", "1.0"]
        assert len(index.search(SPACE, vector(1), Scope("anna"), top_k=100)) == 6

    def test_chunks_of_a_message_are_vectors_of_their_own(self, index: VectorIndex) -> None:
        """Each chunk is found under its own id."""
        index.upsert(SPACE, [record("7.0", ANNA, 1), record("7.1", ANNA, 0, 1)])
        assert ids(index.search(SPACE, vector(0, 1), ANNA, top_k=2)) == ["7.1", "7.0"]

    @pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0], ids=["nan", "infinity", "zeros"])
    def test_query_without_direction_is_refused(self, index: VectorIndex, bad: float) -> None:
        """No arbitrary answer to a vector that is near to nothing."""
        index.upsert(SPACE, [record("1.0", ANNA, 1)])
        with pytest.raises(VectorIndexError):
            index.search(SPACE, vector(bad), Scope("anna"), top_k=1)

    def test_query_of_another_length_is_refused(self, index: VectorIndex) -> None:
        """The dimensions are the space's."""
        index.upsert(SPACE, [record("1.0", ANNA, 1)])
        with pytest.raises(VectorIndexError):
            index.search(SPACE, np.ones(3, dtype=np.float32), Scope("anna"), top_k=1)

    # -- scopes ---------------------------------------------------------------------------------
    def test_resources_are_apart(self, index: VectorIndex) -> None:
        """Ids that look alike are not equal: no prefix, no case folding, no normal forms."""
        names = [
            "anna", "Anna", "anna ", " anna", "ann", "annaa", "an%", "ann_", "*", "anna\x00",
            "été", "e\u0301te\u0301", "-", "r:anna", "x:616e6e61", "\ud800", "\udfff", "None",
            '{"$ne": ""}', "x" * 1024,
        ]  # fmt: skip
        index.upsert(SPACE, [record(f"{i}.0", Scope(name, "t"), 1) for i, name in enumerate(names)])
        for i, name in enumerate(names):
            assert ids(index.search(SPACE, vector(1), Scope(name), top_k=99)) == [f"{i}.0"]

    def test_same_thread_id_under_two_resources(self, index: VectorIndex) -> None:
        """A thread is the pair of resource and thread; without a resource it is one more."""
        owners = ["anna", "bert", None]
        index.upsert(
            SPACE, [record(f"{i}.0", Scope(owner, "t1"), 1) for i, owner in enumerate(owners)]
        )
        for i, owner in enumerate(owners):
            assert ids(index.search(SPACE, vector(1), Scope(owner, "t1"), top_k=9)) == [f"{i}.0"]

    def test_pairs_that_join_alike_are_apart(self, index: VectorIndex) -> None:
        """("a", "bc") and ("ab", "c") are two threads, whatever separates the two halves."""
        pairs = [("a", "bc"), ("ab", "c"), ("a", "b/c"), ("a/b", "c"), ("a", "b\x00c")]
        index.upsert(SPACE, [record(f"{i}.0", Scope(*pair), 1) for i, pair in enumerate(pairs)])
        for i, pair in enumerate(pairs):
            assert ids(index.search(SPACE, vector(1), Scope(*pair), top_k=9)) == [f"{i}.0"]

    def test_resource_holds_all_its_threads(self, index: VectorIndex) -> None:
        """A resource is searched over its threads, a thread alone."""
        index.upsert(SPACE, [record(f"{i}.0", Scope("anna", f"t{i}"), 1, i / 10) for i in range(4)])
        assert len(index.search(SPACE, vector(1), Scope("anna"), top_k=9)) == 4
        assert ids(index.search(SPACE, vector(1), Scope("anna", "t2"), top_k=9)) == ["2.0"]

    @pytest.mark.parametrize("others", [50, 99, 200])
    def test_filter_is_applied_before_top_k(self, index: VectorIndex, others: int) -> None:
        """Equal vectors of other users ("ok", "thanks") do not hide the one in scope."""
        crowd = [record(f"{i}.0", Scope(f"user{i}", "t"), 1) for i in range(others)]
        index.upsert(SPACE, [*crowd, record("mine.0", ANNA, 1)])
        assert ids(index.search(SPACE, vector(1), Scope("anna"), top_k=1)) == ["mine.0"]

    # -- writing --------------------------------------------------------------------------------
    def test_same_id_replaces(self, index: VectorIndex) -> None:
        """The new vector is found and the old one is not."""
        index.upsert(SPACE, [record("1.0", ANNA, 1)])
        index.upsert(SPACE, [record("1.0", ANNA, 0, 1)])
        (hit,) = index.search(SPACE, vector(0, 1), Scope("anna"), top_k=9)
        assert hit.score == pytest.approx(1.0, abs=1e-5)
        assert list(index.ids(SPACE)) == ["1.0"]

    def test_same_id_twice_in_one_call(self, index: VectorIndex) -> None:
        """The last wins."""
        index.upsert(SPACE, [record("1.0", ANNA, 1), record("1.0", ANNA, 0, 1)])
        (hit,) = index.search(SPACE, vector(0, 1), Scope("anna"), top_k=9)
        assert hit.score == pytest.approx(1.0, abs=1e-5)

    def test_nothing_to_write_or_delete(self, index: VectorIndex) -> None:
        """Empty calls do nothing."""
        index.upsert(SPACE, [])
        index.delete(SPACE, {})
        assert list(index.ids(SPACE)) == []

    @pytest.mark.parametrize("bad", [np.nan, np.inf], ids=["nan", "infinity"])
    def test_vector_that_is_no_number_is_refused(self, index: VectorIndex, bad: float) -> None:
        """And nothing of the call is written."""
        with pytest.raises(VectorIndexError):
            index.upsert(SPACE, [record("1.0", ANNA, 1), record("2.0", ANNA, bad)])
        assert list(index.ids(SPACE)) == []

    def test_delete(self, index: VectorIndex) -> None:
        """What was deleted is gone; the rest stays; a missing id is fine."""
        index.upsert(SPACE, [record(f"{i}.0", ANNA, 1, i) for i in range(3)])
        index.delete(SPACE, {"1.0": ANNA, "missing.0": ANNA, "gone.0": Scope("nobody", "t")})
        assert sorted(index.ids(SPACE)) == ["0.0", "2.0"]
        assert ids(index.search(SPACE, vector(1), ANNA, top_k=9)) == ["0.0", "2.0"]
        index.upsert(SPACE, [record("1.0", ANNA, 1, 1)])
        assert len(index.search(SPACE, vector(1), ANNA, top_k=9)) == 3

    def test_many_at_once(self, index: VectorIndex) -> None:
        """6,000 vectors in one call, and their deletion in one call."""
        generator = np.random.default_rng(7)
        rows = generator.normal(size=(6000, SPACE.dimensions)).astype(np.float32)
        scopes = [Scope(f"user{i % 3}", f"t{i % 30}") for i in range(6000)]
        index.upsert(
            SPACE,
            [VectorRecord(id=f"{i}.0", scope=scopes[i], vector=rows[i]) for i in range(6000)],
        )
        assert sorted(index.ids(SPACE)) == sorted(f"{i}.0" for i in range(6000))
        query = rows[1234]
        mine = np.arange(6000) % 3 == 1234 % 3
        cosines = rows @ query / np.linalg.norm(rows, axis=1)
        best = np.argsort(np.where(mine, -cosines, np.inf))[:5]
        found = index.search(SPACE, query, Scope(f"user{1234 % 3}"), top_k=5)
        assert ids(found) == [f"{i}.0" for i in best]
        index.delete(SPACE, {f"{i}.0": scopes[i] for i in range(5999)})
        assert list(index.ids(SPACE)) == ["5999.0"]

    def test_many_threads(self, index: VectorIndex) -> None:
        """Eight threads write, search and delete, each in its own resource."""

        def work(number: int) -> list[str]:
            scope = Scope(f"user{number}", "t")
            for i in range(20):
                index.upsert(SPACE, [record(f"{number}-{i}.0", scope, 1, i)])
                assert index.search(SPACE, vector(1), scope, top_k=1)
            index.delete(SPACE, {f"{number}-{i}.0": scope for i in range(1, 20)})
            return ids(index.search(SPACE, vector(1), scope, top_k=99))

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(work, range(8))) == [[f"{n}-0.0"] for n in range(8)]

    # -- spaces ---------------------------------------------------------------------------------
    def test_spaces_are_apart(self, index: VectorIndex) -> None:
        """Two embedders never see each other's vectors; dropping one leaves the other."""
        wide = VectorSpace(SPACE.name, SPACE.dimensions + 1)
        index.upsert(SPACE, [record("1.0", ANNA, 1)])
        index.upsert(OTHER_SPACE, [record("2.0", ANNA, 1)])
        index.upsert(wide, [VectorRecord(id="3.0", scope=ANNA, vector=np.ones(9, np.float32))])
        assert ids(index.search(SPACE, vector(1), ANNA, top_k=9)) == ["1.0"]
        index.drop(SPACE)
        assert list(index.ids(SPACE)) == []
        assert index.search(SPACE, vector(1), ANNA, top_k=9) == []
        assert ids(index.search(OTHER_SPACE, vector(1), ANNA, top_k=9)) == ["2.0"]
        assert list(index.ids(wide)) == ["3.0"]
        index.upsert(SPACE, [record("4.0", ANNA, 1)])
        assert list(index.ids(SPACE)) == ["4.0"]

    def test_drop_of_an_unknown_space(self, index: VectorIndex) -> None:
        """Is fine."""
        index.drop(VectorSpace("never written", 4))
        assert list(index.ids(VectorSpace("never written", 4))) == []

    # -- closing --------------------------------------------------------------------------------
    def test_close_twice_then_every_call_raises(self, index: VectorIndex) -> None:
        """A closed index says so instead of hanging or answering."""
        index.upsert(SPACE, [record("1.0", ANNA, 1)])
        index.close()
        index.close()
        with pytest.raises(VectorIndexError):
            index.search(SPACE, vector(1), ANNA, top_k=1)
        with pytest.raises(VectorIndexError):
            index.upsert(SPACE, [record("2.0", ANNA, 1)])
        with pytest.raises(VectorIndexError):
            list(index.ids(SPACE))


class DurableVectorIndexSuite(VectorIndexSuite):
    """The contract of an index that is still there when it is opened again."""

    @pytest.fixture
    def reopen(self) -> Callable[[], VectorIndex]:
        """Return a function that opens the closed `index` again; the fixture closes it."""
        raise NotImplementedError("a binding gives the fixture `reopen`")

    def test_reopen(self, index: VectorIndex, reopen: Callable[[], VectorIndex]) -> None:
        """Everything written is there, and everything deleted is not."""
        index.upsert(SPACE, [record(f"{i}.0", ANNA, 1, i) for i in range(3)])
        index.delete(SPACE, {"0.0": ANNA})
        index.close()
        again = reopen()
        assert ids(again.search(SPACE, vector(1), ANNA, top_k=9)) == ["1.0", "2.0"]
        again.upsert(SPACE, [record("0.0", ANNA, 1)])
        assert ids(again.search(SPACE, vector(1), ANNA, top_k=1)) == ["0.0"]

    def test_scrub_keeps_what_is_left(
        self, index: VectorIndex, reopen: Callable[[], VectorIndex]
    ) -> None:
        """Only what was deleted is gone, before and after opening it again."""
        index.upsert(SPACE, [record(f"{i}.0", ANNA, 1, i) for i in range(5)])
        index.delete(SPACE, {"1.0": ANNA, "3.0": ANNA})
        index.scrub()
        assert ids(index.search(SPACE, vector(1), ANNA, top_k=9)) == ["0.0", "2.0", "4.0"]
        index.upsert(SPACE, [record("9.0", ANNA, 1, 9)])
        index.close()
        assert sorted(reopen().ids(SPACE)) == ["0.0", "2.0", "4.0", "9.0"]
