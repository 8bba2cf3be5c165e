"""The index and the embedder that the recipes show do all that such a part must do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from semantic_recall.protocols import Embedder, VectorIndex
from semantic_recall.testing.embedder import EmbedderSuite
from semantic_recall.testing.vector_index import VectorIndexSuite
from tests.docs.blocks import DOCS, blocks_of


def shown(page: str, name: str) -> Any:
    """Return the class of that name from the block of the page that defines it."""
    [block] = [each for each in blocks_of(DOCS / page) if f"class {name}:" in each.code]
    # What comes after the class opens a memory: not here.
    names: dict[str, Any] = {}
    exec(block.code.partition("\n\n\nwith ")[0], names)
    return names[name]


class TestListIndex(VectorIndexSuite):
    @pytest.fixture
    def index(self) -> Iterator[VectorIndex]:
        index: VectorIndex = shown("recipes/vector-stores.md", "ListIndex")()
        yield index
        index.close()


class TestLetterEmbedder(EmbedderSuite):
    def make_embedder(self) -> Embedder:
        embedder: Embedder = shown("recipes/embedders.md", "LetterEmbedder")()
        return embedder
