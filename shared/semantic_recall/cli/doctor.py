"""The command that looks whether everything that a memory needs is there: doctor."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import typer
from rich.text import Text

from semantic_recall.cli import _checks as checks
from semantic_recall.cli import _output as output
from semantic_recall.cli._checks import Finding
from semantic_recall.cli._common import (
    DEFAULT_PATH,
    FOUND_SOMETHING,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    PathOption,
    guarded,
)

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "bold red")}


@guarded
def doctor(
    path: PathOption = DEFAULT_PATH,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Check the installation, the embedder and the memory, and say what to do.

    Exit code 3 tells of problems; notes are none.
    """
    found = list(examine(Path(path), embedder.argument))
    problems = sum(one.status == "problem" for one in found)
    if as_json:
        findings = [dataclasses.asdict(one) for one in found]
        output.emit({"ok": not problems, "problems": problems, "findings": findings})
    else:
        _print(found, problems)
    if problems:
        raise typer.Exit(FOUND_SOMETHING)


def examine(path: Path, embedder: str | None) -> Iterator[Finding]:
    """Yield what each check found.

    Args:
        path: The memory's folder; it need not be there.
        embedder: The embedder's name; None for none.
    """
    yield from checks.python()
    yield from checks.packages()
    yield from checks.sqlite()
    yield from checks.open_files()
    chosen, findings = checks.embedder(embedder)
    yield from findings
    yield from checks.folder(path)
    is_there, findings = checks.database(path)
    yield from findings
    if is_there:
        yield from checks.memory(path, chosen)


def _print(found: list[Finding], problems: int) -> None:
    console = output.stdout()
    shown = output.table("", "check", "found")
    for one in found:
        mark, style = _MARKS[one.status]
        cell = Text(output.one_line(one.found, 300))
        if one.do:
            cell.append(f"\n→ {output.one_line(one.do, 300)}", style="cyan")
        shown.add_row(Text(mark, style=style), output.one_line(one.check, 60), cell)
    console.print(shown)
    if problems:
        console.print(Text(output.counted(problems, "problem"), style="bold red"))
    else:
        console.print(Text("all is well", style="bold green"))
