"""Several tenants with look-alike ids, in any order of calls, against a model in plain dicts."""

from __future__ import annotations

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from semantic_recall import Message, Recall, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore

Thread: TypeAlias = "tuple[str | None, str]"

RESOURCES = st.sampled_from([None, "u1", "u10", "U1", "u1 ", "u%", "u_", "é", "e\u0301", "u1:t1"])
THREADS = st.sampled_from(["t1", "t10", "T1", "t%", "u1", "1:t1"])
IDS = st.sampled_from(["m1", "m2", "m3", "M1", "m1 "])
WORDS = ["apple", "pear", "plum", "fig", "kiwi", "lime", "苹果", "사과"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
BATCHES = st.lists(st.tuples(IDS, TEXTS), min_size=1, max_size=4)


class Model:
    """What a memory must hold: the messages of each thread, by id, in order of arrival."""

    def __init__(self) -> None:
        self.threads: dict[Thread, dict[str, str]] = defaultdict(dict)

    def remember(self, thread: Thread, messages: list[tuple[str, str]]) -> None:
        self.threads[thread].update(messages)

    def scope(self, resource: str | None, thread: str | None) -> list[Thread]:
        wanted = [(r, t) for r, t in self.threads if r == resource and thread in (None, t)]
        return [key for key in wanted if self.threads[key]]

    def forget(self, threads: list[Thread], ids: set[str] | None) -> int:
        before = self.count
        for key in threads:
            kept = self.threads[key].items() if ids is not None else ()
            self.threads[key] = {id: text for id, text in kept if ids and id not in ids}
        return before - self.count

    @property
    def count(self) -> int:
        return sum(map(len, self.threads.values()))


class Tenants(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model = Model()
        self.numbered = 0
        self.dimensions = 32
        self.memory: SemanticRecall | None = None

    @property
    def open_memory(self) -> SemanticRecall:
        assert self.memory is not None
        return self.memory

    @initialize(asks_index=st.booleans())
    def reopen(self, asks_index: bool) -> None:
        """Searches in one life are exact, in another they ask the vector index."""
        if self.memory is not None:
            self.memory.close()
        self.memory = SemanticRecall.open(
            self.place(is_new=self.memory is None),
            embedder=HashEmbedder(self.dimensions),
            settings=Settings(exact_limit=0) if asks_index else None,
        )

    def place(self, *, is_new: bool) -> Path | str:
        """Return the folder or the URL of the memory."""
        folder = self.folder / "memory"
        if is_new:
            folder.mkdir()
            with SQLMessageStore.open(folder / "recall.sqlite3") as store:
                store.setting("index_shards", "1")  # one collection for all tenants, and quicker
        return folder

    @rule(asks_index=st.booleans())
    def restart(self, asks_index: bool) -> None:
        self.reopen(asks_index)

    @rule(resource=RESOURCES, thread=THREADS, batch=BATCHES, background=st.booleans())
    def remember(
        self, resource: str | None, thread: str, batch: list[tuple[str, str]], background: bool
    ) -> None:
        """New messages, and new texts for ids that are there; every text is unique."""
        marked = []
        for id, text in batch:
            self.numbered += 1
            marked.append((id, f"{text} n{self.numbered}"))
        self.open_memory.remember(
            [{"role": "user", "content": text, "id": id} for id, text in marked],
            thread_id=thread,
            resource_id=resource,
            background=background,
        )
        self.model.remember((resource, thread), marked)

    @rule(
        resource=RESOURCES,
        thread=st.none() | THREADS,
        ids=st.none() | st.sets(IDS, max_size=3),
    )
    def forget(self, resource: str | None, thread: str | None, ids: set[str] | None) -> None:
        if resource is None and thread is None:
            return
        receipt = self.open_memory.forget(
            resource_id=resource, thread_id=thread, ids=None if ids is None else sorted(ids)
        )
        assert receipt.messages == self.model.forget(self.model.scope(resource, thread), ids)
        assert {**receipt.remaining, "outbox": 0} == dict.fromkeys(receipt.remaining, 0)

    @rule()
    def flush(self) -> None:
        assert self.open_memory.flush(60)

    @precondition(lambda self: self.model.count)
    @rule(smaller=st.booleans())
    def reindex(self, smaller: bool) -> None:
        self.dimensions = 32 if smaller else 48
        report = self.open_memory.reindex(HashEmbedder(self.dimensions))
        assert report.pending == 0

    @rule()
    def verify(self) -> None:
        report = self.open_memory.verify()
        assert report.ok, report
        assert (report.missing, report.orphans, report.pending) == (0, 0, 0)

    @rule(
        resource=RESOURCES,
        thread=THREADS,
        query=TEXTS,
        whole=st.booleans(),
        dense=st.booleans(),
    )
    def recall(
        self, resource: str | None, thread: str, query: str, whole: bool, dense: bool
    ) -> None:
        if resource is None and whole:
            return
        recalled = self.open_memory.recall(
            query,
            resource_id=resource,
            thread_id=thread,
            scope="resource" if whole else "thread",
            ranking="dense" if dense else "hybrid",
            top_k=200,
        )
        self.check(recalled, self.model.scope(resource, None if whole else thread))
        if not dense:  # a text without its vector yet is found by words only
            everything = sum(
                len(self.model.threads[key])
                for key in self.model.scope(resource, None if whole else thread)
            )
            assert len(recalled) == everything

    @precondition(lambda self: self.model.count)
    @rule(data=st.data())
    def recall_own_text(self, data: st.DataObject) -> None:
        (resource, thread) = data.draw(
            st.sampled_from([key for key, kept in self.model.threads.items() if kept])
        )
        id, text = data.draw(st.sampled_from(sorted(self.model.threads[resource, thread].items())))
        recalled = self.open_memory.recall(
            text, resource_id=resource, thread_id=thread, scope="thread", message_range=0
        )
        self.check(recalled, [(resource, thread)])
        found = {(hit.message.id, hit.message.text) for hit in recalled.hits}
        # The last message of the thread, if it says the same, is the query and not an answer to it.
        last = next(reversed(self.model.threads[resource, thread].items()))
        assert ((id, text) in found) == ((id, text) != last)

    def check(self, recalled: Recall, scope: list[Thread]) -> None:
        """Nothing of another scope, nothing forgotten, nothing that was replaced."""
        for message in (item.message for item in recalled):
            assert (message.resource_id, message.thread_id) in scope
            kept = self.model.threads[message.resource_id, message.thread_id]
            assert kept.get(message.id) == message.text

    @invariant()
    def histories_are_those_of_the_model(self) -> None:
        if self.memory is None:
            return
        stored: dict[Thread, list[Message]] = defaultdict(list)
        for message in self.memory.messages():
            stored[message.resource_id, message.thread_id].append(message)
        found = {key: [(m.id, m.text) for m in messages] for key, messages in stored.items()}
        kept = {key: list(texts.items()) for key, texts in self.model.threads.items() if texts}
        assert found == kept
        threads = {(info.resource_id, info.thread_id) for info in self.memory.threads()}
        assert threads == set(found)

    def teardown(self) -> None:
        if self.memory is not None:
            self.memory.close()
        shutil.rmtree(self.folder)


Tenants.TestCase.settings = settings(
    max_examples=20,
    phases=[Phase.explicit, Phase.generate],  # a failure is shown as it is found, not in minutes
    stateful_step_count=20,
    suppress_health_check=[HealthCheck.too_slow],
)
TestTenants = Tenants.TestCase
