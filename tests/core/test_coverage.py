"""What an embedder cannot read: ranking then goes by words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from semantic_recall import EmbedderError, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.vectorizer import coverage
from tests.core.embedders import TableEmbedder

QUERY = "who feeds the zebra?"


class Reader(TableEmbedder):
    """Finds the message with a zebra least like the query, and tells how much it can read."""

    def __init__(self, share: float) -> None:
        table = {QUERY: (1.0, 0.0), "user: the zebra feeds at noon": (0.0, 1.0)}
        super().__init__({**table, "user: unrelated": (1.0, 0.1)}, 2)
        self.share = share
        self.asked: list[str] = []

    def coverage(self, text: str, /) -> float:
        self.asked.append(text)
        if np.isnan(self.share):
            raise ConnectionError("cannot tell")
        return self.share


def first(folder: Path, embedder: Reader) -> str:
    with SemanticRecall.open(folder, embedder=embedder) as memory:
        for text in ("the zebra feeds at noon", "unrelated"):
            memory.remember({"role": "user", "content": text}, thread_id=text, resource_id="r")
        recall = memory.recall(QUERY, resource_id="r", top_k=1, message_range=0)
        assert memory.recall(QUERY, resource_id="r", ranking="dense").hits
        return recall.hits[0].message.text


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "the zebra feeds at noon"), (1.0, "unrelated"), (7.0, "unrelated")],
)
def test_ranking_goes_by_what_the_embedder_can_read(
    tmp_path: Path, share: float, expected: str
) -> None:
    embedder = Reader(share)
    # One word of the query is found, the others are common or nowhere: not enough by itself.
    assert first(tmp_path, embedder) == expected
    assert QUERY in embedder.asked


def test_an_embedder_that_cannot_tell_has_failed(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match="failed to tell what it can read: cannot tell"):
        first(tmp_path, Reader(float("nan")))


def test_wordllama_reads_words_and_half_of_chinese_and_korean() -> None:
    embedder = WordLlamaEmbedder()
    assert coverage(embedder, "Where does my sister live?") == 1.0
    assert coverage(embedder, "") == 1.0
    assert coverage(embedder, "Où habite ma sœur ?") == 1.0
    assert 0.9 < coverage(embedder, "Где живёт моя сестра?") <= 1.0
    assert 0.5 < coverage(embedder, "我的狗叫什么名字？") < 0.8
    assert 0.4 < coverage(embedder, "면접이 무슨 요일이야?") < 0.8
    assert coverage(embedder, "𒀀𒀁") == 0.0


def test_an_embedder_need_not_tell() -> None:
    assert coverage(HashEmbedder(64), "我的狗叫什么名字？") == 1.0
