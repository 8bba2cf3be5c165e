"""The tables in README.md name tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
FOLDERS = (HERE.parent, HERE.parents[1] / "shared" / "semantic_recall" / "testing")
"""Where tests are."""


def test_every_test_that_the_tables_name_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (HERE / "README.md").read_text(encoding="utf-8")))
    files = [file for folder in FOLDERS for file in folder.rglob("*.py")]
    known = {
        name
        for file in files
        for name in re.findall(r"\bdef (test_\w+)\(", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 70
    assert named - known == set()


def test_every_test_here_is_in_the_tables() -> None:
    tables = (HERE / "README.md").read_text(encoding="utf-8")
    here = {
        name
        for file in HERE.glob("test_*_reports*.py")
        for name in re.findall(r"^def (test_\w+)\(", file.read_text(encoding="utf-8"), re.M)
    }
    assert len(here) > 25
    assert {name for name in here if f"`{name}`" not in tables} == set()
