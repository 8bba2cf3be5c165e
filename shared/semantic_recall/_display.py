"""How a recall shows itself in a terminal and in a notebook."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semantic_recall.formatting import ELLIPSIS, clean
from semantic_recall.types import Message, RecalledMessage

if TYPE_CHECKING:
    from semantic_recall.result import Recall

# Jupyter styles every table (fixed equal columns, aligned right) with one class; two win over it.
# Colours are halfway between light and dark or taken from the text: a notebook's theme is unknown.
_STYLE = """<style>
.semantic-recall.recall {max-width: 62em}
.semantic-recall.recall p {margin: 0 0 .4em}
.semantic-recall.recall table {border-collapse: collapse; table-layout: auto; width: 100%;
  margin: 0 0 .6em}
.semantic-recall.recall caption {text-align: left; font-weight: bold; padding: .6em 0 .3em}
.semantic-recall.recall th, .semantic-recall.recall td {
  text-align: left; vertical-align: top; padding: .45em 1em .45em 0; background: none}
.semantic-recall.recall tbody tr {background: none; border-top: 1px solid rgba(128, 128, 128, .3)}
.semantic-recall.recall thead th {font-weight: normal; opacity: .8; padding: 0 1em .3em 0}
.semantic-recall.recall .message {width: 100%}
.semantic-recall.recall .text {white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.45}
.semantic-recall.recall .neighbour .text {opacity: .8}
.semantic-recall.recall .who, .semantic-recall.recall .neighbour th {
  opacity: .8; font-size: .9em; font-weight: normal}
.semantic-recall.recall td.number {font-variant-numeric: tabular-nums; padding-right: .8em}
.semantic-recall.recall meter {display: block; width: 5em; height: .4em; margin-top: .3em;
  appearance: none; border: 0; border-radius: 1em; background: rgba(128, 128, 128, .25)}
.semantic-recall.recall meter::-webkit-meter-inner-element {height: .4em}
.semantic-recall.recall meter::-webkit-meter-bar {
  height: .4em; border: 0; border-radius: 1em; background: none}
.semantic-recall.recall meter::-webkit-meter-optimum-value {
  border-radius: 1em; background: #1f9d8b}
.semantic-recall.recall meter::-moz-meter-bar {border-radius: 1em; background: #1f9d8b}
.semantic-recall.recall .neighbour meter {opacity: .5}
.semantic-recall.recall summary {cursor: pointer}
.semantic-recall.recall pre {white-space: pre-wrap; overflow-wrap: anywhere; font-size: .9em;
  margin: .4em 0 .8em; padding-left: 1em; border-left: 2px solid rgba(128, 128, 128, .3)}
.semantic-recall.recall .time {opacity: .8; font-size: .9em}
</style>"""

_TEXT_SHOWN = 600
_BLOCK_SHOWN = 8_000


def recall_repr(recall: Recall) -> str:
    """Return one line without message text, safe for any terminal."""
    parts = [repr(_short(recall.query, 60)), _count(len(recall.hits), "hit")]
    parts.append(_count(len(recall.messages), "message"))
    if recall.same_thread:
        parts.append(f"{len(recall.same_thread)} of the current thread")
    if recall.dropped:
        parts.append("dropped " + _reasons(recall))
    return f"<Recall {', '.join(parts)}>"


def recall_html(recall: Recall) -> str:
    """Return tables of what was recalled, one per thread; everything escaped, no script."""
    neighbours = len(recall.messages) - len(recall.hits)
    summary = (
        f"{_count(len(recall.hits), 'hit')}, {_count(neighbours, 'neighbour')}, "
        f"{_count(recall.tokens, 'token')}"
    )
    parts = [
        f'{_STYLE}<div class="semantic-recall recall" role="group" aria-label="Recall">',
        f"<p><strong>Recall</strong> for “{_escape(_short(recall.query, 200))}”: {summary}</p>",
    ]
    if recall.dropped:
        parts.append(f"<p>Left out: {_escape(_reasons(recall))}</p>")
    show = _Rows(recall)
    threads: dict[tuple[str | None, str], list[RecalledMessage]] = {}
    for recalled in recall.messages:
        threads.setdefault(_thread(recalled.message), []).append(recalled)
    for thread, group in threads.items():
        parts += _thread_table(thread, group, show, current=(recall.resource_id, recall.thread_id))
    if recall.text:
        block = _escape(_short(recall.text, _BLOCK_SHOWN))
        parts.append(
            f"<details><summary>Block for the prompt</summary><pre>{block}</pre></details>"
        )
    if recall.timings:
        steps = ", ".join(f"{name} {value:.2f} ms" for name, value in recall.timings.items())
        parts.append(f'<p class="time">Time: {_escape(steps)}</p>')
    return "\n".join([*parts, "</div>"])


def _thread_table(
    thread: tuple[str | None, str],
    group: list[RecalledMessage],
    show: _Rows,
    *,
    current: tuple[str | None, str | None],
) -> Iterator[str]:
    note = " (current)" if thread == current else ""
    yield f"<table><caption>Thread {_escape(_short(thread[1], 120))}{note}</caption>"
    heads = ("Hit", "Message", "Score", "Cosine", "BM25")
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield f"<thead><tr>{cells}</tr></thead><tbody>"
    for recalled in group:
        yield show.row(recalled)
    yield "</tbody></table>"


class _Rows:
    """Makes the rows of a recall: what a bar is measured by is the best of all its messages."""

    def __init__(self, recall: Recall) -> None:
        self._ranks = {id(hit): rank for rank, hit in enumerate(recall.hits, start=1)}
        self._score = max((one.score or 0.0 for one in recall.messages), default=0.0)
        self._lexical = max((one.lexical or 0.0 for one in recall.messages), default=0.0)

    def row(self, recalled: RecalledMessage) -> str:
        message = recalled.message
        kind = "hit" if recalled.is_hit else "neighbour"
        moment = message.created_at.isoformat(sep=" ", timespec="minutes").removesuffix("+00:00")
        who = _escape(_short(message.name or message.role, 60))
        text = _escape(_short(message.text, _TEXT_SHOWN))
        return (
            f'<tr class="{kind}"><th scope="row">{self._ranks.get(id(recalled), kind)}</th>'
            f'<td class="message"><div class="who">{who} · {moment} UTC</div>'
            f'<div class="text" dir="auto">{text}</div></td>'
            f"{_bar(recalled.score, self._score)}{_bar(recalled.dense, 1.0)}"
            f"{_bar(recalled.lexical, self._lexical)}</tr>"
        )


def _bar(value: float | None, top: float) -> str:
    """Return a cell with a number, and a bar below it that adds nothing for a screen reader."""
    if value is None:
        return f'<td class="number">{_number(value)}</td>'
    share = min(1.0, max(0.0, value / top)) if top > 0 else 0.0
    meter = f'<meter aria-hidden="true" value="{share:.3f}"></meter>'
    return f'<td class="number">{_number(value)}{meter}</td>'


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _thread(message: Message) -> tuple[str | None, str]:
    return message.resource_id, message.thread_id


def _reasons(recall: Recall) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in recall.dropped.items())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + ELLIPSIS


def _escape(text: str) -> str:
    return html.escape(clean(text))
