"""What of a message is embedded and searched: its text with the speaker, in pieces if it is long.

Pure functions, shared by everything that makes terms or vectors of messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from semantic_recall.types import Message

MAX_CHUNKS = 64
"""The most chunks that one message is cut into."""

_MAX_OVERLAP = 200  # characters

# Where a text may be cut, best first: after a paragraph, a line, a sentence, a word. Characters
# of Chinese, Japanese and Korean can be cut anywhere; so can what has no break at all (base64).
_BREAKS = (
    re.compile(r"\n[ \t\r]*\n"),
    re.compile(r"\n"),
    re.compile(r"[.!?…]['\")\]]*\s|[。！？]"),
    re.compile(r"\s|[，、；：]"),
)
_WORD_START = re.compile(r"(?<=\s)\S")


def indexed_text(message: Message) -> str:
    """Return "speaker: text", where the speaker is the message's name or else its role."""
    return spoken(message.name or message.role, message.text)


def spoken(speaker: str, text: str) -> str:
    """Return a text as it is indexed: the speaker makes a difference to what it means."""
    return f"{speaker}: {text}"


def digest(text: str) -> bytes:
    """Return 16 bytes (BLAKE2b) that name a text; lone surrogates are kept apart."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def digest_number(text: str) -> int:
    """Return the first 8 bytes of a text's digest, as `ScopeRows.digests` holds them."""
    return int.from_bytes(digest(text)[:8], "little", signed=True)


def indexed_chunks(message: Message, max_characters: int | None) -> list[str]:
    """Return the message's indexed text cut into chunks that an embedder reads whole.

    A text that fits is one chunk, as it is. Otherwise each chunk carries the speaker (of a very
    long speaker a quarter of the chunk), ends after a paragraph, line, sentence or word if there
    is a break in its last quarter, and begins with the last tenth (at most 200 characters) of
    the chunk before it.

    At most `MAX_CHUNKS` are made: of a text that needs more, chunks spread evenly from its
    beginning to its end are taken, so the rest of it is found by words only.

    Args:
        message: The message.
        max_characters: The longest chunk, including the speaker; None leaves the text whole.

    Returns:
        At least one chunk.
    """
    whole = indexed_text(message)
    if max_characters is None or len(whole) <= max_characters:
        return [whole]
    speaker = (message.name or message.role)[: max_characters // 4]
    prefix = f"{speaker}: "
    room = max(max_characters - len(prefix), 1)
    pieces = (message.text[start:end].strip() for start, end in _spans(message.text, room))
    return [prefix + piece for piece in pieces if piece] or [prefix]


def _spans(text: str, room: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of overlapping pieces of at most `room` characters."""
    slack = room // 4  # how much shorter a piece may get to end at a break
    overlap = min(room // 10, _MAX_OVERLAP)
    if len(text) > MAX_CHUNKS * (room - slack - overlap):
        last = len(text) - room
        for number in range(MAX_CHUNKS):
            start = last * number // (MAX_CHUNKS - 1)
            yield _first_word(text, start, start + slack), start + room
        return
    start = 0
    while len(text) - start > room:
        end = _break(text, start + room - slack, start + room)
        yield start, end
        start = _first_word(text, end - overlap, end)
    yield start, len(text)


def _break(text: str, low: int, high: int) -> int:
    """Return the best place in [low, high] to end a piece."""
    for pattern in _BREAKS:
        end = 0
        for match in pattern.finditer(text, low, high):
            end = match.end()
        if end:
            return end
    return high


def _first_word(text: str, low: int, high: int) -> int:
    """Return where the first whole word in [low, high) begins, or `low` if none does."""
    if low <= 0:
        return 0
    match = _WORD_START.search(text, low, high)
    return match.start() if match else low
