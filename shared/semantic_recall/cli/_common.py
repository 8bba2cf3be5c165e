"""What the commands share: options, opening the memory, errors and exit codes."""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, ParamSpec

import typer

from semantic_recall import SemanticRecall
from semantic_recall.cli._output import fail, warn
from semantic_recall.errors import InvalidScopeError, SemanticRecallError, StoreError
from semantic_recall.opening import DATABASE, is_database_url
from semantic_recall.types import ThreadInfo

P = ParamSpec("P")

FAILED = 1
"""The library or the system refused; one line on stderr says why."""
FOUND_SOMETHING = 3
"""The command ran to its end and something is not as it should be."""
INTERRUPTED = 130

DEFAULT_PATH = "memory"


class EmbedderName(str, Enum):
    """What `--embedder` takes."""

    wordllama = "wordllama"
    multilingual = "multilingual"
    hash = "hash"
    none = "none"

    @property
    def argument(self) -> str | None:
        """What `SemanticRecall.open` takes."""
        return None if self is EmbedderName.none else self.value


PathOption = Annotated[
    str,
    typer.Option("--path", envvar="SEMANTIC_RECALL_PATH", help="The folder of the memory."),
]
EmbedderOption = Annotated[
    EmbedderName,
    typer.Option(
        "--embedder",
        envvar="SEMANTIC_RECALL_EMBEDDER",
        help="What the memory was (or will be) embedded with; none searches by words alone.",
    ),
]
ResourceOption = Annotated[
    str | None,
    typer.Option("--resource", help="The owner of the threads (a user, a tenant)."),
]
ThreadOption = Annotated[str | None, typer.Option("--thread", help="The thread.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show tracebacks and the library's log.")
]


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Turn what a command raises into one line on stderr and an exit code.

    With `--debug` errors keep their traceback.
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        debug = bool(kwargs.get("debug"))
        try:
            with _logging(debug):
                command(*args, **kwargs)
        except KeyboardInterrupt:
            fail("interrupted")
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # The reader (`head`, say) has gone; what is left in the buffer must not fail again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(FAILED) from None
        except (SemanticRecallError, OSError) as error:
            if debug:
                raise
            fail(str(error))
            raise typer.Exit(FAILED) from None

    return run


@contextmanager
def _logging(debug: bool) -> Iterator[None]:
    """Send the library's log to stderr, a line each, while a command runs."""
    logger = logging.getLogger("semantic_recall")
    handler, level = _Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if debug else logging.WARNING)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def memory_at(
    path: str, *, embedder: str | None = None, create: bool = False
) -> Iterator[SemanticRecall]:
    """Open a memory and close it afterwards.

    Args:
        path: Its folder, or the URL of its PostgreSQL database.
        embedder: The embedder's name; None where nothing is searched or stored.
        create: Make a new one if there is none.

    Raises:
        StoreError: There is none, and `create` is not set.
    """
    if not (create or is_database_url(path) or Path(path, DATABASE).is_file()):
        raise StoreError(
            f"there is no memory in {path} ({DATABASE} is missing); "
            "give its folder with --path or SEMANTIC_RECALL_PATH, or make one with "
            "`semantic-recall import FILE`"
        )
    with SemanticRecall.open(path, embedder=embedder) as memory:
        yield memory


def owner(resource: str | None) -> str | None:
    """Return the resource id that `--resource` means: the empty one is "no owner"."""
    return resource or None


def find_thread(memory: SemanticRecall, thread: str, resource: str | None) -> ThreadInfo:
    """Return the thread that `--thread` and `--resource` mean.

    Without a resource the thread id must stand under one owner only.

    Raises:
        InvalidScopeError: There is no such thread, or there are several.
    """
    named = [info for info in memory.threads() if info.thread_id == thread]
    if resource is not None:
        named = [info for info in named if info.resource_id == owner(resource)]
    if len(named) == 1:
        return named[0]
    if named:
        owners = ", ".join(repr(info.resource_id or "") for info in named)
        raise InvalidScopeError(
            f"{len(named)} owners have a thread {thread!r}: {owners}; name one with --resource "
            '(--resource "" means no owner)'
        )
    whose = f" of {resource!r}" if resource else ""
    raise InvalidScopeError(
        f"there is no thread {thread!r}{whose}; `semantic-recall threads` lists them"
    )
