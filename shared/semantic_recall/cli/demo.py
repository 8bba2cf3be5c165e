"""`semantic-recall demo`: import, restart, ask, and show what comes back and why."""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
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
from semantic_recall.cli.transfer import Imported, import_file
from semantic_recall.errors import ConfigurationError
from semantic_recall.importers import Defaults, JsonLinesImporter
from semantic_recall.samples import RESOURCE_ID, SampleQuestion, conversations, questions
from semantic_recall.types import RecalledMessage

PASS_MARK = 0.7
"""The share of the questions that must be answered; some are hard on purpose."""

_HITS_SHOWN = 2
_BLOCK_FOR = "wedding-date"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one question brought back."""

    question: SampleQuestion
    recall: Recall
    milliseconds: float
    """Measured around the call."""

    @property
    def found(self) -> bool:
        """True when one of the hits answers the question."""
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
    0 only if seven of ten questions or more are answered and nothing of another person comes back.
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
    recall = memory.recall(question.question, resource_id=question.resource_id)
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
        "strangers": sum(answer.strangers for answer in answers),
        "worked": worked,
        "questions": [
            {
                "id": answer.question.id,
                "language": answer.question.language,
                "question": answer.question.question,
                "found": answer.found,
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
            ".\nMemory closed and opened again. Now Mina asks her assistant:",
        )
    )
    for count, answer in enumerate(answers, start=1):
        console.print(_card(count, answer))
        if answer.question.id == _BLOCK_FOR:
            _print_block(console, answer.recall)
    _print_totals(console, answers)
    if folder is None:
        console.print(
            "Keep the memory and look around: semantic-recall demo --path demo-memory", style="dim"
        )
    else:
        console.print(
            Text(f'Look around: semantic-recall search "…" --resource mina --path {folder}'),
            style="dim",
        )


def _card(count: int, answer: Answer) -> Group:
    """Return a question with its best hits; the answer is always among them, if it was found."""
    mark = ("✓", "bold green") if answer.found else ("✗", "bold red")
    lines: list[Any] = [
        Text.assemble("\n", mark, (f" {count}. {answer.question.question}", "bold"))
    ]
    hits = answer.recall.hits
    shown = [
        (rank, hit)
        for rank, hit in enumerate(hits, start=1)
        if rank == 1 or rank == _rank(answer) or (rank <= _HITS_SHOWN and _rank(answer) < 3)
    ]
    for rank, hit in shown:
        right = answer.answers(hit)
        message = hit.message
        head = Text.assemble(
            (f"#{rank} ", "bold green" if right else ""),
            (f"{hit.score or 0:.2f}", "bold"),
            f" = meaning {output.number(hit.dense)}, words {output.number(hit.lexical, 1)}",
            (f"  {message.thread_id}, {output.moment(message.created_at)}", "cyan"),
        )
        said = Text(
            f"{message.role}: {output.one_line(message.text, 200)}",
            style="green" if right else "dim",
        )
        lines += [Padding(head, (0, 0, 0, 3)), Padding(said, (0, 0, 0, 6))]
    if not answer.found:
        why = output.one_line(answer.question.note) or "not among the hits"
        lines.append(Padding(Text(f"not found. {why}", style="red"), (0, 0, 0, 3)))
    return Group(*lines)


def _rank(answer: Answer) -> int:
    """Return the rank of the first hit that answers, 0 for none."""
    ranks = (i for i, hit in enumerate(answer.recall.hits, start=1) if answer.answers(hit))
    return next(ranks, 0)


def _print_block(console: Console, recall: Recall) -> None:
    title = f"what the model is given for it: {output.counted(recall.tokens, 'token')}"
    console.print(
        Padding(Panel(Text(recall.text), title=Text(title), title_align="left"), (0, 0, 0, 3))
    )


def _print_totals(console: Console, answers: list[Answer]) -> None:
    found = sum(answer.found for answer in answers)
    first = sum(_rank(answer) == 1 for answer in answers)
    strangers = sum(answer.strangers for answer in answers)
    times = sorted(answer.milliseconds for answer in answers)
    tokens = sum(answer.recall.tokens for answer in answers) // len(answers)
    style = "bold green" if _worked(answers) else "bold red"
    console.print(
        Text.assemble(
            "\n",
            (f"{found} of {len(answers)} answered", style),
            f" among the 4 best of 190 messages ({first} by the very best one), "
            f"median {times[len(times) // 2]:.1f} ms and {tokens} tokens a question; ",
            (f"{strangers} messages of another person", "" if strangers == 0 else "bold red"),
            " came back.",
        )
    )
