"""Compares two result files: `python -m benchmarks.regression OLD NEW` fails on a loss.

Quality is exact, so a loss of more than half a point of the evidence counts. Times depend on the
machine and on what else it does: they are compared as multiples of the floor's times in the same
run, and only a loss beyond the noise of both runs counts, which is what the medians of their rounds
differ by, and at least 15%.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import FLOOR, OURS, OURS_POSTGRES

EVIDENCE_NOISE = 0.005
LEAST_NOISE = 0.15
_ONCE = 0.5
"""The noise of figures that are not measured in rounds."""
_SIZE_NOISE = 0.1
_TIMES = {
    # our figure: the floor's figure that it is a multiple of
    "recall": "recall",
    "recall_thread": "recall_thread",
    "recall_cold": "recall",
    "remember_turn": "remember_turn",
}


@dataclass(frozen=True, slots=True)
class Change:
    """A figure in both files, in such a unit that more is better."""

    what: str
    old: float
    new: float
    noise: float
    """How much less is still no loss: a share of `old`, or for evidence a difference."""
    relative: bool = True

    @property
    def is_loss(self) -> bool:
        """True when it is worse by more than the noise."""
        least = self.old * (1 - self.noise) if self.relative else self.old - self.noise
        return self.new < least


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """Return every figure that both files have.

    Args:
        old: What `quality.py` or `speed.py` wrote.
        new: The same of a later run.
    """
    if "corpora" in old:
        return list(_speed(old, new))
    return list(_quality(old, new))


def _quality(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before = {file["file"]: file for file in old["files"]}
    for file in new["files"]:
        earlier = before.get(file["file"])
        # Other questions are another measure: there is nothing to compare.
        if earlier is None or earlier["questions"] != file["questions"]:
            continue
        ours = {_key(p): p for p in earlier["pipelines"] if p["group"] == "ours"}
        for pipeline in file["pipelines"]:
            if _key(pipeline) in ours:
                what = " ".join((file["file"], *_key(pipeline)))
                yield from _evidence(what, ours[_key(pipeline)]["all"], pipeline["all"])


def _key(pipeline: Mapping[str, Any]) -> tuple[str, str]:
    return pipeline["name"], pipeline["embedder"]


def _evidence(what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    def change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
        return Change(f"{what} {name}", before[0], after[0], EVIDENCE_NOISE, relative=False)

    for budget in old["evidence"].keys() & new["evidence"].keys():
        yield change(f"@{budget}", old["evidence"][budget], new["evidence"][budget])
    for language in old["languages"].keys() & new["languages"].keys():
        before, after = old["languages"][language], new["languages"][language]
        yield change(f"R@5 {language}", before["found"], after["found"])
    yield change("4 best", old["top_4"]["found"], new["top_4"]["found"])


def _speed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    before = {corpus["name"]: corpus["subjects"] for corpus in old["corpora"]}
    for corpus in new["corpora"]:
        earlier, later = before.get(corpus["name"], {}), corpus["subjects"]
        if "recall" not in earlier.get(FLOOR.name, {}) or "recall" not in later.get(FLOOR.name, {}):
            continue
        for peer in (OURS, OURS_POSTGRES):
            if peer.name in earlier and peer.name in later:
                what = f"{corpus['name']} {peer.name}"
                floors = earlier[FLOOR.name], later[FLOOR.name]
                yield from _times(what, earlier[peer.name], later[peer.name], *floors)


def _times(
    what: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    old_floor: Mapping[str, Any],
    new_floor: Mapping[str, Any],
) -> Iterator[Change]:
    for name, yardstick in _TIMES.items():
        if name in old and name in new:
            parts = (old[name], new[name], old_floor[yardstick], new_floor[yardstick])
            yield Change(
                f"{what} {name} p50 (floor / ours)",
                old_floor[yardstick]["p50"] / old[name]["p50"],
                new_floor[yardstick]["p50"] / new[name]["p50"],
                max(LEAST_NOISE, sum(_spread(part) for part in parts)),
            )
    for name, noise in (("rss_mb", _SIZE_NOISE), ("disk_mb", _SIZE_NOISE)):
        if old.get(name) and new.get(name):
            yield Change(f"{what} {name} (1 / MB)", 1 / old[name], 1 / new[name], noise)
    rate = "import_per_second"
    if rate in old and rate in new:
        yield Change(
            f"{what} {rate} (ours / floor)",
            old[rate] / old_floor[rate],
            new[rate] / new_floor[rate],
            _ONCE,
        )


def _spread(figure: Mapping[str, float]) -> float:
    if "p50_low" not in figure:
        return _ONCE / 2
    return (figure["p50_high"] - figure["p50_low"]) / 2 / figure["p50"]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.regression", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    options = parser.parse_args(arguments)
    if not options.old.exists():
        print(f"{options.old} does not exist: nothing to compare with")
        return 0
    old, new = (json.loads(path.read_text("utf-8")) for path in (options.old, options.new))
    compared = changes(old, new)
    losses = [change for change in compared if change.is_loss]
    for change in losses:
        print(f"LOSS  {change.what}: {change.old:.4g} before, {change.new:.4g} now", end=" ")
        print(f"(noise {change.noise:.0%})" if change.relative else f"(noise {change.noise})")
    print(f"{len(compared)} figures compared, {len(losses)} lost")
    return 1 if losses else 0


if __name__ == "__main__":
    sys.exit(main())
