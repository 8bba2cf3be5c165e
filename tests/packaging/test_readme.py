"""The README tells the truth: its code runs, and its tables are those of the library."""

import ast
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, fields
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import MessageRange, RecallOptions
from semantic_recall.cli import app

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    code: str


def blocks() -> Iterator[Block]:
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL):
        yield Block(found[1], TEXT.count("\n", 0, found.start(2)) + 1, found[2])


def without_token(text: str) -> str:
    """The fence's token comes from a secret that each memory draws for itself."""
    return re.sub(r"recalled-conversations-[0-9a-f]{12}", "recalled-conversations-", text)


def run_shell(block: Block) -> None:
    scripts = sysconfig.get_path("scripts")
    finished = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code],
        env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, f"line {block.line}: {finished.stdout}{finished.stderr}"


def test_the_code_runs_and_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks run in order and share their names; a text block is what the one before prints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMANTIC_RECALL_PATH", raising=False)
    names: dict[str, Any] = {"__name__": "readme"}
    printed = StringIO()
    ran = set()
    for block in blocks():
        ran.add(block.language)
        if block.language == "python":
            printed = StringIO()
            # Empty lines in front make a traceback point at the line in the README.
            code = compile("\n" * (block.line - 1) + block.code, str(README), "exec")
            with redirect_stdout(printed):
                exec(code, names)
        elif block.language == "text":
            assert without_token(printed.getvalue()) == without_token(block.code)
        elif block.language == "bash":
            run_shell(block)
    assert ran == {"python", "text", "bash", "sh"}


def test_the_install_block_is_all_that_is_not_run_here() -> None:
    [install] = [block.code for block in blocks() if block.language == "sh"]
    assert install == "pip install chat-semantic-recall\nsemantic-recall demo\n"


def rows(heading: str) -> list[list[str]]:
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table]


def test_the_options_and_their_defaults() -> None:
    shown = {
        name.strip("`"): ast.literal_eval(value.strip("`")) for name, value, _ in rows("Options")
    }
    shown["message_range"] = MessageRange.of(shown["message_range"])
    shown["exclude_ids"] = frozenset(shown["exclude_ids"])
    options = RecallOptions()
    assert shown == {field.name: getattr(options, field.name) for field in fields(options)}


def test_the_commands() -> None:
    shown = [name.strip("`").split()[0] for name, _ in rows("Command line")]
    assert shown == [command.name for command in app.registered_commands]
