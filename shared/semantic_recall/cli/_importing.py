"""Storing what an importer reads: in bounded batches, with progress and a count."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from semantic_recall import Message, SemanticRecall
from semantic_recall.cli import _output as output
from semantic_recall.importers import AnyImporter, BadRecord, Defaults, Position, Source, read_with

BATCH = 1_000
BATCH_CHARACTERS = 8_000_000
"""Of text and payload: a thousand messages with an image each would not be bounded."""
_REASONS_SHOWN = 20
_TICK = 0.5
"""Seconds between two moves of the progress bar."""


@dataclass(slots=True)
class Imported:
    """What an import did so far."""

    messages: int = 0
    new: int = 0
    skipped: list[BadRecord] = field(default_factory=list)
    """The first ones only; `skips` counts all."""
    skips: int = 0
    pending: int = 0
    """Messages that wait for their vectors; counted in the whole memory, as is `index_lag`."""
    index_lag: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0


def import_file(
    memory: SemanticRecall, source: Source, importer: AnyImporter, defaults: Defaults
) -> Imported:
    """Store a file's messages in batches, embed and index them, and count.

    Raises:
        StoreError: The database failed; the batches before are stored.
        ImportFormatError: The file cannot be read any further; the batches before are stored.
    """
    started = time.perf_counter()
    before = memory.stats().messages
    done = Imported()
    position = Position()
    with output.progress_bar("storing") as advance:
        items = read_with(importer, source, defaults, position)
        for batch in _batches(items, position, done):
            # Nothing can have been stored under these ids in an empty memory.
            messages = _first_times(memory, batch) if before else batch.messages
            memory.remember(messages, background=True)
            done.messages += len(messages)
            advance(position.done, position.total)
    _flush(memory, done.messages)
    stats = memory.stats()
    done.new = stats.messages - before
    done.pending, done.index_lag = stats.pending, stats.index_lag
    done.seconds = time.perf_counter() - started
    return done


@dataclass(slots=True)
class _Batch:
    messages: list[Message] = field(default_factory=list)
    undated: set[int] = field(default_factory=set)
    """The places of messages whose time is only that of their file, or the like."""
    characters: int = 0

    def add(self, message: Message, *, dated: bool) -> None:
        if not dated:
            self.undated.add(len(self.messages))
        self.messages.append(message)
        self.characters += len(message.text) + _characters(message.payload)

    @property
    def is_full(self) -> bool:
        return len(self.messages) >= BATCH or self.characters >= BATCH_CHARACTERS


def _batches(
    items: Iterable[Message | BadRecord], position: Position, done: Imported
) -> Iterator[_Batch]:
    """Yield the messages in batches; what cannot be read is counted."""
    batch = _Batch()
    for item in items:
        if isinstance(item, Message):
            batch.add(item, dated=item.created_at != position.undated)
            if batch.is_full:
                yield batch
                batch = _Batch()
            continue
        done.skips += 1
        if len(done.skipped) < _REASONS_SHOWN:
            done.skipped.append(item)
    if batch.messages:
        yield batch


def _characters(value: object) -> int:
    """Return about how many characters a JSON value has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + _characters(one) for key, one in value.items())
    return sum(map(_characters, value)) if isinstance(value, list) else 1


def _first_times(memory: SemanticRecall, batch: _Batch) -> list[Message]:
    """Return the messages; those without a time of their own keep the one they are stored with.

    The file may have grown since, and its time is another now.
    """
    threads: dict[tuple[str | None, str], list[int]] = {}
    for place in batch.undated:
        message = batch.messages[place]
        threads.setdefault((message.resource_id, message.thread_id), []).append(place)
    messages = list(batch.messages)
    for (resource_id, thread_id), places in threads.items():
        ids = [messages[place].id for place in places]
        stored = memory.find(ids, thread_id=thread_id, resource_id=resource_id)
        times = {one.id: one.created_at for one in stored}
        for place in places:
            message = messages[place]
            messages[place] = replace(message, created_at=times.get(message.id, message.created_at))
    return messages


def _flush(memory: SemanticRecall, messages: int) -> None:
    """Embed and index what was stored, with a progress bar."""
    with output.progress_bar("embedding and indexing") as advance:
        while True:
            began = time.monotonic()
            # False before the time is over means that the index failed, which the library has
            # logged; it catches up when the memory is next used.
            if memory.flush(timeout=_TICK) or time.monotonic() - began < _TICK:
                return
            waiting = memory.stats()
            left = min(messages, waiting.pending + waiting.index_lag)
            advance(messages - left, messages)
