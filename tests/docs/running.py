"""Runs the code of a page: its blocks in order, in one namespace and one folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import yaml

from tests.docs.blocks import ROOT, Block, blocks_of
from tests.docs.checking import check_commands, check_python

# Pages show them, and there is nothing of ours in them to run.
OTHER_LANGUAGES = frozenset({"promql", "sql", "typescript"})
_INSTALLING = re.compile(
    r"(pip install|jupyter lab|uvicorn|export|docker run) |semantic-recall demo$"
)
_EXTRAS = re.compile(r"chat-semantic-recall\[([\w,]+)\]")


class Page:
    """A page being run.

    Args:
        path: The page.
        monkeypatch: Undoes what is set for it.
    """

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._module = types.ModuleType("page")
        # Where dataclasses and pydantic look for the names in annotations.
        monkeypatch.setitem(sys.modules, "page", self._module)
        self._printed = ""
        self._must_be_shown = False

    def run(self) -> None:
        """Run or check every block; what Python prints must be shown below it."""
        kinds: Mapping[str, Callable[[Block], None]] = {
            "python": self._python,
            "text": self._text,
            "bash": self._bash,
            "sh": _installing,
            "console": check_commands,
            "json": lambda block: json.loads(block.code),
            "yaml": lambda block: yaml.safe_load(block.code),
            **dict.fromkeys(OTHER_LANGUAGES, lambda _: None),
        }
        for block in blocks_of(self._path):
            assert block.language in kinds, f"{block.place}: a block of {block.language!r}"
            if block.language != "text":
                self._end(block.place)
            kinds[block.language](block)
        self._end("the end")

    def _end(self, place: str) -> None:
        hidden = self._printed if self._must_be_shown else ""
        assert not hidden, f"the block before {place} prints what the page does not say: {hidden}"
        self._printed = ""

    def _python(self, block: Block) -> None:
        if block.not_run is not None:
            check_python(block)
            return
        # Empty lines in front make a traceback point at the line in the page.
        source = "\n" * (block.line - 1) + block.code
        code = compile(source, str(block.page), "exec", dont_inherit=True)
        with redirect_stdout(StringIO()) as printed:
            exec(code, self._module.__dict__)
        self._printed, self._must_be_shown = printed.getvalue(), True

    def _bash(self, block: Block) -> None:
        check_commands(block)
        if block.not_run is not None:
            return
        scripts = sysconfig.get_path("scripts")
        finished = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.code],
            env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert finished.returncode == 0, f"{block.place}: {finished.stdout}{finished.stderr}"
        self._printed, self._must_be_shown = finished.stdout, False

    def _text(self, block: Block) -> None:
        assert _without_token(self._printed) == _without_token(block.code), block.place
        self._printed = ""


def _without_token(text: str) -> str:
    """The fence's token comes from a secret that each memory draws for itself."""
    return re.sub(r"recalled-conversations-[0-9a-f]{12}", "recalled-conversations-", text)


def _installing(block: Block) -> None:
    """An `sh` block installs or starts something; its extras must exist."""
    known = set(re.findall(r"^(\w+) = \[", _optional_dependencies(), re.MULTILINE))
    for line in block.code.splitlines():
        assert _INSTALLING.match(line), f"{block.place}: run it, as bash: {line}"
        for extras in _EXTRAS.findall(line):
            assert set(extras.split(",")) <= known, f"{block.place}: no extra {extras}"


def _optional_dependencies() -> str:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return text.split("[project.optional-dependencies]\n", 1)[1].split("\n\n", 1)[0]
