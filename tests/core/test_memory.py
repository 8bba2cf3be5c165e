"""A memory as its users see it: remember, recall, forget, list."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall import (
    AbortTurn,
    ConfigurationError,
    EmbedderError,
    InvalidOptionError,
    InvalidScopeError,
    Message,
    Recall,
    SemanticRecall,
    Settings,
    StoreClosedError,
    StoreError,
    VectorSpaceMismatchError,
)
from semantic_recall.embedders.hash import HashEmbedder
from tests.core.embedders import BrokenEmbedder, CountingEmbedder
from tests.core.talking import say, texts


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    with SemanticRecall.open(tmp_path / "memory", embedder=HashEmbedder(64)) as memory:
        yield memory


def test_a_message_is_found_in_another_thread_with_its_neighbours(memory: SemanticRecall) -> None:
    say(memory, "hello", "hi", "my dog is called Bello", "nice name", "bye", thread="a")
    say(memory, "what is the weather", "sunny", thread="b")
    recalled = memory.recall("dog called", resource_id="ana", thread_id="c", top_k=1)
    assert texts(recalled) == ["hi", "my dog is called Bello", "nice name"]
    assert [m.message.text for m in recalled.hits] == ["my dog is called Bello"]
    assert recalled.same_thread == ()
    assert "my dog is called Bello" in recalled.text
    assert set(recalled.timings) == {"embed", "search", "fetch", "total"}


def test_a_memory_survives_a_restart(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        say(memory, "the wifi password is tulip42")
        assert memory.flush()
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        assert texts(memory.recall("wifi password", resource_id="ana")) == [
            "the wifi password is tulip42"
        ]
        assert memory.stats().index_lag == 0


def test_the_same_id_replaces_in_place_and_embeds_only_changed_text(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        first = say(memory, "my cat is red", "ok")
        memory.remember(
            Message(id=first[0].id, role="user", text="my cat is blue", thread_id="t",
                    resource_id="ana")
        )  # fmt: skip
        memory.remember(first[1])
        assert [m.text for m in memory.history("t", "ana")] == ["my cat is blue", "ok"]
        assert embedder.documents == [
            "user: my cat is red",
            "assistant: ok",
            "user: my cat is blue",
        ]
        assert texts(memory.recall("cat red", resource_id="ana", top_k=1, message_range=0)) == [
            "my cat is blue"
        ]


def test_equal_texts_are_embedded_once_even_after_a_restart(tmp_path: Path) -> None:
    for _ in range(2):
        embedder = CountingEmbedder()
        with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
            say(memory, "good morning", thread="a")
            say(memory, "good morning", thread="b")
        already = embedder.documents
    assert already == []


def test_an_embedder_that_fails_costs_no_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = BrokenEmbedder()
    with SemanticRecall.open(tmp_path, embedder=embedder) as memory:
        with caplog.at_level(logging.WARNING, "semantic_recall"):
            say(memory, "the code of the door is 4711")
        assert "the embedding service is down" in caplog.text
        assert memory.stats().pending == 1
        with pytest.raises(EmbedderError):
            memory.recall("code of the door", resource_id="ana")
        found = memory.recall_for_turn("code of the door", resource_id="ana")
        assert texts(found) == ["the code of the door is 4711"]
        with pytest.raises(EmbedderError):
            say(memory, "another", strict=True)
        assert len(memory.history("t", "ana")) == 2
        embedder.broken = False
        assert memory.flush()
        assert memory.stats().pending == 0
        assert memory.recall("door", resource_id="ana", ranking="dense").hits[0].dense is not None


def test_background_returns_before_the_embedder(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=CountingEmbedder()) as memory:
        say(memory, "later", background=True)
        assert texts(memory.recall("later", resource_id="ana")) == ["later"]
        assert memory.flush()
        assert memory.stats().pending == 0
        assert memory.stats().vectors == 1


def test_without_an_embedder_words_are_searched(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=None) as memory:
        say(memory, "I moved to Lisbon", "how nice", "I work as a welder", "ok")
        recalled = memory.recall("where did I move", resource_id="ana", top_k=1, message_range=0)
        assert texts(recalled) == ["I moved to Lisbon"]
        assert memory.flush()
        with pytest.raises(ConfigurationError):
            memory.recall("x", resource_id="ana", query_vector=np.ones(4, np.float32))


def test_another_embedder_is_refused_until_a_reindex(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        say(memory, "one", "two")
    with pytest.raises(VectorSpaceMismatchError, match="semantic-recall reindex"):
        SemanticRecall.open(tmp_path, embedder=HashEmbedder(64))
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        report = memory.reindex(HashEmbedder(64))
        assert (report.embedded, report.pending) == (2, 0)
        assert memory.recall("one", resource_id="ana", ranking="dense").hits[0].dense is not None
        assert memory.stats().vectors == 2
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        assert memory.verify().ok


def test_forget_leaves_nothing_and_says_so(memory: SemanticRecall) -> None:
    kept = say(memory, "keep me", thread="a")
    gone = say(memory, "forget me please", "and me", thread="b")
    memory.flush()
    receipt = memory.forget(ids=[gone[0].id], thread_id="b", resource_id="ana")
    assert (receipt.messages, receipt.threads, receipt.vectors) == (1, 0, 1)
    assert receipt.complete
    assert set(receipt.remaining) >= {"messages", "terms", "vectors", "full_text", "outbox"}
    assert "forget me please" not in texts(memory.recall("forget me please", resource_id="ana"))
    receipt = memory.forget(thread_id="b", resource_id="ana")
    assert (receipt.messages, receipt.threads, receipt.complete) == (1, 1, True)
    assert [t.thread_id for t in memory.threads("ana")] == ["a"]
    assert memory.forget(resource_id="ana").messages == len(kept)
    assert memory.resources() == []
    assert not memory.recall("keep", resource_id="ana")
    assert memory.forget(resource_id="nobody").messages == 0


def test_forget_needs_a_scope(memory: SemanticRecall) -> None:
    with pytest.raises(InvalidScopeError):
        memory.forget(ids=["x"])


def test_a_forgotten_message_does_not_come_back_by_a_secure_scrub(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash") as memory:
        say(memory, "the secret word is zanzibarbuckle", "noted", thread="a")
        say(memory, "what stays", "stays", thread="b")
        memory.flush()
        assert memory.forget(thread_id="a", resource_id="ana", secure=True).complete
        assert texts(memory.recall("what stays", resource_id="ana", top_k=1))
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert b"zanzibarbuckle" not in file.read_bytes(), file


def test_options_have_one_home_and_a_call_overrides_them(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder="hash", top_k=1, message_range=0) as memory:
        assert memory.options.top_k == 1
        say(memory, "apple one", "apple two", "apple three")
        assert len(memory.recall("apple", resource_id="ana")) == 1
        assert len(memory.recall("apple", resource_id="ana", top_k=2)) == 2
        with pytest.raises(InvalidOptionError):
            memory.recall("apple", resource_id="ana", topk=2)  # type: ignore[call-arg]


def test_hooks_change_drop_and_abort(tmp_path: Path) -> None:
    def before_store(messages: Any) -> list[Message]:
        if any("stop" in message.text for message in messages):
            raise AbortTurn("a word that stops")
        return [message for message in messages if "secret" not in message.text]

    def before_inject(recall: Recall) -> Recall:
        return Recall(query=recall.query, messages=recall.messages[:1])

    hooks = Settings(before_store=before_store, before_inject=before_inject)
    with SemanticRecall.open(tmp_path, embedder="hash", settings=hooks) as memory:
        assert [m.text for m in say(memory, "a secret", "fine", "fine too")] == ["fine", "fine too"]
        with pytest.raises(AbortTurn, match="a word that stops"):
            say(memory, "please stop", "fine")
        assert len(memory.history("t", "ana")) == 2
        assert len(memory.recall("fine", resource_id="ana")) == 2
        assert len(memory.recall_for_turn("fine", resource_id="ana")) == 1


def test_listing_and_export(memory: SemanticRecall) -> None:
    say(memory, "one", "two", thread="a")
    say(memory, "three", thread="b", resource_id="ben")
    assert [(r.resource_id, r.threads, r.messages) for r in memory.resources()] == [
        ("ana", 1, 2), ("ben", 1, 1),
    ]  # fmt: skip
    assert [(t.thread_id, t.messages) for t in memory.threads("ana")] == [("a", 2)]
    assert {m.text for m in memory.messages()} == {"one", "two", "three"}
    assert [m.text for m in memory.messages(thread_id="a", resource_id="ana")] == ["one", "two"]
    assert [m.text for m in memory.history("a", "ana", last=1)] == ["two"]
    stats = memory.stats()
    assert (stats.messages, stats.threads, stats.resources) == (3, 2, 2)


def test_a_closed_memory_says_so(tmp_path: Path) -> None:
    memory = SemanticRecall.open(tmp_path, embedder="hash")
    memory.close()
    memory.close()
    with pytest.raises(StoreClosedError):
        memory.remember({"role": "user", "content": "x"}, thread_id="t")
    with pytest.raises(StoreClosedError):
        memory.recall("x", resource_id="r")


def test_a_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file"):
        SemanticRecall.open(tmp_path / "file", embedder="hash")


async def test_the_async_twins_of_maintenance(tmp_path: Path) -> None:
    async with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        say(memory, "one", "two")
        report = await memory.areindex(HashEmbedder(64))
        assert (report.embedded, report.pending) == (2, 0)
        assert await memory.aflush(60)
        assert (await memory.averify()).ok
        assert (await memory.astats()).dimensions == 64
        assert memory.embedder_name == HashEmbedder(64).space.name
