"""Writes docs/benchmarks.md and its pictures from the result files: `python -m benchmarks.report`.

What is said by hand is in `report_notes.md`: a part per heading, put behind the tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import _plots, _tables
from benchmarks._limits import limits
from benchmarks._pipelines import MASTRA
from benchmarks.peers import PEERS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
NOTES = HERE / "report_notes.md"
PAGE = Path("docs/benchmarks.md")
IMAGES = Path("docs/images")

_HEADER = """\
# Benchmarks

<!-- Written by `make bench` (benchmarks/report.py): change benchmarks/report_notes.md instead. -->

Everything on this page is measured by `make bench`, without a network or a key, in about {minutes}
minutes:

    make bench                     # our own questions, and speed
    make bench FILE=locomo10.json  # also your copy of LoCoMo

Two results can be compared with `python -m benchmarks.regression OLD NEW`, which fails on a loss
beyond the noise; `make bench` compares with the last results that were kept.
"""
_IDLE = (
    "They are for this machine with nothing else to do: with a load average above 1 a limit may be "
    "missed that an idle machine meets."
)
_DRAWN = {MASTRA: MASTRA, "BM25, neighbours 1/1": "BM25, neighbours 1/1"}


def render(quality: Mapping[str, Any] | None, speed: Mapping[str, Any] | None, notes: str) -> str:
    """Return the page.

    Args:
        quality: What `quality.py` wrote; None leaves that part out.
        speed: What `speed.py` wrote.
        notes: The hand-written part.
    """
    lines = [_HEADER.format(minutes=80)]
    if quality:
        lines += _quality(quality)
    if speed:
        lines += _speed(speed)
    return "\n".join([*lines, notes.strip(), ""])


def _quality(result: Mapping[str, Any]) -> list[str]:
    lines = ["## What is found", ""]
    lines += ["![Evidence found against tokens](images/bench-evidence.svg)", ""]
    for file in result["files"]:
        asked = file["pipelines"][0][_tables.HALF]["questions"]
        lines += [
            f"### {file['file']}",
            "",
            f"{file['samples']} conversations, {file['messages']:,} messages, "
            f"{file['questions']:,} questions; the figures are of the {asked:,} questions of the "
            "half for reporting, in brackets what 95% of other draws of as many questions "
            f"would give. Measured on {file['date'].split()[0]}.",
            "",
            *_tables.evidence(file),
            "",
        ]
        if len(file["pipelines"][0][_tables.HALF]["kinds"]) > 1:
            lines += ["By kind of question, in 1,000 tokens:", "", *_tables.kinds(file), ""]
        lines += [
            "What taking an ingredient away does:",
            "",
            *_tables.ablation(file),
            "",
        ]
    return lines


def _speed(result: Mapping[str, Any]) -> list[str]:
    lines = ["## How fast it is", "", _ran(result), ""]
    lines += ["![Median recall against messages](images/bench-latency.svg)", ""]
    lines += ["Times are milliseconds, embedding excluded.", ""]
    for corpus in result["corpora"]:
        load = " to ".join(str(value) for value in corpus["load"])
        users = f"{corpus['resources']:,} user" + "s" * (corpus["resources"] > 1)
        lines += [
            f"### {corpus['messages']:,} messages of {users}",
            "",
            f"Load average {load}."
            + (
                "" if corpus["index"] else " Ours without Chroma, which no scope of this size asks."
            ),
            "",
            *_tables.speed(corpus),
            "",
            _tables.times_faster(corpus),
            "",
        ]
    lines += ["### The subjects", "", *_tables.subjects(result["import_ms"]), ""]
    rows = [
        [what, f"{value:,.2f}", wanted, "met" if met else "**missed**"]
        for what, value, wanted, met in limits(result)
    ]
    lines += [
        "### Our own limits",
        "",
        _IDLE,
        "",
        *_tables.table(["figure", "value", "limit", ""], rows),
        "",
    ]
    lines += ["Versions: " + _versions(result) + ".", ""]
    return lines


def _ran(result: Mapping[str, Any]) -> str:
    about = result["machine"]
    return (
        f"Measured on {about['date']}: {about['processor']}, {about['cores']} cores, "
        f"{about['memory_gb']} GB, {about['system']}, Python {about['python']}, "
        f"SQLite {about['sqlite']}; load average {about['load']} at the start."
    )


def _versions(result: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in result["versions"].items())


def draw(quality: Mapping[str, Any] | None, speed: Mapping[str, Any] | None, folder: Path) -> None:
    """Draw the pictures."""
    if quality:
        # LangGraph's two stores find the same: one line is enough.
        peers = [peer.name for peer in PEERS if peer.module != "langgraph_memory"]
        names = _DRAWN | {name: name for name in peers}
        names[_tables.LIBRARY] = "this library"
        _plots.evidence(quality["files"], names, _tables.HALF, folder / "bench-evidence.svg")
    if speed:
        _plots.latency(speed["corpora"], folder / "bench-latency.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes docs/benchmarks.md.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--images", type=Path, default=IMAGES)
    options = parser.parse_args()
    found = {}
    for name in ("quality", "speed"):
        path = options.results / f"{name}.json"
        found[name] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    notes = NOTES.read_text(encoding="utf-8")
    options.page.write_text(render(found["quality"], found["speed"], notes), encoding="utf-8")
    draw(found["quality"], found["speed"], options.images)


if __name__ == "__main__":
    main()
