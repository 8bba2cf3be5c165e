"""Which vector space a store has, and what another embedder is told."""

from __future__ import annotations

import pytest

from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.errors import (
    InvalidOptionError,
    VectorSpaceMismatchError,
)
from semantic_recall.records import SpaceInfo
from semantic_recall.types import VectorSpace
from semantic_recall.vectorizer import Vectorizer, open_space, space_is_new
from tests.core.vectorizing import (
    RecordingStore,
)

A, B = VectorSpace("a", 4), VectorSpace("b", 8)


def info(space: VectorSpace, *, active: bool) -> SpaceInfo:
    return SpaceInfo(space, active, vectors=1, pending=0)


def test_a_store_takes_the_first_space_and_keeps_it() -> None:
    assert space_is_new([], A)
    assert space_is_new([info(A, active=False)], A)
    assert not space_is_new([info(A, active=True)], A)
    assert not space_is_new([info(B, active=False), info(A, active=True)], A)


@pytest.mark.parametrize("wanted", [B, VectorSpace("a", 5)])
def test_another_embedder_is_refused_with_the_remedy(wanted: VectorSpace) -> None:
    with pytest.raises(VectorSpaceMismatchError, match="semantic-recall reindex") as caught:
        space_is_new([info(A, active=True)], wanted)
    assert "'a' (4 dimensions)" in str(caught.value)
    assert f"{wanted.name!r} ({wanted.dimensions} dimensions)" in str(caught.value)


def test_open_space_in_a_real_store(store: RecordingStore) -> None:
    open_space(store, HashEmbedder(16))
    open_space(store, HashEmbedder(16))
    assert [space.active for space in store.spaces()] == [True]
    with pytest.raises(VectorSpaceMismatchError):
        open_space(store, HashEmbedder(32))
    assert len(store.spaces()) == 1


def test_a_negative_cache_is_refused(store: RecordingStore) -> None:
    with pytest.raises(InvalidOptionError, match="cache_entries"):
        Vectorizer(store, HashEmbedder(), cache_entries=-1)
