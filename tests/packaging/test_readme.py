"""The tables in the README are those of the library; its code is run by tests/docs."""

import ast
import re
from dataclasses import fields
from pathlib import Path

from semantic_recall import MessageRange, RecallOptions
from semantic_recall.cli import app

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")


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


def test_the_links_lead_to_files() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", TEXT)
    assert "docs/images/data-flow.svg" in links
    assert [link for link in links if not (README.parent / link).is_file()] == []
