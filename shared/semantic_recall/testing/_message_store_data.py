"""What the suite of message stores stores."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from semantic_recall.protocols import MessageStore
from semantic_recall.records import IndexOperation, MessageRecord, MessageVectors, Part
from semantic_recall.types import Message, Scope, VectorSpace

SPACE = VectorSpace("suite", 4)
OTHER_SPACE = VectorSpace("suite", 8)
ANNA, T1 = Scope("anna"), Scope("anna", "t1")
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
HARD_TEXTS = ["a\x00b", "\ud800", "\x1a0000", "\x1a", "\udfff\x00\x1a\x1ad800", "e\u0301", "😀", ""]
LOOK_ALIKES = ["u", "u2", "U", "a_b", "a-b", "%", "a:b", "a/b"]
LOOK_ALIKES += ["\u00e9", "e\u0301", "u ", "u\x00", "\ud800"]


def digest(text: str) -> bytes:
    """Return a digest of `text`."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def term(word: str) -> int:
    """Return the hashed term of a word."""
    return int.from_bytes(digest(word)[:4], "little")


def record(
    id: str, text: str = "hello", scope: Scope = T1, part: Part = Part.SEARCHABLE, **more: object
) -> MessageRecord:
    """Return a record of a message in a thread; `more` goes to the message."""
    fields: dict[str, Any] = {"role": "user", "created_at": NOON, **more}
    message = Message(
        id=id, text=text, thread_id=str(scope.thread_id), resource_id=scope.resource_id, **fields
    )
    words = [term(word) for word in text.split()] if part is Part.SEARCHABLE else []
    terms = np.array(words, dtype=np.uint32)
    return MessageRecord(message=message, part=part, terms=terms, digest=digest(text))


def put(store: MessageStore, *records: MessageRecord) -> list[int]:
    """Add records and return their keys."""
    return [stored.key for stored in store.add(records)]


def vectors(key: int, text: str = "hello", chunks: int = 1, value: float = 1) -> MessageVectors:
    """Return vectors for a message that has this text."""
    values = np.full((chunks, SPACE.dimensions), value, dtype=np.float32)
    return MessageVectors(key, digest(text), values)


def texts(messages: Sequence[Message]) -> list[str]:
    """Return what messages say."""
    return [message.text for message in messages]


def queue(store: MessageStore) -> list[tuple[str, int, int, int]]:
    """Return kind, key, vectors and chunks of what waits for the index."""
    waiting: list[IndexOperation] = store.operations(limit=100)
    return [(item.kind, item.key, len(item.vectors), item.chunks) for item in waiting]
