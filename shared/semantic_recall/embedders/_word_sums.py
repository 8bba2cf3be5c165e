"""Sums of token vectors, put together from those of words: chats say the same words again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from semantic_recall.forks import renew_in_child

Tokenize = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Returns the tokens of texts, in order."""
Tokens = dict[str, Sequence[int]]
"""Those of words."""

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

    @property
    def full(self) -> bool:
        return len(self.places) >= _MOST_WORDS

    def add(self, word: str, vector: NDArray[np.float32]) -> None:
        place = len(self.places)
        if place == len(self.rows):
            self.rows = np.concatenate((self.rows, np.empty_like(self.rows)))
        self.rows[place] = vector
        self.places[word] = place  # last: whoever sees the place finds the row


class WordSums:
    """Sums the vectors of texts' tokens and remembers those of words; safe for many threads.

    A text's sum is that of its words' sums, whether these are remembered or not: the same text has
    the same sum, to the last bit, whatever was summed before. At most 16,384 words are remembered;
    those that are one too many are not, and the next new word makes it begin anew.

    Args:
        tokenize: See `splits_at_spaces` for what it must do.
        vectors: (v, d) the vector of each token.
    """

    def __init__(self, tokenize: Tokenize, vectors: NDArray[np.float32]) -> None:
        self._tokenize = tokenize
        self._vectors = vectors
        self._known = _Known(vectors.shape[1])
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Return the sum of each text's token vectors, shape (d,); zeros for one without tokens."""
        known = self._known
        in_words = [text.split(" ") if splits_at_spaces(text) else [text] for text in texts]
        missing = list(set(chain.from_iterable(in_words)).difference(known.places))
        tokens: Tokens = {}
        if missing:
            tokens = dict(zip(missing, self._tokenize(missing), strict=True))
            self._remember(tokens)
        return [self._of_words(known, words, tokens) for words in in_words]

    def _remember(self, tokens: Tokens) -> None:
        with self._lock:
            if self._known.full:
                self._known = _Known(self._vectors.shape[1])  # others may still be reading the old
            for word, ids in tokens.items():
                if self._known.full:
                    break
                if len(word) <= _LONGEST_WORD and word not in self._known.places:
                    self._known.add(word, self._of_tokens(ids))

    def _of_words(self, known: _Known, words: Sequence[str], tokens: Tokens) -> NDArray[np.float32]:
        """Return the sum of words that are known, or whose tokens are there for want of that."""
        try:
            places = list(map(known.places.__getitem__, words))
            sums = known.rows.take(places, axis=0)  # which are looked at after the places
        except KeyError:
            sums = np.stack([self._of_word(known, word, tokens) for word in words])
        total: NDArray[np.float32] = np.add.reduce(sums, axis=0)
        return total

    def _of_word(self, known: _Known, word: str, tokens: Tokens) -> NDArray[np.float32]:
        place = known.places.get(word)
        return self._of_tokens(tokens[word]) if place is None else known.rows[place]

    def _of_tokens(self, ids: Sequence[int]) -> NDArray[np.float32]:
        if not ids:
            return np.zeros(self._vectors.shape[1], np.float32)
        total: NDArray[np.float32] = np.add.reduce(self._vectors.take(ids, axis=0), axis=0)
        return total
