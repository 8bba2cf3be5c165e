"""A recall never crosses a resource, whatever the ids look like."""

from __future__ import annotations

import tempfile
from collections import defaultdict

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder

LOOK_ALIKES = [
    "u", "u2", "U", "u ", " u", "a_b", "a-b", "a%b", "a.b", "%", "_", ":", "/", "u:t", "u/t", "*",
    "'", '"', "\\", "é", "e\u0301", "а", "ｕ", "u\u200b", "\x00", "\ud800", "用户", "None", "null",
    "r1\nr2", "u" * 1024,
]  # fmt: skip
ids = st.sampled_from(LOOK_ALIKES) | st.text(min_size=1, max_size=8)
words = st.sampled_from(
    ["apple", "pear", "plum", "fig", "kiwi", "lime", "melon", "grape", "苹果", "사과"]
)
text = st.lists(words, min_size=1, max_size=5).map(" ".join)
message = st.tuples(st.none() | ids, ids, text)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(
    stored=st.lists(message, min_size=1, max_size=25),
    query=text,
    asking=st.tuples(ids, ids),
    large=st.booleans(),
    ranking=st.sampled_from(["hybrid", "dense"]),
)
def test_a_recall_never_crosses_a_resource(
    stored: list[tuple[str | None, str, str]],
    query: str,
    asking: tuple[str, str],
    large: bool,
    ranking: str,
) -> None:
    owners: dict[tuple[str | None, str], set[str]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        memory = SemanticRecall.open(
            folder,
            embedder=HashEmbedder(32),
            settings=Settings(exact_limit=0) if large else None,
            ranking=ranking,  # type: ignore[arg-type]
            top_k=50,
        )
        with memory:
            for number, (resource, thread, content) in enumerate(stored):
                marked = f"{content} n{number}"
                owners[(resource, thread)].add(marked)
                memory.remember(
                    {"role": "user", "content": marked}, thread_id=thread, resource_id=resource
                )
            if large:
                memory.flush()
            for resource in {asking[0], *(owner for owner, _ in owners if owner is not None)}:
                own = {
                    t for (owner, _), texts in owners.items() if owner == resource for t in texts
                }
                recalled = memory.recall(query, resource_id=resource)
                assert {m.message.text for m in recalled} <= own
                assert {m.message.resource_id for m in recalled} <= {resource}
                if own:
                    assert recalled
            for resource, thread in {asking, *owners}:
                recalled = memory.recall(
                    query, resource_id=resource, thread_id=thread, scope="thread"
                )
                assert {m.message.text for m in recalled} <= owners.get((resource, thread), set())
