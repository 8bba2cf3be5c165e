"""The examples in docs/langchain.md run and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import pytest

import langchain_semantic_recall as package

PAGE = Path(__file__).parents[2] / "docs" / "langchain.md"
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_run_and_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    module = types.ModuleType("examples")
    monkeypatch.setitem(sys.modules, "examples", module)
    printed = ""
    blocks = [(found[1], found[2], text[: found.start()].count("\n") + 1) for found in
              _BLOCK.finditer(text)]  # fmt: skip
    assert len(blocks) > 10
    for kind, body, line in blocks:
        if kind == "text":
            assert printed == body, f"line {line} of {PAGE.name}"
            printed = ""
            continue
        assert printed == "", f"the block before line {line} prints what the page does not say"
        code = compile("\n" * line + body, str(PAGE), "exec", dont_inherit=True)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, module.__dict__)
        printed = out.getvalue()
    assert printed == ""


def test_every_surface_has_an_example() -> None:
    code = "".join(found[2] for found in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")))
    converters = {"from_langchain", "to_langchain"}
    assert [name for name in package.__all__ if name not in code] == sorted(converters)
