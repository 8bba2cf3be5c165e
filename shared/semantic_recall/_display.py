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
_STYLE = """<style>
.semantic-recall.recall table {border-collapse: collapse; table-layout: auto; width: 100%}
.semantic-recall.recall caption {text-align: left; font-weight: bold; padding: .6em 0 .2em}
.semantic-recall.recall th, .semantic-recall.recall td {
  text-align: left; vertical-align: top; padding: .2em .6em}
.semantic-recall.recall td.text {white-space: pre-wrap; overflow-wrap: anywhere; width: 55%}
.semantic-recall.recall tr.neighbour {opacity: .75}
.semantic-recall.recall meter {width: 6em; vertical-align: middle}
</style>"""

_TEXT_SHOWN = 600


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
    summary = (
        f"{_count(len(recall.hits), 'hit')}, {_count(len(recall.messages), 'message')}, "
        f"{_count(recall.tokens, 'token')}"
    )
    parts = [
        f'{_STYLE}<div class="semantic-recall recall">',
        f"<p><strong>Recall</strong> for “{_escape(_short(recall.query, 200))}”: {summary}</p>",
    ]
    top = max((recalled.score or 0.0 for recalled in recall.messages), default=0.0)
    threads: dict[tuple[str | None, str], list[RecalledMessage]] = {}
    for recalled in recall.messages:
        threads.setdefault(_thread(recalled.message), []).append(recalled)
    for thread, group in threads.items():
        parts += _thread_table(thread, group, top, current=(recall.resource_id, recall.thread_id))
    if recall.dropped:
        parts.append(f"<p>Left out: {_escape(_reasons(recall))}</p>")
    if recall.timings:
        steps = ", ".join(f"{name} {value:.2f} ms" for name, value in recall.timings.items())
        parts.append(f"<p>Time: {_escape(steps)}</p>")
    return "\n".join([*parts, "</div>"])


def _thread_table(
    thread: tuple[str | None, str],
    group: list[RecalledMessage],
    top: float,
    *,
    current: tuple[str | None, str | None],
) -> Iterator[str]:
    note = " (current)" if thread == current else ""
    yield f"<table><caption>Thread {_escape(_short(thread[1], 120))}{note}</caption>"
    heads = ("Found as", "Score", "Cosine", "BM25", "Time (UTC)", "Speaker", "Text")
    cells = "".join(f'<th scope="col">{head}</th>' for head in heads)
    yield f"<thead><tr>{cells}</tr></thead><tbody>"
    for recalled in group:
        yield _row(recalled, top)
    yield "</tbody></table>"


def _row(recalled: RecalledMessage, top: float) -> str:
    message = recalled.message
    kind = "hit" if recalled.is_hit else "neighbour"
    cells = (
        kind,
        _bar(recalled.score, top),
        _number(recalled.dense),
        _number(recalled.lexical),
        message.created_at.isoformat(sep=" ", timespec="minutes").removesuffix("+00:00"),
        _escape(_short(message.name or message.role, 60)),
    )
    plain = "".join(f"<td>{cell}</td>" for cell in cells)
    text = _escape(_short(message.text, _TEXT_SHOWN))
    return f'<tr class="{kind}">{plain}<td class="text" dir="auto">{text}</td></tr>'


def _bar(score: float | None, top: float) -> str:
    """Return the score as a number with a bar beside it, for whom the bar is no help."""
    if score is None:
        return _number(score)
    share = min(1.0, max(0.0, score / top)) if top > 0 else 0.0
    return f'{_number(score)} <meter aria-hidden="true" value="{share:.3f}"></meter>'


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
