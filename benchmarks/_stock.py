"""A made-up corpus on disk with its vectors: made once, handed to every subject."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._corpus import Corpus
from benchmarks.peers import content
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.types import Message, Vector

BATCH = 1000
QUESTIONS = 300
TURNS = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages with the vectors of their contents."""

    messages: Sequence[Message]
    vectors: Sequence[Vector]


@dataclass(frozen=True, slots=True)
class Query:
    """A third of the words of a message, and where it was said."""

    text: str
    vector: Vector
    resource_id: str
    thread_id: str


@dataclass(frozen=True, slots=True)
class Stock:
    """The files of one corpus."""

    folder: Path

    @classmethod
    def write(cls, folder: Path, messages: int, resources: int) -> Stock:
        """Make a corpus, see `Corpus`, and questions about random users in it."""
        folder.mkdir(parents=True)
        stock, embedder, picker = cls(folder), HashEmbedder(), random.Random(11)
        corpus = Corpus(messages, resources)
        # The same number of questions to each user on average, however much they wrote.
        wanted: dict[tuple[str, str, str], int] = {}
        for number in range(QUESTIONS):
            resource = picker.randrange(resources)
            place = picker.randrange(corpus.sizes[resource])
            key = (f"r{resource}", f"t{place // 25}", f"m{place}")
            wanted.setdefault(key, number)
        asked: list[tuple[int, Query]] = []
        source = corpus.messages()
        number = 0
        while some := list(itertools.islice(source, BATCH)):
            vectors = embedder.embed_documents([content(message) for message in some])
            stock._dump(f"batch{number:05}", Batch(some, list(vectors)))
            number += 1
            for message in some:
                place_of = (str(message.resource_id), str(message.thread_id), str(message.id))
                if place_of in wanted:
                    asked.append((wanted[place_of], _query(message, wanted[place_of], picker)))
        # Messages come by user: asked in that order, users would be warm for each other.
        stock._dump("queries", [query for _, query in sorted(asked, key=lambda pair: pair[0])])
        stock._dump("turns", [_turn(number) for number in range(TURNS)])
        return stock

    def batches(self) -> Iterator[Batch]:
        """Yield the corpus."""
        for path in sorted(self.folder.glob("batch*")):
            yield self._load(path.name)

    def queries(self) -> list[Query]:
        """Return the questions."""
        queries: list[Query] = self._load("queries")
        return queries

    def turns(self) -> list[Batch]:
        """Return turns of two messages that are not in the corpus."""
        turns: list[Batch] = self._load("turns")
        return turns

    def _dump(self, name: str, value: object) -> None:
        with (self.folder / name).open("wb") as file:
            pickle.dump(value, file, protocol=pickle.HIGHEST_PROTOCOL)

    def _load(self, name: str) -> Any:  # noqa: ANN401 - each file has its own type
        with (self.folder / name).open("rb") as file:
            return pickle.load(file)


def _query(message: Message, number: int, picker: random.Random) -> Query:
    words = str(message.text).split()
    text = " ".join(picker.sample(words, max(3, len(words) // 3))) + f" q{number}"
    vector = HashEmbedder().embed_query(text)
    return Query(text, vector, str(message.resource_id), str(message.thread_id))


def _turn(number: int) -> Batch:
    texts = (
        ("user", f"what about the plan number {number} for next week"),
        ("assistant", f"plan {number} is on friday, it costs {number}"),
    )
    messages = [
        Message(
            role=role,
            text=text,
            id=f"turn{number}-{role}",
            thread_id=f"turns{number // 20}",
            resource_id=f"r{number % 20}",
        )
        for role, text in texts
    ]
    vectors = HashEmbedder().embed_documents([content(message) for message in messages])
    return Batch(messages, list(vectors))
