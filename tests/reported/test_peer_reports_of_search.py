"""What users of other memories reported: times, odd queries, pictures, thresholds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from semantic_recall import RecallOptions, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.embedders import BrokenEmbedder
from tests.reported.asking import found, say


def test_mem0_3213_times_of_any_zone_filter_alike(memory: SemanticRecall) -> None:
    """mem0 #3213, #3720, #3350: date filters found nothing, or not what listing found."""
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    tokyo, lima = timezone(timedelta(hours=9)), timezone(timedelta(hours=-5))
    memory.remember(
        [
            {"role": "user", "content": f"apple {n}", "created_at": time.isoformat()}
            for n, time in enumerate(
                [
                    noon.astimezone(tokyo),
                    (noon + timedelta(hours=1)).astimezone(lima),
                    noon + timedelta(hours=2),
                ]
            )
        ],
        thread_id="t",
        resource_id="ann",
    )
    for zone in (timezone.utc, tokyo, lima):
        since = (noon + timedelta(minutes=30)).astimezone(zone)
        until = (noon + timedelta(minutes=90)).astimezone(zone)
        texts = found(memory, "apple", since=since, until=until, message_range=0)
        listed = [m.text for m in memory.history("t", "ann") if since <= m.created_at <= until]
        assert texts == listed == ["apple 1"]


@pytest.mark.parametrize(
    "query",
    [
        "memory:safe", 'say "memory', "'memory", "memory-safe", "is it memory?", "memory*",
        "-memory", "memory AND", "NOT memory", "NEAR(memory)", "(memory", "memory) OR 1=1",
        "^memory", "{memory}", "memory\\", "safe%memory_", "col:memory", "memory;--",
        "\x00memory", "+memory +safe",
    ],
)  # fmt: skip
def test_hermes_43435_no_query_is_syntax(memory: SemanticRecall, query: str) -> None:
    """hermes-agent PR 43435, powermem #1119, ironclaw #7275: signs in a query broke full text."""
    say(memory, "is the memory safe", "nothing of interest")
    lexical = memory.recall(query, resource_id="ann", top_k=1, message_range=0)
    assert [item.message.text for item in lexical] == ["is the memory safe"]
    assert lexical.hits[0].lexical


def test_hermes_69672_images_are_not_searched(memory: SemanticRecall) -> None:
    """hermes-agent #69672: the base64 of images went into the full text."""
    data = "data:image/png;base64," + "iVBORw0KGgo" * 2000
    memory.remember(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "my dog on the beach"},
                {"type": "image_url", "image_url": {"url": data}},
            ],
        },
        thread_id="t",
        resource_id="ann",
    )
    (message,) = memory.history("t", "ann")
    assert message.text == "my dog on the beach"
    assert memory.recall("iVBORw0KGgo base64", resource_id="ann").hits[0].lexical == 0


def test_codescout_15_a_message_without_its_vector_is_counted(tmp_path: Path) -> None:
    """codescout #15: it was stored without a vector, and the answer was "ok"."""
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    with SemanticRecall(store, None, BrokenEmbedder()) as memory:
        say(memory, "apple", "pear")
        assert memory.stats().pending == 2
        assert memory.verify().pending == 2
        words = memory.recall_for_turn("pear", resource_id="ann", thread_id="x", top_k=1)
        assert [hit.message.text for hit in words.hits] == ["pear"]


def test_redisvl_649_a_threshold_of_zero_is_one(memory: SemanticRecall) -> None:
    """redisvl #649: 0 was taken for "not given"."""
    strict = SemanticRecall(memory._store, None, HashEmbedder(64), RecallOptions(threshold=0.9))
    say(memory, "my dog is called Bello")
    query = "a dog of mine"
    assert [item.message.text for item in strict.recall(query, resource_id="ann")] == []
    assert len(strict.recall(query, resource_id="ann", threshold=0.0)) == 1
    assert len(strict.recall(query, resource_id="ann", threshold=None)) == 1


def test_memmachine_1009_an_exact_phrase_is_found(memory: SemanticRecall) -> None:
    """MemMachine #1009: vectors alone missed it among messages about the same thing."""
    say(memory, *(f"ticket number {n} about the printer on floor {n % 7}" for n in range(300)))
    say(memory, "ticket ZX-81-QUARTZ about the printer")
    assert found(memory, "ZX-81-QUARTZ", top_k=1, message_range=0) == [
        "ticket ZX-81-QUARTZ about the printer"
    ]
