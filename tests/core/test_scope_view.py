"""A view that grew answers like one that was built whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall.records import ScopeRows
from semantic_recall.scope_view import ScopeView

DIMENSIONS = 4


def rows(
    messages: list[tuple[int, int, int]], *, first: int = 1, version: int = 1, seed: int = 0
) -> ScopeRows:
    """Return rows for (thread, terms, vectors) triples, keyed from `first` on."""
    random = np.random.default_rng([seed, first])
    count = len(messages)
    terms = [random.integers(0, 6, size, dtype=np.uint32) for _, size, _ in messages]
    chunks = [size for _, _, size in messages]
    keys = np.arange(first, first + count, dtype=np.int64)
    return ScopeRows(
        version=version,
        keys=keys,
        threads=np.array([thread for thread, _, _ in messages], np.int64),
        created_at=keys * 10,
        searchable=np.array([size > 0 for _, size, _ in messages], np.bool_),
        roles=[("user", "assistant")[thread % 2] for thread, _, _ in messages],
        digests=keys * 7,
        terms=np.concatenate([np.zeros(0, np.uint32), *terms]),
        term_counts=np.array([len(each) for each in terms], np.int64),
        vector_keys=np.repeat(keys, chunks),
        vectors=random.normal(size=(sum(chunks), DIMENSIONS)).astype(np.float32),
    )


def joined(parts: list[ScopeRows]) -> ScopeRows:
    return ScopeRows(
        version=parts[-1].version,
        roles=[role for part in parts for role in part.roles],
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in (
                "keys", "threads", "created_at", "searchable", "digests", "terms", "term_counts",
                "vector_keys", "vectors",
            )
        },
    )  # fmt: skip


message = st.tuples(st.integers(1, 4), st.integers(0, 5), st.integers(0, 3))
batches = st.lists(st.lists(message, min_size=1, max_size=6), min_size=1, max_size=12)


@given(batches=batches)
def test_growing_equals_building(batches: list[list[tuple[int, int, int]]]) -> None:
    parts, first = [], 1
    for number, batch in enumerate(batches, start=1):
        parts.append(rows(batch, first=first, version=number))
        first += len(batch)
    grown: ScopeView | None = ScopeView.build(parts[0])
    for part in parts[1:]:
        assert grown is not None
        grown = grown.extended(part)
    built = ScopeView.build(joined(parts))
    assert grown is not None
    for name in ("keys", "threads", "created_at", "searchable", "digests", "starts", "newest"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(built, name))
    assert [grown.role_names[n] for n in grown.roles] == [built.role_names[n] for n in built.roles]
    query = np.array([1, -2, 0.5, 0], np.float32)
    np.testing.assert_allclose(grown.dense(query), built.dense(query), rtol=1e-5)
    terms = np.array([0, 3, 5], np.uint32)
    np.testing.assert_allclose(grown.lexical(terms).scores, built.lexical(terms).scores, rtol=1e-5)
    assert grown.lexical(terms).whole == built.lexical(terms).whole
    assert len(grown.segments) <= 1 + np.log2(
        2 * len(built.keys) + sum(len(p.vectors) for p in parts) + 1
    )


def test_dense_is_the_cosine_of_the_best_chunk() -> None:
    view = ScopeView.build(
        replace(
            rows([(1, 1, 2), (1, 1, 0), (1, 1, 1)]),
            vectors=np.array([[2, 0, 0, 0], [0, 3, 0, 0], [1, 1, 0, 0]], np.float32),
        )
    )
    scores = view.dense(np.array([0, 5, 0, 0], np.float32))
    np.testing.assert_allclose(scores, [1.0, np.nan, 0.5**0.5], rtol=1e-6)


def test_one_vector_each_is_a_short_cut_to_the_same_cosines() -> None:
    """Threads that take turns, so that the order of vectors is not that of the conversation."""
    view = ScopeView.build(rows([(1, 2, 1), (2, 3, 1), (1, 1, 1), (3, 4, 1), (2, 2, 1)]))
    assert view.vector_rows is not None
    assert view.keys[view.newest].tolist() == sorted(view.keys.tolist(), reverse=True)
    query = np.array([1, -2, 0.5, 0], np.float32)
    plain = replace(view, vector_rows=None)
    np.testing.assert_array_equal(view.dense(query), plain.dense(query))
    assert view.nbytes > plain.nbytes
    zeros = np.zeros(DIMENSIONS, np.float32)
    assert np.isnan(view.dense(zeros)).all()


def test_two_vectors_or_none_take_the_long_way() -> None:
    for batch in ([(1, 2, 2), (1, 3, 1)], [(1, 2, 0), (1, 3, 1)], [(1, 2, 2), (1, 3, 0)]):
        assert ScopeView.build(rows(batch)).vector_rows is None


def test_vectors_that_come_late_are_added_once() -> None:
    whole = rows([(1, 2, 1), (1, 3, 1)])
    without = replace(
        whole, vector_keys=np.zeros(0, np.int64), vectors=np.zeros((0, DIMENSIONS), np.float32)
    )
    view = ScopeView.build(without).extended(replace(whole, version=2))
    assert view is not None
    again = view.extended(replace(whole, version=3))
    assert again is not None
    assert sum(len(segment.owners) for segment in again.segments) == 2
    query = np.ones(DIMENSIONS, np.float32)
    np.testing.assert_allclose(again.dense(query), ScopeView.build(whole).dense(query))


@pytest.mark.parametrize(
    "edit",
    [
        {"digests": np.array([1, 2], np.int64)},
        {"roles": ["tool", "tool"]},
        {"created_at": np.array([1, 2], np.int64)},
        {"searchable": np.array([False, True])},
    ],
    ids=lambda edit: next(iter(edit)),
)
def test_an_edited_message_needs_a_new_build(edit: dict[str, object]) -> None:
    whole = rows([(1, 2, 1), (1, 3, 1)])
    assert ScopeView.build(whole).extended(replace(whole, **edit)) is None  # type: ignore[arg-type]


def test_an_empty_scope() -> None:
    view = ScopeView.build(rows([]))
    assert view.dense(np.ones(DIMENSIONS, np.float32)).shape == (0,)
    assert view.lexical(np.array([1], np.uint32)).scores.shape == (0,)
    assert len(view.starts) == 0
    grown = view.extended(rows([(1, 2, 1)]))
    assert grown is not None
    assert grown.starts.tolist() == [0]
