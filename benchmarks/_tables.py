"""The tables of the report, as lines of markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._measures import AT_KIND
from benchmarks._pipelines import DEFAULT, MASTRA
from benchmarks.peers import ALL, FLOOR, OURS

SHOWN = (500, 1000, 2000)
HALF = "report"
LIBRARY = "SemanticRecall.recall"
_OTHERS = (MASTRA, "BM25, neighbours 1/1", "reciprocal rank fusion")

Figures = Mapping[str, Any]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1) -> list[str]:
    """Return a markdown table; all but the first `left` columns are aligned to the right."""
    marks = ["---" if column < left else "---:" for column in range(len(head))]
    return [f"| {' | '.join(row)} |" for row in (head, marks, *rows)]


def interval(figure: Sequence[float]) -> str:
    """Return a mean with its interval."""
    return f"{figure[0]:.3f} ({figure[1]:.2f}–{figure[2]:.2f})"


def evidence(file: Figures) -> list[str]:
    """Return what each pipeline finds within budgets and among the best."""
    chosen = [p for p in file["pipelines"] if p["group"] != "ablation" and p["name"] != DEFAULT]
    languages = sorted({name for p in chosen for name in p[HALF]["languages"]})
    head = ["", "embedder", *(f"{budget:,} tokens" for budget in SHOWN), "4 best", "in tokens"]
    head += [f"R@5 {language}" for language in languages]
    rows = [_evidence_row(pipeline, languages) for pipeline in chosen]
    rows += [
        _evidence_row({**pipeline, "name": LIBRARY}, languages)
        for pipeline in file["pipelines"]
        if pipeline["name"] == DEFAULT and pipeline["embedder"] != chosen[0]["embedder"]
    ]
    return table(head, rows, left=2)


def _evidence_row(pipeline: Figures, languages: Sequence[str]) -> list[str]:
    figures = pipeline[HALF]
    name = f"**{pipeline['name']}**" if pipeline["name"] == LIBRARY else pipeline["name"]
    return [
        name,
        pipeline["embedder"],
        *(interval(figures["evidence"][str(budget)]) for budget in SHOWN),
        f"{figures['top_4']['found'][0]:.3f}",
        str(figures["top_4"]["tokens"]),
        *(f"{figures['languages'][language]['found'][0]:.3f}" for language in languages),
    ]


def kinds(file: Figures) -> list[str]:
    """Return the evidence found in 1,000 tokens by kind of question."""
    best = _by_name(file, LIBRARY)
    others = [p for p in (_by_name(file, name) for name in _OTHERS) if p]
    peers = [p for p in file["pipelines"] if p["group"] == "peer"]
    if peers:
        others.append(max(peers, key=lambda p: float(p[HALF]["evidence"][str(AT_KIND)][0])))
    head = ["kind", "questions", *(p["name"] for p in others), LIBRARY]
    rows = []
    for kind, figure in best[HALF]["kinds"].items():
        cells = [f"{p[HALF]['kinds'][kind]['found'][0]:.3f}" for p in others]
        rows.append([kind, str(figure["questions"]), *cells, interval(figure["found"])])
    return table(head, rows)


def ablation(file: Figures) -> list[str]:
    """Return what taking an ingredient away costs, with the interval of the difference."""
    rows = []
    for pipeline in file["pipelines"]:
        if pipeline["group"] == "ablation":
            mean, low, high, *wide = pipeline["less_than_default"]
            rows.append([
                pipeline["name"],
                f"{pipeline[HALF]['evidence'][str(AT_KIND)][0]:.3f}",
                f"{_points(mean)} ({_points(high)} to {_points(low)})",
                f"{_points(wide[1])} to {_points(wide[0])}",
            ])  # fmt: skip
    return table(
        ["ingredient", f"{AT_KIND:,} tokens", "points against the default", "by conversation"], rows
    )


def _points(less: float) -> str:
    """Return a difference in points of a hundred, without a minus before a zero."""
    return f"{round(-100 * less, 1) + 0.0:+.1f}".replace("+0.0", "0.0")


def _by_name(file: Figures, name: str) -> Figures:
    found: list[Figures] = [p for p in file["pipelines"] if p["name"] == name]
    return found[0] if found else {}


def speed(corpus: Figures) -> list[str]:
    """Return every subject's figures on a corpus, and where the others stopped."""
    head = [
        "",
        "import /s",
        "remember a turn",
        "recall p50",
        "p95",
        "p99",
        "CPU p50",
        "in a thread p50",
        "cold p50",
        "open",
        "RSS MB",
        "disk MB",
    ]
    rows, stopped = [], []
    for name, figures in corpus["subjects"].items():
        if "recall" in figures:
            label = f"**{name}**" if name == OURS.name else name
            rows.append([label, *_speed_cells(figures)])
        elif "stopped" in figures:
            rate = figures.get("import_per_second")
            stopped.append(
                f"- {name} stopped: {figures['stopped']}" + (f" ({rate:,} /s)." if rate else ".")
            )
    return [*table(head, rows), *([""] if stopped else []), *stopped]


def _speed_cells(figures: Figures) -> list[str]:
    recall, empty = figures["recall"], "–"
    return [
        f"{figures['import_per_second']:,}",
        _ms(figures.get("remember_turn")),
        _ms(recall),
        f"{recall['p95']:.2f}",
        f"{recall['p99']:.2f}",
        _ms(figures.get("recall_cpu")),
        _ms(figures.get("recall_thread")),
        _ms(figures.get("recall_cold")),
        f"{figures['open_ms']:.0f}" if "open_ms" in figures else empty,
        f"{figures['rss_mb']:,.0f}",
        f"{figures['disk_mb']:,.0f}" if figures["disk_mb"] else empty,
    ]


def _ms(figure: Mapping[str, float] | None) -> str:
    return f"{figure['p50']:.2f}" if figure else "–"


def times_faster(corpus: Figures) -> str:
    """Return by how much a recall of ours is faster than each peer's."""
    ours = corpus["subjects"].get(OURS.name, {})
    parts = [
        f"{name} {figures['recall']['p50'] / ours['recall']['p50']:.0f}"
        for name, figures in corpus["subjects"].items()
        if "recall" in figures and "recall" in ours and not name.startswith("semantic-recall")
        if name != FLOOR.name
    ]
    return "Median recall as a multiple of ours: " + ", ".join(parts) + "." if parts else ""


def subjects(measured: Mapping[str, float | None]) -> list[str]:
    """Return what each subject is, and how long its import takes."""
    rows = []
    for peer in ALL:
        took = measured.get(peer.name)
        if peer.name in measured:
            state = "not installed: " + peer.install if took is None else f"{took:,.0f}"
        else:
            state = "–"
        rows.append([peer.name, peer.note, state])
    return table(["subject", "how it is set up", "import ms"], rows, left=2)
