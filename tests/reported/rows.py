"""The tables in the docstrings of this folder: which test answers which report."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NAME = re.compile(r"\btest_\w+\b(?!\.py)")
_DEFINED = re.compile(r"\bdef (test_\w+)\(")


def named(docstring: str) -> set[str]:
    """Return the names of the tests in a table."""
    return set(_NAME.findall(docstring))


def missing(docstring: str) -> set[str]:
    """Return those that are no tests."""
    return named(docstring) - _all_tests()


@cache
def _all_tests() -> frozenset[str]:
    folders = (ROOT / "tests", ROOT / "shared" / "semantic_recall" / "testing")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return frozenset(
        name for file in files for name in _DEFINED.findall(file.read_text(encoding="utf-8"))
    )
