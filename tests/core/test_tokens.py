"""Token counts: exact with the vocabulary, estimated without it, never from the network."""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import sys
import tempfile
import threading
import time
import types
from pathlib import Path

import pytest

from semantic_recall.tokens import (
    LocalTokenCounter,
    count_tokens,
    estimate_tokens,
    vocabulary_directories,
)

VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine on which no package and no cache directory has the vocabulary."""
    for variable in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for package in ("llama_index", "litellm"):
        monkeypatch.setitem(sys.modules, package, None)  # what an absent package looks like
    return tmp_path


@pytest.fixture(scope="module")
def exact() -> LocalTokenCounter:
    return LocalTokenCounter()


@pytest.mark.usefixtures("no_network", "empty_machine")
def test_without_the_vocabulary_it_estimates_and_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    count = LocalTokenCounter()
    assert [count(text) for text in ("", "abc", "abcd", "你好")] == [0, 1, 2, 2]
    assert [record.name for record in caplog.records] == ["semantic_recall"]
    assert "estimates" in caplog.text
    assert "TIKTOKEN_CACHE_DIR" in caplog.text


@pytest.mark.usefixtures("no_network", "empty_machine")
def test_a_damaged_vocabulary_is_not_used_and_not_removed(tmp_path: Path) -> None:
    damaged = tmp_path / VOCABULARY
    damaged.write_bytes(b"aGVsbG8= 0\n")
    assert LocalTokenCounter([tmp_path])("hello world") == 4
    assert damaged.exists()


@pytest.mark.usefixtures("no_network")
def test_with_the_vocabulary_counts_are_those_of_o200k_base(
    exact: LocalTokenCounter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    # Counts of tiktoken.get_encoding("o200k_base"), tiktoken 0.14.0.
    assert exact("hello world") == 2
    assert exact("The quick brown fox jumps over the lazy dog.") == 10
    assert exact("") == 0
    assert caplog.records == []


def test_counts_equal_tiktoken_itself(
    exact: LocalTokenCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tiktoken

    home = next(path for path in vocabulary_directories() if (path / VOCABULARY).exists())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(home))
    encoding = tiktoken.get_encoding("o200k_base")
    for text in (
        "It's 12:45 — we've paid €1,234.56!\n\n  def f(x):\n\treturn x**2\n",
        "我们昨天去了上海的一家餐厅吃饭，味道很好。",
        "내일 오후 세 시에 만나요 👩‍👩‍👧",
        "<|endoftext|><|endofprompt|>",
        "lone \ud83d surrogate, NUL \0",
        "camelCaseHTTPServer " * 50,
    ):
        assert exact(text) == len(encoding.encode(text, disallowed_special=()))


@pytest.mark.usefixtures("no_network", "empty_machine")
@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", None])
def test_tiktokens_own_cache_directories_are_looked_at(
    variable: str | None, empty_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = empty_machine / "data-gym-cache"
    if variable is not None:
        expected = empty_machine / "elsewhere"
        monkeypatch.setenv(variable, str(expected))
    assert next(vocabulary_directories()) == expected


def test_the_directory_of_an_installed_package_is_found_without_importing_it() -> None:
    found = [path for path in vocabulary_directories() if (path / VOCABULARY).exists()]
    assert found
    sizes = {hashlib.sha256((path / VOCABULARY).read_bytes()).hexdigest()[:8] for path in found}
    assert "446a9538" in sizes


def test_something_odd_under_a_packages_name_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "litellm", types.ModuleType("litellm"))  # has no spec
    assert list(vocabulary_directories())


def test_the_environment_stays_as_it_is() -> None:
    before = dict(os.environ)
    LocalTokenCounter()("hello")
    assert dict(os.environ) == before


def test_slices_cost_at_most_a_few_tokens(exact: LocalTokenCounter) -> None:
    sentence = " We walked along the harbour and talked about the summer."
    times = 100_000 // len(sentence)  # ten slices
    assert 0 <= exact(sentence * times) - exact(sentence) * times <= 20


@pytest.mark.parametrize("text", ["x", "word ", " ", "你好", "aGVsbG8"])
def test_ten_megabytes_take_less_than_two_seconds(exact: LocalTokenCounter, text: str) -> None:
    long = text * (10_000_000 // len(text))
    start = time.perf_counter()
    assert exact(long) == estimate_tokens(long)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("text", ["x", " ", "\n", "😀", "!", "aB3+"])
def test_the_longest_text_that_is_counted_takes_less_than_two_seconds(
    exact: LocalTokenCounter, text: str
) -> None:
    long = text * (200_000 // len(text))
    start = time.perf_counter()
    assert exact(long) > 0
    assert time.perf_counter() - start < 2


def test_many_threads_load_it_once() -> None:
    count = LocalTokenCounter()
    barrier = threading.Barrier(8)
    results: list[int] = []

    def work() -> None:
        barrier.wait()
        results.append(count("The quick brown fox jumps over the lazy dog."))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [10] * 8


def test_the_shared_counter() -> None:
    assert count_tokens("hello world") == 2
