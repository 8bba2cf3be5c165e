"""The hash embedder: stable for ever, and near where words are shared."""

from __future__ import annotations

import hashlib
import time

import numpy as np
import pytest

from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.errors import InvalidOptionError


def test_vectors_are_the_same_in_every_version_and_process() -> None:
    vectors = HashEmbedder(64).embed_documents(["The quick brown fox", "你好 世界", "", "😀"])
    data = b"".join(vector.astype("<f4").tobytes() for vector in vectors)
    assert hashlib.sha256(data).hexdigest() == (
        "0feb0d54779a1cd3581bf7452013db0208836d99004f83a227f978a022306c26"
    )


def test_texts_that_share_words_are_near_and_others_are_not() -> None:
    one, same, near, far, chinese, chinese_near = HashEmbedder().embed_documents(
        [
            "my sister lives in Lisbon",
            "My sister LIVES in, Lisbon!",
            "does my sister still live in Lisbon",
            "the train leaves at nine",
            "明天下午三点在上海见面",
            "我们明天在上海见面吗",
        ]
    )
    np.testing.assert_array_equal(one, same)
    assert one @ near > 0.5
    assert abs(one @ far) < 0.3
    assert chinese @ chinese_near > 0.5


@pytest.mark.parametrize("dimensions", [8, 9, 100, 1024])
def test_unit_vectors_of_any_length(dimensions: int) -> None:
    for text in ("", "a", "a b c d e f", "one two " * 5_000):
        vector = HashEmbedder(dimensions).embed_query(text)
        assert vector.dtype == np.float32
        assert vector.shape == (dimensions,)
        assert np.linalg.norm(vector) == pytest.approx(1)


def test_words_that_cancel_out_do_not_give_zeros() -> None:
    embedder = HashEmbedder(8)
    words = [f"w{number}" for number in range(600)]
    vectors = {word: embedder.embed_query(word) for word in words}
    opposite = next((a, b) for a in words for b in words if not (vectors[a] + vectors[b]).any())
    assert embedder.embed_query(" ".join(opposite)).any()


def test_it_is_fast_enough_for_benchmarks() -> None:
    texts = [f"message {number} about the weather in city {number % 97}" for number in range(5_000)]
    embedder = HashEmbedder()
    embedder.embed_documents(texts[:100])
    start = time.perf_counter()
    embedder.embed_documents(texts)
    # 10,000 to 20,000 a second on an idle core; half of what is promised, for busy machines.
    assert len(texts) / (time.perf_counter() - start) > 2_500


def test_too_few_dimensions_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="at least 8"):
        HashEmbedder(7)
