"""`semantic-recall demo`: import, restart, ask, and show what comes back and why."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from semantic_recall import Recall, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.cli._common import (
    FOUND_SOMETHING,
    DebugOption,
    EmbedderName,
    EmbedderOption,
    JsonOption,
    guarded,
    memory_at,
)
from semantic_recall.cli._importing import Imported, import_file
from semantic_recall.errors import ConfigurationError
from semantic_recall.importers import Defaults, JsonLinesImporter
from semantic_recall.samples import RESOURCE_ID, SampleQuestion, conversations, questions
from semantic_recall.types import RecalledMessage

PASS_MARK = 0.6
"""The share of the answers that must be recalled; some are hard on purpose."""

_TOP_K = 4
_BLOCK_FOR = "porto-hotel"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brought back."""

    question: SampleQuestion
    recall: Recall
    milliseconds: float
    """Measured around the call."""

    @property
    def found(self) -> bool:
        """True when an answer reaches the prompt, as a hit or as a neighbour of one."""
        return any(self.answers(recalled) for recalled in self.recall)

    @property
    def found_as_hit(self) -> bool:
        """True when an answer is one of the hits."""
        return any(self.answers(hit) for hit in self.recall.hits)

    @property
    def strangers(self) -> int:
        """How many messages of other people came back: must be 0."""
        return sum(one.message.resource_id != self.question.resource_id for one in self.recall)

    def answers(self, recalled: RecalledMessage) -> bool:
        """Tell whether a message answers the question."""
        return recalled.message.id in self.question.answers


@guarded
def demo(
    path: Annotated[
        Path | None,
        typer.Option(
            "--path", help="Keep the memory in this folder; else a temporary one is used."
        ),
    ] = None,
    embedder: EmbedderOption = EmbedderName.wordllama,
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Import sample chats, restart, ask questions and show what is recalled and why.

    The samples are 200 messages of ten months in English, Chinese and Korean. The exit code is
    0 only if six of ten answers or more are recalled and nothing of another person is.
    """
    with ExitStack() as stack:
        folder = str(path) if path else stack.enter_context(_temporary_folder())
        with memory_at(folder, embedder=embedder.argument, create=True) as memory:
            _check_own(memory, folder)
            imported = _import_samples(memory)
        # Everything is closed here: what follows comes from the disk.
        with memory_at(folder, embedder=embedder.argument) as memory:
            memory.recall("warm up", resource_id=RESOURCE_ID)
            answers = [_ask(memory, question) for question in questions()]
            name = memory.stats().embedder
    worked = _worked(answers)
    if as_json:
        output.emit(_document(folder, imported, answers, worked=worked))
    else:
        _print(output.stdout(), folder if path else None, imported, answers, name)
    if not worked:
        raise typer.Exit(FOUND_SOMETHING)


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="semantic-recall-demo-")


def _check_own(memory: SemanticRecall, folder: str) -> None:
    """Refuse to mix the samples with somebody's conversations."""
    known = {question.resource_id for question in questions()} | {"oskar"}
    if any(info.resource_id not in known for info in memory.resources()):
        raise ConfigurationError(
            f"{folder} holds other conversations; give the demo a folder of its own"
        )


def _import_samples(memory: SemanticRecall) -> Imported:
    with conversations() as source:
        return import_file(memory, source, JsonLinesImporter(), Defaults.of_file(source))


def _ask(memory: SemanticRecall, question: SampleQuestion) -> Answer:
    started = time.perf_counter()
    recall = memory.recall(question.question, resource_id=question.resource_id, top_k=_TOP_K)
    return Answer(question, recall, (time.perf_counter() - started) * 1000)


def _worked(answers: list[Answer]) -> bool:
    found = sum(answer.found for answer in answers)
    return found >= PASS_MARK * len(answers) and not any(answer.strangers for answer in answers)


def _document(
    folder: str, imported: Imported, answers: list[Answer], *, worked: bool
) -> dict[str, Any]:
    return {
        "path": folder,
        "messages": imported.messages,
        "new": imported.new,
        "import_seconds": round(imported.seconds, 3),
        "asked": len(answers),
        "found": sum(answer.found for answer in answers),
        "found_as_hit": sum(answer.found_as_hit for answer in answers),
        "strangers": sum(answer.strangers for answer in answers),
        "worked": worked,
        "questions": [
            {
                "id": answer.question.id,
                "language": answer.question.language,
                "question": answer.question.question,
                "found": answer.found,
                "found_as_hit": answer.found_as_hit,
                "answers": list(answer.question.answers),
                "hits": [output.recalled_record(hit) for hit in answer.recall.hits],
                "tokens": answer.recall.tokens,
                "milliseconds": round(answer.milliseconds, 3),
            }
            for answer in answers
        ],
    }


def _print(
    console: Console,
    folder: str | None,
    imported: Imported,
    answers: list[Answer],
    embedder: str | None,
) -> None:
    console.print(
        Text.assemble(
            (output.counted(imported.messages, "message"), "bold"),
            f" of ten months stored and embedded in {imported.seconds:.1f} s with ",
            (embedder or "no embedder (words only)", "bold"),
            ".\nMemory closed and opened again. Now Mina asks her assistant "
            f"{len(answers)} questions.\n",
            (f"{output.HIT} hit: its score (with its surroundings), meaning (cosine), ", "dim"),
            (f"words (BM25)   {output.NEIGHBOUR} neighbour   ", "dim"),
            ("the answer", "green"),
        )
    )
    for count, answer in enumerate(answers, start=1):
        console.print(_card(count, answer))
        if answer.question.id == _BLOCK_FOR:
            _print_block(console, answer.recall)
    _print_totals(console, answers)
    where = "demo-memory" if folder is None else folder
    keep = "Keep it: semantic-recall demo --path demo-memory\n" if folder is None else ""
    look = f'Look around: semantic-recall search "…" --resource {RESOURCE_ID} --path {where}'
    console.print(Text(keep + look, style="dim"))


def _card(count: int, answer: Answer) -> Group:
    """Return a question with its hits, best first; what answers it is green and whole."""
    recall = answer.recall
    mark = ("✓", "bold green") if answer.found else ("✗", "bold red")
    title = Text.assemble(
        "\n",
        mark,
        (f" {count}. {answer.question.question}", "bold"),
        (f"  {recall.tokens} tokens, {answer.milliseconds:.1f} ms", "dim"),
    )
    rows = Table.grid(padding=(0, 1))
    rows.add_column(no_wrap=True)
    for _ in range(3):
        rows.add_column(justify="right", no_wrap=True)
    rows.add_column(ratio=1)
    for hit in recall.hits:
        rows.add_row(*_row(answer, hit))
    for neighbour in recall:
        if answer.answers(neighbour) and not neighbour.is_hit:
            rows.add_row(*_row(answer, neighbour))
    parts: list[RenderableType] = [title, Padding(rows, (0, 0, 0, 2))]
    if not answer.found:
        note = answer.question.note
        parts.append(Padding(Text(f"the answer did not come. {note}", style="red"), (0, 0, 0, 2)))
    return Group(*parts)


def _row(answer: Answer, recalled: RecalledMessage) -> list[Text]:
    message, right = recalled.message, answer.answers(recalled)
    mark = output.HIT if recalled.is_hit else output.NEIGHBOUR
    said = Text.assemble(
        (f"{message.thread_id} {message.created_at:%Y-%m-%d} ", "cyan"),
        (f"{message.role}: ", "" if right else "dim"),
        (output.one_line(message.text, 300), "green" if right else "dim"),
        no_wrap=not right,
        overflow="fold" if right else "ellipsis",
    )
    style = "green" if right else ""
    return [
        Text(mark, style=style),
        Text(output.number(recalled.score), style="bold"),
        Text(output.number(recalled.dense), style="dim"),
        Text(output.number(recalled.lexical, 1), style="dim"),
        said,
    ]


def _print_block(console: Console, recall: Recall) -> None:
    title = f"what the model is given for it: {output.counted(recall.tokens, 'token')}"
    console.print(
        Padding(Panel(Text(recall.text), title=Text(title), title_align="left"), (0, 0, 0, 2))
    )


def _print_totals(console: Console, answers: list[Answer]) -> None:
    found = sum(answer.found for answer in answers)
    hits = sum(answer.found_as_hit for answer in answers)
    strangers = sum(answer.strangers for answer in answers)
    milliseconds = median(answer.milliseconds for answer in answers)
    tokens = median(answer.recall.tokens for answer in answers)
    console.print(
        Text.assemble(
            "\n",
            (
                f"{found} of {len(answers)} answers recalled",
                "bold green" if _worked(answers) else "bold red",
            ),
            f", {hits} of them as one of the {_TOP_K} hits, the others as neighbours; "
            f"median {milliseconds:.1f} ms and {tokens:.0f} tokens a question. ",
            (
                f"Messages of other people recalled: {strangers}.",
                "" if strangers == 0 else "bold red",
            ),
        )
    )
