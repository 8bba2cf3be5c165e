"""Sums of words, put together, are the sums over the tokens of the text."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from semantic_recall.embedders import _word_sums
from semantic_recall.embedders._word_sums import WordSums, splits_at_spaces

OWN = Path(__file__).parents[2] / "benchmarks" / "own"
HARD = (
    "", " ", "  ", "a", " a", "a ", "a  b", " a b ", "a\nb c\td", "\n", "a \n b", "a\u00a0b c",
    "</s>", "a </s> b", "x<s> y", "x <unk>y z", "if a < b then", "List<s>", "\u2581", "a \u2581b",
    "a\u2581 b", "\u2581 \u2581", "a \u2581\u2581 b", "我对花生过敏 请记住", "내일 오후 세 시",
    "👩‍👩‍👧 🎉 ok",
    "e\u0301 \u0301 x", "a\0b \0", "\ufffd x", "\u200b \u200b", "2024-05-01 12:30 $5.00",
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "tokenizers")
    tokenizer = Tokenizer.from_file(str(folder / "l2_supercat_tokenizer_config.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


class Whole:
    """Tokenizes texts as a whole, and writes down which."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        self.asked += texts
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]


# Whole numbers, so that sums are exact: equal ones are of the same tokens.
TOKENS = np.random.default_rng(7).integers(-1_000, 1_000, (32_000, 4)).astype(np.float32)


def summed(tokens: Sequence[int]) -> list[float]:
    sums: list[float] = TOKENS[list(tokens)].sum(axis=0).tolist()
    return sums


def assert_same(tokenizer: Tokenizer, texts: Sequence[str]) -> None:
    expected = map(summed, Whole(tokenizer)(texts))
    words = WordSums(Whole(tokenizer), TOKENS)
    again = [words.of(texts) for _ in range(2)]  # the second time from memory
    for text, *sums, wanted in zip(texts, *again, expected, strict=True):
        for found in sums:
            assert found.tolist() == wanted, repr(text)


def test_the_vocabulary_has_a_space_only_in_front() -> None:
    """What `splits_at_spaces` builds on: no token reaches from one word into the next."""
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(spec.submodule_search_locations[0], "tokenizers")
    model = json.loads((folder / "l2_supercat_tokenizer_config.json").read_text("utf-8"))["model"]
    assert not [token for token in model["vocab"] if "\u2581" in token.lstrip("\u2581")]


def test_hard_texts(tokenizer: Tokenizer) -> None:
    assert_same(tokenizer, HARD)
    assert_same(tokenizer, [f"user: {one} {other}" for one in HARD for other in HARD])


def test_texts_of_chats(tokenizer: Tokenizer) -> None:
    """Every line of the own set: English, Chinese, Korean, code, error messages."""
    texts = [
        line for path in sorted(OWN.rglob("*.txt")) for line in path.read_text("utf-8").splitlines()
    ]
    assert len(texts) > 500
    assert_same(tokenizer, texts)


def test_random_texts(tokenizer: Tokenizer) -> None:
    chance = random.Random(7)
    letters = "ab z<>/s\u2581\n\t.,1é我한\u0301👍"
    texts = ["".join(chance.choices(letters, k=chance.randint(0, 30))) for _ in range(5_000)]
    assert sum(map(splits_at_spaces, texts)) > 500
    assert_same(tokenizer, texts)


def test_no_word_is_tokenized_twice(tokenizer: Tokenizer) -> None:
    whole = Whole(tokenizer)
    words = WordSums(whole, TOKENS)
    words.of(["the cat and the dog", "the dog"])
    assert sorted(whole.asked) == ["and", "cat", "dog", "the"]
    words.of(["a dog", "the cat"])
    assert whole.asked[4:] == ["a"]


def test_long_words_and_many_words_are_not_kept(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_word_sums, "_MOST_WORDS", 10)
    whole = Whole(tokenizer)
    words = WordSums(whole, TOKENS)
    words.of(["x" * 65, "y" * 64])
    words.of(["x" * 65, "y" * 64])
    assert whole.asked.count("x" * 65) == 2
    assert whole.asked.count("y" * 64) == 1
    words.of([" ".join(f"w{number}" for number in range(20))])
    words.of(["z"])  # too many: they are forgotten
    words.of(["y" * 64])
    assert whole.asked.count("y" * 64) == 2


def test_one_text_of_many_words_does_not_pass_the_bound(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_word_sums, "_MOST_WORDS", 8)
    monkeypatch.setattr(_word_sums, "_FIRST_ROOM", 2)
    texts = [" ".join(f"w{first + n}" for n in range(50)) for first in (0, 10, 90)]
    words = WordSums(Whole(tokenizer), TOKENS)
    for text, tokens in zip(texts, Whole(tokenizer)(texts), strict=True):
        assert words.of([text])[0].tolist() == summed(tokens)
        assert len(words._known.places) == len(words._known.rows) == 8


def test_a_text_has_one_sum_whatever_is_remembered(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the last bit: a vector that is made again must be the one that is stored."""
    tokens = np.random.default_rng(7).normal(size=(32_000, 64)).astype(np.float32)
    texts = [" ".join(("some words and", word * 65, "others")) for word in "abcdefgh"]
    texts += [f"{text} and more of it" for text in texts]
    monkeypatch.setattr(_word_sums, "_FIRST_ROOM", 2)
    together = WordSums(Whole(tokenizer), tokens).of(texts)
    monkeypatch.setattr(_word_sums, "_MOST_WORDS", 3)
    forgetful = WordSums(Whole(tokenizer), tokens)
    for text, expected in zip(texts, together, strict=True):
        assert forgetful.of([text])[0].tobytes() == expected.tobytes()


def test_threads(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are dropped and learnt by eight threads at once; every answer is right."""
    monkeypatch.setattr(_word_sums, "_MOST_WORDS", 20)
    monkeypatch.setattr(_word_sums, "_FIRST_ROOM", 4)
    texts = [f"user: number {n} and {n % 7} of {n % 30}" for n in range(400)]
    expected = [summed(tokens) for tokens in Whole(tokenizer)(texts)]
    words = WordSums(Whole(tokenizer), TOKENS)

    def work(first: int) -> bool:
        return all(
            [found.tolist() for found in words.of(texts[at : at + 8])] == expected[at : at + 8]
            for at in [*range(first, 400, 8), *range(0, first, 8)]
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(0, 400, 50)))
