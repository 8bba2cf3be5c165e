"""The examples in docs/llamaindex.md run and print what they say."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import types
from pathlib import Path

import pytest

import llamaindex_semantic_recall as package

PAGE = Path(__file__).parents[2] / "docs" / "llamaindex.md"
_BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = [
    pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning"),
]


def test_the_examples_run_and_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8")
    module = types.ModuleType("examples")
    monkeypatch.setitem(sys.modules, "examples", module)
    printed = ""
    blocks = list(_BLOCK.finditer(text))
    assert len(blocks) > 10
    for found in blocks:
        kind, body = found[1], found[2]
        line = text[: found.start()].count("\n") + 1
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


def test_every_public_name_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in package.__all__ if name not in text] == []
