"""What is embedded of a message, and how long texts are cut."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from semantic_recall.indexed_text import MAX_CHUNKS, digest, indexed_chunks, indexed_text
from semantic_recall.types import Message


def message(text: str, *, role: str = "user", name: str | None = None) -> Message:
    return Message(role=role, text=text, thread_id="t", name=name)


def test_the_speaker_stands_before_the_text() -> None:
    assert indexed_text(message("hi")) == "user: hi"
    assert indexed_text(message("hi", name="Anna")) == "Anna: hi"


def test_digests_name_texts() -> None:
    assert len(digest("a")) == 16
    # BLAKE2b with 16 bytes, the same in every version and process.
    assert digest("user: hi").hex() == "5964fcd31aafb559173b51a0012fcf35"
    assert digest("a") == digest("a")
    texts = ["", " ", "a", "A", "a\0", "\ud800", "\udc00", "?", "\ufffd"]
    assert len({digest(text) for text in texts}) == len(texts)


@pytest.mark.parametrize("limit", [None, 8, 9, 100])
def test_a_text_that_fits_is_one_chunk_as_it_is(limit: int | None) -> None:
    assert indexed_chunks(message("hi"), limit) == ["user: hi"]


def test_chunks_carry_the_speaker_overlap_and_cover_the_text() -> None:
    words = [f"word{number}" for number in range(1_000)]
    chunks = indexed_chunks(message(" ".join(words), name="Anna"), 300)
    assert all(chunk.startswith("Anna: ") and len(chunk) <= 300 for chunk in chunks)
    found = [chunk.removeprefix("Anna: ").split() for chunk in chunks]
    assert {word for piece in found for word in piece} == set(words)  # whole words only
    for one, following in pairwise(found):
        assert following[0] in one  # the overlap
        assert len(set(one) & set(following)) <= len(one) // 5


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("A short sentence about tea. " * 40, "."),
        ("句子的意思很清楚。" * 100, "。"),
        (("line of words\n" * 40), "words"),
    ],
)
def test_chunks_end_where_a_sentence_ends(text: str, ends: str) -> None:
    chunks = indexed_chunks(message(text), 200)
    assert len(chunks) > 2
    assert all(chunk.endswith(ends) for chunk in chunks)


@pytest.mark.parametrize("text", ["x" * 5_000, "好" * 5_000, "aGVsbG8" * 700, "👩‍👩‍👧" * 1_000])
def test_text_without_breaks_is_covered(text: str) -> None:
    chunks = [chunk.removeprefix("user: ") for chunk in indexed_chunks(message(text), 500)]
    assert all(chunk in text and len(chunk) <= 494 for chunk in chunks)
    step = 494 - 49
    assert len(chunks) == -(-(len(text) - 49) // step)


@pytest.mark.parametrize("limit", [1, 2, 5, 10, 40])
@pytest.mark.parametrize(
    "text", ["one two three four " * 20, "x" * 300, "   \n" * 100, "a\n\nb" * 80]
)
def test_tiny_limits_end(text: str, limit: int) -> None:
    chunks = indexed_chunks(message(text, name="N" * 300), limit)
    assert 1 <= len(chunks) <= 2 * MAX_CHUNKS


def test_a_very_long_speaker_leaves_room_for_the_text() -> None:
    chunks = indexed_chunks(message("word " * 200, name="N" * 1_000), 400)
    assert all(len(chunk) <= 400 and chunk.count("word") >= 30 for chunk in chunks[:-1])


def test_a_blank_text_that_is_long_is_one_chunk() -> None:
    assert indexed_chunks(message(" \n" * 10_000), 200) == ["user: "]


@pytest.mark.parametrize("unit", ["word after word. ", "x", "好", " ", "\n\n", "a."])
def test_ten_megabytes(unit: str) -> None:
    text = unit * (10_000_000 // len(unit))
    start = time.perf_counter()
    chunks = indexed_chunks(message(text), 2_000)
    assert time.perf_counter() - start < 2
    assert 1 <= len(chunks) <= MAX_CHUNKS


def test_of_a_text_too_long_chunks_are_spread_from_beginning_to_end() -> None:
    words = [f"word{number}" for number in range(100_000)]
    chunks = indexed_chunks(message(" ".join(words)), 1_000)
    assert len(chunks) == MAX_CHUNKS
    firsts = [int(chunk.split()[1].removeprefix("word")) for chunk in chunks]
    assert firsts[0] == 0
    assert firsts == sorted(firsts)
    gaps = [b - a for a, b in pairwise(firsts)]
    assert max(gaps) < 1.2 * min(gaps)
    assert chunks[-1].endswith("word99999")
