from __future__ import annotations

import threading
import time
import unicodedata
from binascii import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import terms
from semantic_recall._scripts import STOP_WORDS
from semantic_recall.terms import QUESTION, hash_terms, message_terms, text_terms, tokenize


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t…!", []),
        ("The cats were RUNNING", ["cat", "run"]),
        ("I don't know, I can’t, we won't", ["know"]),
        ("I won it", ["won"]),
        ("Caroline's and Caroline’s", ["carolin", "carolin"]),
        ("When did I move, and where to?", ["move"]),
        ("1,000 and 12,345.5", ["1000", "12345.5"]),
        ("pi is 3.14", ["pi", "3", "14", "3.14"]),
        ("2024-05-02", ["2024", "05", "02", "2024-05-02"]),
        ("jo@example.com", ["jo", "exampl", "com", "jo@example.com"]),
        ("https://www.example.com/a_b", ["https", "www", "exampl", "com", "b", "a_b"]),
        ("user_name", ["user", "name", "user_name"]),
        ("getHTTPResponse", ["get", "http", "respons", "gethttprespons"]),
        ("ERR-404", ["err", "404", "err-404"]),
        ("well-known", ["well", "known"]),
        ("ﬁne ＦＵＬＬ Straße", ["fine", "full", "strass"]),
        ("我的狗", ["我", "的", "狗", "我的", "的狗"]),
        ("买iPhone了", ["买", "phone", "iphon", "了"]),
        ("저는 개", ["저", "는", "저는", "개"]),
        ("ﾃｽﾄ", ["テ", "ス", "ト", "テス", "スト"]),
        ("кошки", ["кошк"]),
        ("\ud800\x00 dog \udfff", ["dog"]),
    ],
)
def test_tokenize(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


def test_a_youtube_is_found_however_it_is_written() -> None:
    assert set(tokenize("youtube")) <= set(tokenize("YouTube"))


def test_marks_do_not_cut_words() -> None:
    assert len(tokenize("नमस्ते")) == 1
    assert tokenize("cafe\u0301") == tokenize("caf\u00e9")


@given(st.text(alphabet=st.characters(), max_size=200))
def test_hashes_are_the_hashes_of_the_terms(text: str) -> None:
    expected = [crc32(t.encode("utf-8", "surrogatepass")) for t in tokenize(text)]
    assert text_terms(text).tolist() == hash_terms(tokenize(text)).tolist() == expected
    assert text_terms(text).dtype == np.uint32


@given(st.text(max_size=60))
def test_a_text_is_found_in_any_unicode_form_and_case(text: str) -> None:
    ascii_words = "".join(c for c in text if c.isascii())
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else " " for c in ascii_words)
    plain = "".join(c if c.isalnum() else " " for c in ascii_words)
    assert tokenize(wide) == tokenize(plain)
    assert tokenize(plain.lower()) == tokenize(plain.lower().upper().lower())


@given(st.lists(st.sampled_from(["dog", "我的狗", "Caf\u00e9", "x_1"]), max_size=8))
def test_terms_of_words_apart_are_the_terms_of_each(words: list[str]) -> None:
    assert tokenize(" ".join(words)) == [t for word in words for t in tokenize(word)]


@pytest.mark.parametrize(
    "text",
    ["word " * 2_000_000, "a" * 10_000_000, "我的" * 5_000_000, "a" + "\u0301\u0327" * 5_000_000],
    ids=["words", "one word", "chinese", "marks"],
)
def test_ten_megabytes_take_bounded_time_and_terms(text: str) -> None:
    begin = time.perf_counter()
    found = text_terms(text)
    assert time.perf_counter() - begin < 5
    assert 1 <= len(found) <= terms.MAX_TERMS
    assert len(tokenize(text)) == len(found)


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "_hashes", terms._Hashes())
    monkeypatch.setattr(terms, "_CACHE_ENTRIES", 10)
    for number in range(100):
        text_terms(f"word{number}")
        assert len(terms._hashes) <= 10
    text_terms("x" * 100)
    assert "x" * 100 not in terms._hashes


def test_threads_get_the_same_terms() -> None:
    words = [f"running{i} nationally кошками" for i in range(300)]
    expected = [text_terms(word).tolist() for word in words]
    terms._hashes.clear()
    wrong: list[str] = []

    def work() -> None:
        for word, terms_of in zip(words, expected, strict=True):
            if text_terms(word).tolist() != terms_of or tokenize(word) != tokenize(word):
                wrong.append(word)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize("text", ["Why?", "真的吗？", "لماذا؟", "Is it? Yes."])
def test_a_message_that_asks_is_marked(text: str) -> None:
    assert message_terms(text).tolist() == [*text_terms(text).tolist(), QUESTION]
    assert QUESTION not in text_terms(text).tolist()


@given(st.text())
def test_a_message_that_does_not_ask_has_the_terms_of_its_text(text: str) -> None:
    text = text.translate(dict.fromkeys(map(ord, "?？؟\u037e")))
    assert message_terms(text).tolist() == text_terms(text).tolist()


def test_stop_words_are_folded_words() -> None:
    for word in STOP_WORDS:
        assert word == unicodedata.normalize("NFKC", word).casefold()
        assert tokenize(word) == []
