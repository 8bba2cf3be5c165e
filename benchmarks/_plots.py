"""The pictures of the report: SVG, the same bytes for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from benchmarks._measures import BUDGETS
from benchmarks.peers import FLOOR, OURS, OURS_POSTGRES

_OUR_COLOUR = "#c2410c"
_COLOURS = ("#1d4ed8", "#0f766e", "#7c3aed", "#a16207", "#be185d", "#475569", "#4d7c0f", "#0e7490")
_MARKERS = "osD^vP*X"
_STYLE: Any = {
    "svg.hashsalt": "semantic-recall",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e2e8f0",
    "figure.facecolor": "white",
}


def evidence(
    files: Sequence[Mapping[str, Any]], names: Mapping[str, str], half: str, path: Path
) -> None:
    """Draw the evidence found against the tokens that it took, a panel for each set.

    Args:
        files: As `quality.py` writes them.
        names: The pipelines to draw, as they are called in the legend; ours last.
        half: "all" or "report".
        path: Where the picture goes.
    """
    with mpl.rc_context(_STYLE):
        figure, panels = plt.subplots(
            1, len(files), figsize=(3.6 * len(files) + 0.4, 4.4), sharey=True, squeeze=False
        )
        for axes, file in zip(panels[0], files, strict=True):
            for number, (name, label) in enumerate(names.items()):
                _curve(axes, file, name, label, half, number, ours=number == len(names) - 1)
            axes.set_xscale("log")
            axes.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
            axes.minorticks_off()
            axes.set_xlabel("tokens added to the prompt")
            axes.set_title(f"{file['file']}", fontsize=10)
        panels[0][0].set_ylabel("share of the evidence found")
        panels[0][0].set_ylim(0, 1)
        _save(figure, panels[0][0], path, columns=3)


def _curve(
    axes: Axes,
    file: Mapping[str, Any],
    name: str,
    label: str,
    half: str,
    number: int,
    *,
    ours: bool,
) -> None:
    found = [p for p in file["pipelines"] if p["name"] == name]
    if not found:
        return
    figures = [found[0][half]["evidence"][str(budget)] for budget in BUDGETS]
    colour = _OUR_COLOUR if ours else _COLOURS[number % len(_COLOURS)]
    axes.plot(
        BUDGETS,
        [figure[0] for figure in figures],
        color=colour,
        marker=_MARKERS[number % len(_MARKERS)],
        markersize=4,
        linewidth=2.4 if ours else 1.2,
        label=label,
        zorder=3 if ours else 2,
    )
    if ours:
        low, high = ([figure[at] for figure in figures] for at in (1, 2))
        axes.fill_between(BUDGETS, low, high, color=colour, alpha=0.15, linewidth=0)


def latency(corpora: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the median recall against the number of messages, both logarithmic."""
    several = [corpus for corpus in corpora if corpus["resources"] > 1]
    subjects = list(dict.fromkeys(name for corpus in several for name in corpus["subjects"]))
    with mpl.rc_context(_STYLE):
        figure, axes = plt.subplots(figsize=(7.2, 4.6))
        for number, name in enumerate(subjects):
            points = [
                (corpus["messages"], corpus["subjects"][name]["recall"]["p50"])
                for corpus in several
                if "recall" in corpus["subjects"].get(name, {})
            ]
            if points:
                ours = name in (OURS.name, OURS_POSTGRES.name)
                axes.plot(
                    *zip(*points, strict=True),
                    color=_OUR_COLOUR if ours else _COLOURS[number % len(_COLOURS)],
                    linestyle={FLOOR.name: ":", OURS_POSTGRES.name: "--"}.get(name, "-"),
                    marker=_MARKERS[number % len(_MARKERS)],
                    markersize=5,
                    linewidth=2.4 if ours else 1.2,
                    label=name,
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.set_xlabel("messages stored, 100 for each user on average")
        axes.set_ylabel("recall, median, ms")
        _save(figure, axes, path, columns=2)


def _save(figure: Figure, axes: Axes, path: Path, *, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns, frameon=False
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    # matplotlib ends lines with blanks, which editors and git then remove or complain about.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
