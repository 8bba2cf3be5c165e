"""What the pages must have, told from the code, the pages' text and the site that is built."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs import hooks
from semantic_recall import MessageRange, RecallOptions, SemanticRecall, Settings, errors
from semantic_recall.cli import app
from tests.docs.blocks import DOCS, PAGES, ROOT, blocks_of, name_of

PACKAGES = ("semantic_recall", "langchain_semantic_recall", "llamaindex_semantic_recall")
SOURCES = (ROOT / "shared" / "semantic_recall", *(ROOT / name for name in PACKAGES[1:]))


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(package: str) -> None:
    page = hooks.filled(text_of(f"reference/{package}.md"))
    shown = re.findall(rf"^::: {package}\.(\w+)$", page, re.MULTILINE)
    assert sorted(shown) == import_module(package).__all__


def test_every_method_of_a_memory_is_in_the_reference() -> None:
    members = re.findall(r"\w+", hooks.the_memory().partition("members: ")[2])
    public = [name for name in dir(SemanticRecall) if not name.startswith("_")]
    assert sorted(members) == public
    assert members[:3] == ["open", "remember", "aremember"]


@pytest.mark.parametrize("package", PACKAGES[1:])
def test_every_public_name_of_a_plugin_is_in_its_guide(package: str) -> None:
    page = text_of(f"{package.partition('_')[0]}.md")
    converters = {"from_langchain", "to_langchain"}
    missing = {name for name in import_module(package).__all__ if name not in page}
    assert missing <= converters


def test_every_surface_of_the_langchain_plugin_has_an_example() -> None:
    code = "".join(block.code for block in blocks_of(DOCS / "langchain.md"))
    names = import_module("langchain_semantic_recall").__all__
    assert [name for name in names if name not in code] == ["from_langchain", "to_langchain"]


@pytest.mark.parametrize("options", [RecallOptions, Settings])
def test_every_option_is_in_its_table(options: Any) -> None:
    table = hooks.options_table() if options is RecallOptions else hooks.settings_table()
    rows = [row.strip("| ").split(" | ") for row in table.splitlines()[2:]]
    assert [row[0] for row in rows] == [f"`{each.name}`" for each in fields(options)]
    for row in rows:
        assert len(row) == 4, row
        assert all(row), row


def test_the_defaults_in_the_table_are_those_of_the_code() -> None:
    table = hooks.options_table()
    defaults = RecallOptions()
    assert f"| `top_k` | `int` | `{defaults.top_k}` |" in table
    assert MessageRange(1, 1) == defaults.message_range
    assert "| `(1, 1)` |" in table
    assert f"| `{Settings().exact_limit:_}` |" in hooks.settings_table()


def test_every_command_is_described() -> None:
    shown = re.findall(r"^## (\S+)$", hooks.commands(), re.MULTILINE)
    assert shown == [command.name for command in app.registered_commands]


def test_what_is_filled_in_is_asked_for_once() -> None:
    asked = [
        name for page in PAGES for name in re.findall(r"<!-- fill: (\w+) -->", page.read_text())
    ]
    assert sorted(asked) == sorted(hooks.FILLED)


@pytest.mark.parametrize("page", sorted((DOCS / "quickstart").glob("*.md")), ids=name_of)
def test_a_quickstart_has_less_than_20_lines(page: Path) -> None:
    first = next(block for block in blocks_of(page) if block.language == "python")
    assert 0 < len([line for line in first.code.splitlines() if line.strip()]) < 20


# -- troubleshooting ------------------------------------------------------------------------------
def test_every_error_has_an_entry() -> None:
    names = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and value.__module__ == errors.__name__
    ]
    headings = "\n".join(
        re.findall(r"^##+ .*$|^Every error .*$", text_of("troubleshooting.md"), re.M)
    )
    assert [name for name in names if f"`{name}`" not in headings] == []


def test_every_quoted_message_is_one_of_the_code() -> None:
    quotes = re.findall(r"^> (.+)$", text_of("troubleshooting.md"), re.MULTILINE)
    assert len(quotes) > 30
    texts = list(_texts_of_the_code())
    for quote in quotes:
        for part in quote.split("…"):
            assert any(part.strip() in text for text in texts), quote


def test_every_warning_of_the_core_has_an_entry() -> None:
    """Of the core; what a plugin logs of a single damaged message explains itself."""
    page = text_of("troubleshooting.md")
    quotes = [
        part.strip() for quote in re.findall(r"^> (.+)$", page, re.M) for part in quote.split("…")
    ]
    rare = ("the vector index kept failing", "the vector index cannot be written", "did not close")
    for text in _warnings_of_the_core():
        known = any(quote in text for quote in quotes if len(quote) > 12)
        assert known or any(words in text for words in rare), text


def _texts_of_the_code() -> Any:
    for folder in SOURCES:
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
                elif isinstance(node, ast.JoinedStr):
                    yield "".join(_piece(value) for value in node.values)


def _piece(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "{}"


def _warnings_of_the_core() -> Any:
    for file in SOURCES[0].rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "warning"
                and isinstance(node.args[0], ast.Constant)
            ):
                yield str(node.args[0].value)


# -- the site -------------------------------------------------------------------------------------
def test_every_page_is_in_the_navigation() -> None:
    def pages(item: Any) -> list[str]:
        if isinstance(item, str):
            return [item]
        parts = item if isinstance(item, list) else list(item.values())
        return [page for part in parts for page in pages(part)]

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert sorted(pages(yaml.safe_load(text)["nav"])) == sorted(
        page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")
    )


def test_the_site_builds_without_a_warning_and_needs_no_network(tmp_path: Path) -> None:
    """With --strict a link, an anchor or a docstring that is wrong is an error."""
    finished = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    for page in tmp_path.rglob("*.html"):
        html = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="?(https?:[^">\s]+)', html)
        assert loaded == [], page
    # The pages that were filled in from elsewhere.
    assert "Congratulations! Shall I look for flights?" in (tmp_path / "index.html").read_text()
    assert "message_range" in (tmp_path / "options" / "index.html").read_text()
    assert (tmp_path / "notebooks" / "01_langchain_agent.ipynb").is_file()
