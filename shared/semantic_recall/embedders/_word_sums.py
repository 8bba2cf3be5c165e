"""Sums of token vectors, put together from those of words: chats say the same words again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from semantic_recall.forks import renew_in_child

Tokenize = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Returns the tokens of texts, in order."""

_MOST_WORDS = 16_384  # 16 MB for vectors of 256 numbers
_FIRST_ROOM = 1_024
_LONGEST_WORD = 64  # characters; what is longer hardly comes again
_SPACE = "\u2581"  # how the vocabulary writes a space


def splits_at_spaces(text: str) -> bool:
    """Tell whether a text's tokens are those of its words, one after the other.

    That holds for a SentencePiece vocabulary with no token that has a space behind another
    character, where each word begins with one space. Special tokens such as `</s>` are cut out
    before, and what follows them begins anew.
    """
    return not (
        "  " in text or "<" in text or _SPACE in text or text.startswith(" ") or text.endswith(" ")
    )


class _Known:
    """The sums of words. Places are given once; rows only grow, into a larger copy."""

    def __init__(self, dimensions: int) -> None:
        self.places: dict[str, int] = {}
        self.rows = np.empty((_FIRST_ROOM, dimensions), np.float32)

    def add(self, word: str, vector: NDArray[np.float32]) -> None:
        place = len(self.places)
        if place == len(self.rows):
            self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.rows[place] = vector
        self.places[word] = place  # last: whoever sees the place finds the row


class WordSums:
    """Sums the vectors of texts' tokens and remembers those of words; safe for many threads.

    A text's sum is that of its words' sums, whether these are remembered or not: the same text has
    the same sum, to the last bit, whatever was summed before.

    Args:
        tokenize: See `splits_at_spaces` for what it must do.
        tokens: (v, d) the vector of each token.
    """

    def __init__(self, tokenize: Tokenize, tokens: NDArray[np.float32]) -> None:
        self._tokenize = tokenize
        self._tokens = tokens
        self._known = _Known(tokens.shape[1])
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the sum of each text's token vectors, shape (d,); zeros for one without tokens."""
        known = self._known
        in_words = [text.split(" ") if splits_at_spaces(text) else [text] for text in texts]
        missing = set(chain.from_iterable(in_words)).difference(known.places)
        made = self._made(missing) if missing else {}
        if made:
            self._remember(known, made)
        return [_sum(known, words, made) for words in in_words]

    def _made(self, words: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        asked = list(words)
        none = np.zeros(self._tokens.shape[1], np.float32)
        return {
            word: np.add.reduce(self._tokens.take(ids, axis=0), axis=0) if ids else none
            for word, ids in zip(asked, self._tokenize(asked), strict=True)
        }

    def _remember(self, known: _Known, made: dict[str, NDArray[np.float32]]) -> None:
        with self._lock:
            if len(known.places) > _MOST_WORDS and known is self._known:
                self._known = _Known(self._tokens.shape[1])  # others may still be reading the old
            for word, vector in made.items():
                if len(word) <= _LONGEST_WORD and word not in self._known.places:
                    self._known.add(word, vector)


def _sum(
    known: _Known, words: Sequence[str], made: dict[str, NDArray[np.float32]]
) -> NDArray[np.float32]:
    """Return the sum of words that are known, or were made for want of that."""
    try:
        places = list(map(known.places.__getitem__, words))
        vectors = known.rows.take(places, axis=0)  # which are looked at after the places
    except KeyError:
        vectors = np.stack([_vector(known, word, made) for word in words])
    total: NDArray[np.float32] = np.add.reduce(vectors, axis=0)
    return total


def _vector(known: _Known, word: str, made: dict[str, NDArray[np.float32]]) -> NDArray[np.float32]:
    place = known.places.get(word)
    return made[word] if place is None else known.rows[place]
