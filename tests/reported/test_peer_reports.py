"""What users of other memories reported, row by row, and the test that it cannot happen here.

The rows are those of a survey of issues. Tests in this file carry the first number of their row
in their names; the others are to be found by their names below `tests/` and in
`semantic_recall.testing`.

Wrong user's data
    mastra 20604, 21863     here; test_ids_of_other_tenants
    mastra 15426            test_scopes_are_never_widened
    mastra 18911            here (listing and exporting without an id is for the operator, and
                            docs/security.md says so)
    llama_index 22701       test_report_2_one_block_serves_two_sessions_and_does_not_mix_them
    langgraph 8300, js 2721 here; test_langgraph_8300_ids_are_compared_exactly
    graphiti 632, 1018      test_resources_are_apart
                            test_filter_is_applied_before_top_k
    cognee 3520, 1193       test_a_recall_never_crosses_a_resource
    Memori 136              test_twenty_users_at_once_stay_apart
    agno 4661, 4608         test_concurrent_runs_of_many_users_never_mix
    PraisonAI 4818          test_a_recall_never_crosses_a_resource
    crewAI 2584             test_scopes_are_never_widened
    LongMemory 97           test_a_recall_never_crosses_a_resource

Deletion
    mastra 6604             here; test_stale_ids
    mastra 12225            test_orphans_in_the_index_are_noticed_and_removed
    mastra 20509            test_forget_leaves_nothing_and_says_so
    mastra 23177            test_an_embedding_in_flight_brings_nothing_back
    mem0 3928, 3746, 3785   here
    mem0 3695               test_forget_leaves_nothing_and_says_so
    cognee 3526, 3895       here
    MemOS 1103, Memori 303  here

Duplicates and junk
    mem0 4573               here
                            test_nothing_recalled_is_in_the_state_or_a_checkpoint
    mem0 4721, 5850         here (equal texts; texts that are nearly equal are kept apart)
    mastra 11455            test_equal_texts_are_embedded_once_even_after_a_restart

Lost or wrong messages
    redisvl 449, 178        here
    mem0 3215               here
    mastra 9991, 10543      here
    llama_index 23182       test_report_3_a_store_without_similarities_gives_the_order
    TrueMemory 256          here
    mastra 18279, 18943     test_chatgpt_only_the_open_branch_counts
                            test_langgraph_8214_an_edited_message_is_found_by_its_new_text
    mastra 17797            here

Slow
    mastra 11150, 11702,    test_queries_use_indexes
    23359                   test_a_window_in_a_long_thread_is_quick
    mem0 4479, graphiti 186 test_background_returns_before_the_embedder

Time
    mem0 4402, 3137         test_naive_times_are_utc_and_unreadable_ones_are_now
    mem0 3213, 3720, 3350   here

Async
    mem0 6355, 3781         test_a_blocking_embedder_does_not_block_the_loop
    langgraph 5178          test_every_method_has_an_async_twin_with_its_signature

Unicode and query syntax
    adk-python 5601,        test_questions_find_their_messages
    kuzu-memory 54,
    jcode 960
    hermes-agent 43435,     here
    powermem 1119,
    ironclaw 7275
    hermes-agent 69672      here

Huge messages
    mastra 3053, 5393,      test_a_long_text_has_a_vector_per_chunk
    mem0 5148, letta 755    test_a_text_of_10_mb_is_stored_found_and_shown
    mastra 9311, 9892       test_windows_step_over_tool_messages
    codescout 15            here

Model and dimensions
    mem0 3065, crewAI 2464, test_another_embedder_is_refused_until_a_reindex
    open-webui 28316,       test_a_stopped_reindex_goes_on_where_it_was
    memobase 76,
    langgraph 6687

Concurrency
    mem0 7196               test_two_processes_write_at_once
    MemPalace 1963, 1222,   test_two_openers
    1401, 1589              test_the_lock_file_is_deleted_under_the_owner

Threshold and score
    mastra 18207            test_recalls_what_mastra_recalls
    redisvl 649             here; test_nothing_is_a_valid_amount
    NeMo 1433               test_hits_stand_best_first
    MemMachine 1009         here

Injection
    mastra 24192, mnemosyne 109, ShieldCortex 507, kai 1044
                            test_what_looks_like_the_fence_is_broken
    agent-memory-dotnet 92  test_a_cut_block_keeps_its_limit_and_its_fence

Asked for
    mastra 14115            test_max_tokens_keeps_the_best_and_reports_the_rest
    supermemory-mcp 2, memanto 1634, nowledge 33
                            test_chatgpt_only_the_open_branch_counts
    supermemory 1036        test_export_and_import_give_the_same_memory
    metronix 346            test_each_bar_stands_beside_its_number
    MemWal 416              test_why_nothing_was_found_is_said
    mastra 5053             nothing: one resource per call. A team is a resource of its own, and
                            an application recalls twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from semantic_recall import (
    InvalidIdError,
    InvalidScopeError,
    Message,
    RecallOptions,
    SemanticRecall,
    Settings,
)
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.stores.sql import SQLMessageStore
from tests.core.embedders import BrokenEmbedder
from tests.reported.rows import missing, named


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SemanticRecall]:
    """A memory without a vector index, which opens in no time."""
    store = SQLMessageStore.open(tmp_path / "recall.sqlite3")
    with SemanticRecall(store, None, HashEmbedder(64)) as memory:
        yield memory


def say(memory: SemanticRecall, *texts: str, user: str = "ann", thread: str = "t") -> list[Message]:
    return memory.remember(
        [{"role": "user", "content": text} for text in texts], thread_id=thread, resource_id=user
    )


def found(memory: SemanticRecall, query: str, user: str = "ann", **options: object) -> list[str]:
    recalled = memory.recall(query, resource_id=user, **options)  # type: ignore[arg-type] # a test
    return [item.message.text for item in recalled]


def test_mastra_20604_neighbours_of_the_owner_only(memory: SemanticRecall) -> None:
    """mastra #20604, #21863: neighbours and parts were fetched by message id alone."""
    for user in ("ann", "bob"):
        memory.remember(
            [
                {"role": "user", "content": f"{word} of {user}", "id": f"m{n}"}
                for n, word in enumerate(("before", "the pin code", "after"))
            ],
            thread_id="t",
            resource_id=user,
        )
    for user in ("ann", "bob"):
        assert found(memory, "pin code", user, top_k=1, message_range=5) == [
            f"before of {user}",
            f"the pin code of {user}",
            f"after of {user}",
        ]


def test_mastra_18911_nobody_is_not_everybody(memory: SemanticRecall) -> None:
    """mastra #18911: a missing user listed everyone's threads."""
    say(memory, "the pin code is 4711")
    for missing_user in (None, ""):
        with pytest.raises((InvalidScopeError, InvalidIdError)):
            memory.recall("pin code", resource_id=missing_user)
        with pytest.raises((InvalidScopeError, InvalidIdError)):
            memory.forget(resource_id=missing_user)
    assert list(memory.recall("pin code", thread_id="t", scope="thread")) == []
    assert memory.history("t") == []
    assert memory.forget(thread_id="t").messages == 0
    assert found(memory, "pin code") == ["the pin code is 4711"]


@pytest.mark.parametrize("other", ["ann1", "an", "an_", "an%", "%", "_nn", "ANN", "ann.", "ann/x"])
def test_langgraph_8300_no_prefixes_and_patterns(memory: SemanticRecall, other: str) -> None:
    """langgraph #8300, CVE-2026-71433: `LIKE 'user1%'` found user10."""
    say(memory, "the pin code is 4711")
    say(memory, "nothing of interest", user=other)
    assert found(memory, "pin code", other) == ["nothing of interest"]
    assert memory.forget(resource_id=other).messages == 1
    assert found(memory, "pin code") == ["the pin code is 4711"]


def test_mastra_6604_deleted_messages_take_no_places(tmp_path: Path) -> None:
    """mastra #6604: vectors of deleted messages filled top_k, so fewer came back."""
    settings = Settings(exact_limit=0)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64), settings=settings) as memory:
        stored = say(memory, *(f"apple tree {n}" for n in range(40)))
        assert memory.flush()
        memory.forget(ids=[m.id for m in stored[:30]], thread_id="t", resource_id="ann")
        hits = memory.recall("apple tree", resource_id="ann", top_k=10).hits
        assert {hit.message.text for hit in hits} == {f"apple tree {n}" for n in range(30, 40)}


def test_mem0_3928_forgetting_one_user_leaves_the_others(tmp_path: Path) -> None:
    """mem0 #3928, #3746, #3785: `delete_all(user_id=...)` reset the collection of everybody."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        for user in ("ann", "bob"):
            say(memory, f"the pin code of {user}", user=user)
        assert memory.flush()
        receipt = memory.forget(resource_id="ann", secure=True)
        assert (receipt.messages, receipt.vectors) == (1, 1)
        assert found(memory, "pin code", "bob") == ["the pin code of bob"]
        report = memory.verify()
        assert (report.ok, report.vectors, report.indexed) == (True, 1, 1)


def test_cognee_3526_what_is_forgotten_stays_so_and_its_name_is_free(tmp_path: Path) -> None:
    """cognee #3526: it came back when all was processed again; #3895: its name was unusable."""
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(64)) as memory:
        say(memory, "the pin code is 4711")
        memory.forget(resource_id="ann")
        memory.reindex(HashEmbedder(32))
        memory.verify(repair=True)
    with SemanticRecall.open(tmp_path, embedder=HashEmbedder(32)) as memory:
        assert memory.flush()
        assert found(memory, "pin code") == []
        say(memory, "the new pin code is 1234")
        assert found(memory, "pin code") == ["the new pin code is 1234"]


def test_memos_1103_eight_hundred_are_deleted_at_once(memory: SemanticRecall) -> None:
    """MemOS #1103: 142 s for 793 (here well below a second on an idle machine); Memori #303."""
    say(memory, *(f"apple {n}" for n in range(793)))
    began = time.perf_counter()
    receipt = memory.forget(resource_id="ann")
    assert time.perf_counter() - began < 20
    assert receipt.messages == 793
    assert set(receipt.remaining.values()) <= {0}


def test_mem0_4573_what_was_recalled_is_not_stored_again(memory: SemanticRecall) -> None:
    """mem0 #4573: memories that were shown came back as new ones, until they were nearly all."""
    say(memory, "my dog is called Bello", thread="old")
    for n in range(5):
        asked = [{"role": "user", "content": f"what is my dog called, {n}?"}]
        prompt = memory.process_input(asked, thread_id="new", resource_id="ann")
        assert "Bello" in str(prompt)
        answer = {"role": "assistant", "content": f"Bello, as you said, {n}."}
        memory.process_output([*prompt, answer], thread_id="new", resource_id="ann")
    stored = [message.text for message in memory.history("new", "ann")]
    assert len(stored) == 10
    assert not any("my dog is called" in text for text in stored)


def test_mem0_4721_equal_texts_take_one_place(memory: SemanticRecall) -> None:
    """mem0 #4721, #5850: the same thing said often filled the whole answer."""
    for n in range(20):
        say(memory, "my dog is called Bello", thread=f"t{n}")
    say(memory, "my dog likes carrots", thread="other")
    texts = found(memory, "my dog", top_k=2, message_range=0)
    assert sorted(texts) == ["my dog is called Bello", "my dog likes carrots"]


def test_redisvl_449_messages_of_one_instant(memory: SemanticRecall) -> None:
    """redisvl #449: an id made of the time; PR 178: no order among equal times."""
    now = datetime.now(timezone.utc)
    memory.remember(
        [{"role": "user", "content": f"n{n}", "created_at": now} for n in range(200)],
        thread_id="t",
        resource_id="ann",
    )
    stored = memory.history("t", "ann", last=None)
    assert [message.text for message in stored] == [f"n{n}" for n in range(200)]
    assert len({message.id for message in stored}) == 200


def test_mem0_3215_an_answer_alone_is_stored(memory: SemanticRecall) -> None:
    """mem0 #3215: nothing was kept of a batch without a user's message."""
    memory.remember(
        {"role": "assistant", "content": "your dog is Bello"}, thread_id="t", resource_id="ann"
    )
    assert found(memory, "dog") == ["your dog is Bello"]


def test_mastra_9991_the_last_messages_are_the_newest(memory: SemanticRecall) -> None:
    """mastra #9991, PR 10543: the oldest came."""
    say(memory, *(f"n{n}" for n in range(30)))
    assert [m.text for m in memory.history("t", "ann", last=3)] == ["n27", "n28", "n29"]
    prompt = memory.process_input(
        [{"role": "user", "content": "and now?"}],
        thread_id="t",
        resource_id="ann",
        last_messages=3,
        top_k=0,
    )
    assert [message["content"] for message in prompt] == ["n27", "n28", "n29", "and now?"]


def test_truememory_256_ten_threads_lose_nothing(memory: SemanticRecall) -> None:
    """TrueMemory #256: a quarter of 10 x 50 writes was lost on a shared connection."""

    def write(number: int) -> None:
        for n in range(50):
            say(memory, f"apple {number} {n}", thread=f"t{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = {message.text for message in memory.messages(resource_id="ann")}
    assert stored == {f"apple {number} {n}" for number in range(10) for n in range(50)}


def test_mastra_17797_what_is_recalled_is_in_the_prompt(memory: SemanticRecall) -> None:
    """mastra #17797: the panel showed it, the model never saw it."""
    say(memory, "my dog is called Bello", "he likes carrots", thread="old")
    shown = found(memory, "what is my dog called?", thread_id="new")
    prompt = memory.process_input(
        [{"role": "user", "content": "what is my dog called?"}], thread_id="new", resource_id="ann"
    )
    assert shown
    assert all(text in str(prompt) for text in shown)


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


def test_every_test_that_the_table_names_is_there() -> None:
    assert missing(str(__doc__)) == set()
    assert len(named(str(__doc__))) > 40
