"""What every format promises: detected, dates kept, a bad record named, resumable, idempotent."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import Message, SemanticRecall
from semantic_recall.importers import Position, defaults_of, detect, read, read_with
from tests.core.cli_support import run_json
from tests.importers.formats import (
    ANSWERED,
    ASKED,
    DATED,
    DATES,
    EVERY,
    SAID,
    UNDATED,
    graph_turns,
    langgraph,
)
from tests.importers.support import bad, texts

NONE = ("--embedder", "none")


@pytest.fixture(params=EVERY)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path, str]:
    """A file in each format: the format's name, the file, and where the bad record is."""
    name, write = EVERY[request.param]
    path = tmp_path / "chats"
    return name, path, write(path)


def stored(path: Path) -> list[Message]:
    with SemanticRecall.open(path, embedder=None) as memory:
        return list(memory.messages())


def import_all(source: Path, memory: Path) -> Any:
    return run_json("import", source, "--path", memory, "--resource", "mina", *NONE, code=3)


def test_it_is_detected_and_a_bad_record_is_named_and_skipped(
    written: tuple[str, Path, str],
) -> None:
    name, path, where = written
    importer, position = detect(path), Position()
    assert importer.name == name
    seen: list[int] = []
    items = []
    for item in read_with(importer, path, defaults_of(path), position):
        items.append(item)
        seen.append(position.done)
    assert texts(items) == [ASKED, ANSWERED]
    assert [one.role for one in items if isinstance(one, Message)] == [role for role, _ in SAID]
    assert [one.where for one in bad(items)] == [where]
    # What the progress bar shows only grows, and ends full.
    assert seen == sorted(seen)
    assert position.done == position.total > 0


@pytest.mark.parametrize("form", DATED)
def test_its_dates_are_kept(form: str, tmp_path: Path) -> None:
    path = tmp_path / "chats"
    DATED[form][1](path)
    import_all(path, tmp_path / "memory")
    assert [one.created_at.isoformat() for one in stored(tmp_path / "memory")] == list(DATES)


def test_twice_is_once_even_when_the_file_has_another_time(
    written: tuple[str, Path, str], tmp_path: Path
) -> None:
    _, path, _ = written
    first = import_all(path, tmp_path / "memory")
    assert (first["messages"], first["new"], first["skipped"]) == (2, 2, 1)
    before = stored(tmp_path / "memory")
    os.utime(path, (2_000_000_000, 2_000_000_000))
    again = import_all(path, tmp_path / "memory")
    assert (again["messages"], again["new"], again["skipped"]) == (2, 0, 1)
    assert stored(tmp_path / "memory") == before


def test_a_stopped_import_goes_on(written: tuple[str, Path, str], tmp_path: Path) -> None:
    _, path, _ = written
    with SemanticRecall.open(tmp_path / "stopped", embedder=None) as memory:
        done = [item for item in read(path, resource_id="mina") if isinstance(item, Message)]
        memory.remember(list(islice(done, 1)))
    rest = import_all(path, tmp_path / "stopped")
    assert (rest["messages"], rest["new"]) == (2, 1)
    import_all(path, tmp_path / "whole")
    assert stored(tmp_path / "stopped") == stored(tmp_path / "whole")


@pytest.mark.parametrize(
    ("form", "more"),
    [
        ("langchain", ',{"type": "human", "data": {"content": "And of Spain?"}}'),
        ("llamaindex", ',{"role": "user", "content": "And of Spain?"}'),
    ],
)
def test_what_has_no_time_keeps_the_one_of_its_first_import(
    form: str, more: str, tmp_path: Path
) -> None:
    path, memory = tmp_path / "chats", tmp_path / "memory"
    UNDATED[form][1](path)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    import_all(path, memory)
    # The file grows by a message, and gets the time of that.
    before = path.read_text(encoding="utf-8")
    end = before.rindex("]")
    path.write_text(before[:end] + more + before[end:], encoding="utf-8")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert import_all(path, memory)["new"] == 1
    times = [int(one.created_at.timestamp()) for one in stored(memory)]
    assert times == [1_600_000_000, 1_600_000_000, 1_700_000_000]


def test_a_checkpoint_that_has_grown_dates_only_what_is_new(tmp_path: Path) -> None:
    path, memory = tmp_path / "chats", tmp_path / "memory"
    langgraph(path)
    import_all(path, memory)
    before = stored(memory)
    graph_turns(path, "a")
    assert import_all(path, memory)["new"] == 2
    after = stored(memory)
    assert after[:2] == before
    assert after[2].created_at == after[3].created_at > before[1].created_at
