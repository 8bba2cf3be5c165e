"""The Chroma index keeps the contract in a process of its own too."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from semantic_recall.indexes.process import ProcessVectorIndex
from semantic_recall.testing.vector_index import DurableVectorIndexSuite


class TestChromaInAProcess(DurableVectorIndexSuite):
    @pytest.fixture
    def index(self, tmp_path: Path) -> Iterator[ProcessVectorIndex]:
        index = ProcessVectorIndex(tmp_path / "chroma")
        yield index
        index.close()

    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], ProcessVectorIndex]]:
        opened: list[ProcessVectorIndex] = []

        def again() -> ProcessVectorIndex:
            opened.append(ProcessVectorIndex(tmp_path / "chroma"))
            return opened[-1]

        yield again
        for index in opened:
            index.close()
