"""Text to search terms: words as stems, unspaced scripts as characters and bigrams.

- Words are runs of letters and digits (Unicode), NFKC, casefolded, stemmed by Snowball (English
  for the Latin script, its own algorithm for six other scripts). A short list of English stop
  words is dropped, and so are contractions of "not" ("don't").
- An identifier ("snake_case", "camelCase", "ERR-404", "jo@example.com", "3.14", "2024-05-02")
  gives its parts and itself; "1,000" gives "1000".
- A run of Chinese, Japanese, Korean, Thai, Lao, Burmese or Khmer gives every character and every
  pair of neighbours: FTS tokenizers find next to nothing there, this finds most.

A term's hash is the CRC-32 of its UTF-8 bytes: stable across processes and machines. With the
10,000 different terms of a large scope, two of them collide once in a hundred scopes.

Only the first 1,000,000 characters and the first 100,000 terms of a text are read, and the first
128 characters of a word: a text of any size takes bounded time and memory.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from binascii import crc32
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import Stemmer
from numpy.typing import NDArray

from semantic_recall._scripts import ASCII_CHUNKS, CHUNKS, STOP_WORDS, UNSPACED, stemmer_of

if TYPE_CHECKING:
    from re import Pattern

MAX_CHARACTERS = 1_000_000
MAX_TERMS = 100_000
MAX_WORD = 128

_CACHED_WORD = 40
_CACHE_ENTRIES = 1 << 16

_UNSPACED: Pattern[str] = re.compile(f"[{UNSPACED}]")
_PIECES: Pattern[str] = re.compile(r"[.,:@'’_\-]+")
_CAMEL: Pattern[str] = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_HUMP: Pattern[str] = re.compile(r"[a-z][A-Z]")
_GROUPED: Pattern[str] = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_DIGIT: Pattern[str] = re.compile(r"\d")
_NOT: Pattern[str] = re.compile(r"n['’]t\Z", re.IGNORECASE)


class _Stemmers(threading.local):
    """Snowball stemmers of one thread: a stemmer has state and must not be shared."""

    def __init__(self) -> None:
        self._by_name: dict[str, Stemmer.Stemmer] = {}

    def stem(self, word: str) -> str:
        name = stemmer_of(word)
        stemmer = self._by_name.get(name)
        if stemmer is None:
            # The cache inside a stemmer is off (0): `_hashes` does that for all threads.
            stemmer = self._by_name[name] = Stemmer.Stemmer(name, 0)
        return str(stemmer.stemWord(word))


_stemmers = _Stemmers()


QUESTION = crc32(b"?")
"""The hashed term in `message_terms` of a message that asks something. No word has it."""

_QUESTION_MARKS: Pattern[str] = re.compile("[?？؟\u037e]")


class _Hashes(dict[str, bytes]):
    """Chunk to the hashes of its terms, one after the other, worked out where they are missing.

    A dict's operations are atomic; when it is full it starts anew, which costs a few microseconds
    per word and needs no lock (a lock held during a fork would hang the child).
    """

    def __missing__(self, chunk: str) -> bytes:
        hashes = hash_terms(_expand(chunk)).tobytes()
        if len(chunk) <= _CACHED_WORD:
            if len(self) >= _CACHE_ENTRIES:
                self.clear()
            self[chunk] = hashes
        return hashes


_hashes = _Hashes()


def tokenize(text: str) -> list[str]:
    """Return the search terms of a text in text order, with repetitions.

    At most 100,000 terms of the first 1,000,000 characters; see the module's docstring.
    """
    terms: list[str] = []
    for chunk in _chunks(text):
        terms.extend(_expand(chunk))
        if len(terms) >= MAX_TERMS:
            break
    return terms[:MAX_TERMS]


def hash_terms(terms: Iterable[str]) -> NDArray[np.uint32]:
    """Return the CRC-32 of each term's UTF-8 bytes (lone surrogates passed), shape (t,)."""
    return np.array([_crc(term) for term in terms], dtype=np.uint32)


def text_terms(text: str) -> NDArray[np.uint32]:
    """Return a text's hashed search terms, read-only; equal to `hash_terms(tokenize(text))`."""
    # No loop of our own: every word of every message comes through here.
    found = b"".join(map(_hashes.__getitem__, _chunks(text)))
    return np.frombuffer(found, dtype=np.uint32)[:MAX_TERMS]


def message_terms(text: str) -> NDArray[np.uint32]:
    """Return `text_terms`, and `QUESTION` at the end if a question mark stands in the text.

    What is stored for a message: `priors.prior_scores` wants to know what is a question. A query
    is searched by `text_terms`, so that it does not find every question.
    """
    terms = text_terms(text)
    return np.append(terms, np.uint32(QUESTION)) if _asks(text[:MAX_CHARACTERS]) else terms


def _asks(text: str) -> bool:
    if text.isascii():  # where looking for one character takes a tenth of the time
        return "?" in text
    return _QUESTION_MARKS.search(text) is not None


def _crc(term: str) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"))


def _chunks(text: str) -> list[str]:
    text = text[:MAX_CHARACTERS]
    return (ASCII_CHUNKS if text.isascii() else CHUNKS).findall(text)


def _expand(chunk: str) -> Iterator[str]:
    """Yield the terms of one chunk.

    NFKC works on chunks, never on a whole text: it takes quadratic time over a long run of
    combining marks, and a chunk of marks is cut to `MAX_WORD`.
    """
    if _UNSPACED.match(chunk):
        run = unicodedata.normalize("NFKC", chunk[:MAX_TERMS])
        yield from run
        yield from map("".join, itertools.pairwise(run))
        return
    word = unicodedata.normalize("NFKC", chunk[:MAX_WORD])
    if _GROUPED.match(word):
        yield word.replace(",", "")
        return
    if _NOT.search(word):
        return
    yield from _word_terms(word)


def _word_terms(word: str) -> Iterator[str]:
    pieces = [piece for piece in _PIECES.split(word) if piece]
    for piece in pieces:
        if _HUMP.search(piece):
            yield from filter(None, map(_term, _CAMEL.split(piece)))
        yield from filter(None, (_term(piece),))
    if len(pieces) > 1 and ("_" in word or "@" in word or _DIGIT.search(word)):
        yield word.casefold()


def _term(piece: str) -> str:
    """Return the stem of a word, or "" for a stop word."""
    folded = piece.casefold()
    return "" if folded in STOP_WORDS else _stemmers.stem(folded)
