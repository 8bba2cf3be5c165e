"""How much of the evidence recall finds: `python -m benchmarks.quality --file FILE`.

FILE is in the LoCoMo format (see `_locomo.py`), NAME=FILE gives it a name in the report; give
`--file` as often as there are files. Each sample is one resource, each session one thread; every
question is asked over the whole resource. Figures:

- evidence within a budget: walk down the ranking and take messages (with their neighbours, where
  the pipeline has them) until the budget of tokens, estimated as characters / 4, is full;
- evidence among the k best messages (R@5), by language;
- evidence in what the defaults bring: the 4 best messages with neighbours 1/1. Peers bring no
  neighbours and are not given any.

A figure is the mean over questions of the share of their evidence messages that was found. Weights
may be chosen with the questions of one half of a set; `--half report`, which `make bench` uses,
shows the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks._locomo import Sample, read_samples
from benchmarks._machine import machine, versions
from benchmarks._measures import Asked, Outcome, difference, outcome, summary
from benchmarks._pipelines import DEFAULT, MASTRA, PIPELINES, indexed
from benchmarks._stored import StoredSamples
from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import OURS, PEERS, Peer
from semantic_recall.embedders import EMBEDDER_NAMES, embedder_named

LIBRARY = "SemanticRecall.recall"
SHOWN = (500, 1000, 2000)
_VECTORS = Path("build/vectors")
_NOT_MEASURED = ("mastra",)
"""Peers whose ranking is a pipeline here: in parity tests it finds the same messages."""


def run(file: str, embedders: Sequence[str], *, peers: bool = False) -> dict[str, Any]:
    """Measure every pipeline on a file.

    Args:
        file: The path of a file in the LoCoMo format, or NAME=PATH.
        embedders: Names that `embedder_named` knows, or "none"; the first is used by every
            pipeline, the others by the default and by Mastra's method.
        peers: Also ask the peers that are installed.
    """
    name, _, path = file.rpartition("=")
    samples = read_samples(Path(path))
    name = name or Path(path).name
    asked = Asked.of(samples)
    found: list[tuple[dict[str, Any], Outcome]] = []
    for number, embedder in enumerate(embedders):
        for about, one in _outcomes(samples, embedder, first=number == 0, peers=peers):
            found.append(({**about, "embedder": embedder}, one))
            print(f"{name}: {about['name']} ({embedder})", file=sys.stderr)
    return _report(name, samples, asked, found)


def _outcomes(
    samples: Sequence[Sample], embedder: str, *, first: bool, peers: bool
) -> Iterator[tuple[dict[str, Any], Outcome]]:
    model = None if embedder == "none" else MemoEmbedder(embedder_named(embedder), _VECTORS)
    indexes = indexed(samples, model)
    for pipeline in PIPELINES:
        wanted = first or pipeline.name in (DEFAULT, MASTRA)
        if wanted and (model is not None or not pipeline.needs_embedder):
            about = {"name": pipeline.name, "group": pipeline.group}
            yield about, outcome(samples, pipeline.over(indexes), neighbours=pipeline.neighbours)
    if first and model is not None:
        for peer in (OURS, *PEERS) if peers else (OURS,):
            if peer.module not in _NOT_MEASURED:
                yield from _through(peer, samples, model)


def _through(
    peer: Peer, samples: Sequence[Sample], embedder: MemoEmbedder
) -> Iterator[tuple[dict[str, Any], Outcome]]:
    """Yield what a library finds, or nothing and a line that says why."""
    about = {"name": peer.name, "group": "peer"}
    if peer is OURS:
        about = {"name": LIBRARY, "group": "ours"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        try:
            stored = StoredSamples(peer, Path(directory) / "memory", samples, embedder)
        except ImportError as error:
            print(f"{peer.name}: not installed ({error}): {peer.install}", file=sys.stderr)
            return
        except Exception as error:  # whatever a library raises, the others go on
            if peer is OURS:
                raise
            print(f"{peer.name} failed: {error!r}", file=sys.stderr)
            return
        try:
            yield about, outcome(samples, stored.rank, window=1 if peer is OURS else 0)
        finally:
            stored.close()


def _report(
    name: str,
    samples: Sequence[Sample],
    asked: Asked,
    found: Sequence[tuple[Mapping[str, Any], Outcome]],
) -> dict[str, Any]:
    everything = np.ones(len(asked.kinds), dtype=np.bool_)
    (default,) = (one for about, one in found[: len(PIPELINES)] if about["name"] == DEFAULT)
    pipelines = []
    for about, one in found:
        whole = summary(asked, one, everything)
        half = summary(asked, one, asked.reported) if asked.reported.any() else whole
        del whole["kinds"]
        pipelines.append({
            **about,
            "all": whole,
            "report": half,
            "less_than_default": difference(
                asked, default, one, asked.reported if asked.reported.any() else everything
            ),
        })  # fmt: skip
    return {
        "file": name,
        "date": machine()["date"],
        "samples": len(samples),
        "messages": sum(len(sample.turns) for sample in samples),
        "questions": len(asked.kinds),
        "pipelines": pipelines,
    }


def kept(path: Path | None, measured: Collection[str]) -> list[dict[str, Any]]:
    """Return the sets in a result file that are not among those measured now."""
    if path is None or not path.exists():
        return []
    files: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["files"]
    return [file for file in files if file["file"] not in measured]


def _show(report: Mapping[str, Any], half: str) -> None:
    title = f"{report['file']}: share of the evidence found, {half} questions"
    table = Table(title=title)
    table.add_column("pipeline")
    table.add_column("embedder")
    languages = sorted({name for p in report["pipelines"] for name in p[half]["languages"]})
    for header in [
        *(f"{budget} tokens" for budget in SHOWN),
        *(f"R@5 {language}" for language in languages),
        "4 best",
        "in tokens",
    ]:
        table.add_column(header, justify="right")
    for pipeline in report["pipelines"]:
        figures = pipeline[half]
        table.add_row(
            pipeline["name"],
            pipeline["embedder"],
            *(f"{figures['evidence'][str(budget)][0]:.3f}" for budget in SHOWN),
            *(f"{figures['languages'][language]['found'][0]:.3f}" for language in languages),
            f"{figures['top_4']['found'][0]:.3f}",
            str(figures["top_4"]["tokens"]),
        )
    Console(width=140).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument(
        "--file", action="append", required=True, help="data in the LoCoMo format, or NAME=FILE"
    )
    parser.add_argument(
        "--embedder", action="append", choices=[*EMBEDDER_NAMES, "none"], help="first: for all"
    )
    parser.add_argument(
        "--peers", action="store_true", help="also the libraries of benchmarks/peers"
    )
    parser.add_argument("--half", default="all", choices=["all", "report"])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help="write the JSON there")
    parser.add_argument(
        "--keep", type=Path, help="JSON whose sets stay if they are not measured now"
    )
    options = parser.parse_args(arguments)
    embedders = options.embedder or ["wordllama"]
    before = machine()
    reports = [run(file, embedders, peers=options.peers) for file in options.file]
    reports += kept(options.keep, {report["file"] for report in reports})
    result = {"machine": before, "versions": versions(), "files": reports}
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        for report in reports:
            _show(report, options.half)


if __name__ == "__main__":
    main()
