"""A real SQL store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.vectorizing import (
    RecordingStore,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordingStore]:
    with RecordingStore.open(tmp_path / "recall.sqlite3") as store:
        store.delays = []
        yield store
