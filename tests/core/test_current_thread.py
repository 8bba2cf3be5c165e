"""A follow-up is understood by what was said last in the current thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semantic_recall import Message, Recall, SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from tests.core.talking import say

PRICE = "For the violin Solveig wants to charge 640 dollars."
FOLLOW_UP = "And what did she charge?"
FILLER = [
    "The bakery will charge more for bread from May.",
    "I charge the car at night.",
    "They charge a fee for the museum.",
    "She forgot to charge her phone.",
    "We had soup and it rained.",
    "The garden needs water.",
]


@pytest.fixture(params=[True, False], ids=["vectors", "words"])
def memory(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[SemanticRecall]:
    embedder = HashEmbedder(64) if request.param else None
    with SemanticRecall.open(memory_path, embedder=embedder) as memory:
        yield memory


@pytest.fixture
def told(memory: SemanticRecall) -> SemanticRecall:
    for number, text in enumerate([PRICE, *FILLER]):
        say(memory, text, thread=f"old-{number}")
    say(memory, "I played the violin today.", "Solveig would be glad.", thread="now")
    return memory


def best(memory: SemanticRecall, query: str = FOLLOW_UP, **more: Any) -> list[str]:
    recalled = _recalled(memory, query, **more)
    return [hit.message.text for hit in recalled.hits]


def _recalled(memory: SemanticRecall, query: str, **more: Any) -> Recall:
    given = {"thread_id": "now", "resource_id": "ana", "top_k": 1, "message_range": 0, **more}
    return memory.recall(query, **given)


def test_the_last_turns_tell_what_it_is_about(told: SemanticRecall) -> None:
    assert best(told) == [PRICE]
    assert best(told, thread_id=None) != [PRICE]
    assert best(told, thread_id="old-5") != [PRICE]


def test_the_last_turns_do_not_come_before_what_they_ask_for(told: SemanticRecall) -> None:
    assert best(told, top_k=2)[0] == PRICE
    kept_out = [message.id for message in told.history("now", "ana")]
    assert best(told, exclude_ids=kept_out) == [PRICE]


def test_what_the_last_turns_answer_themselves_is_found(told: SemanticRecall) -> None:
    answer = "She did charge 90 dollars."
    say(told, "I called about the bow.", answer, thread="bow")
    found = best(told, thread_id="bow", top_k=3)
    assert answer in found
    (answered,) = (m.id for m in told.history("bow", "ana") if m.text == answer)
    assert answer not in best(told, thread_id="bow", top_k=3, exclude_ids=[answered])


def test_a_message_before_them_does_not_profit(memory: SemanticRecall) -> None:
    for number, text in enumerate([PRICE, *FILLER]):
        say(memory, text, thread=f"old-{number}")
    weather = ("It snows again.", "Stay in, then.")
    say(memory, *weather, "I played the violin today.", "Solveig would be glad.", thread="now")
    assert best(memory) == [PRICE]


def test_a_whole_question_is_asked_alone(told: SemanticRecall) -> None:
    query = "Which museum did I say takes a fee?"
    alone, inside = (_recalled(told, query, thread_id=each, top_k=9) for each in (None, "now"))
    assert [(hit.message.text, hit.score) for hit in alone.hits] == [
        (hit.message.text, hit.score) for hit in inside.hits
    ]


def test_dense_ranking_never_hears_them(memory_path: Path) -> None:
    with SemanticRecall.open(memory_path, embedder=HashEmbedder(64)) as memory:
        for number, text in enumerate([PRICE, *FILLER]):
            say(memory, text, thread=f"old-{number}")
        say(memory, "I played the violin today.", "Solveig would be glad.", thread="now")
        alone = best(memory, ranking="dense", top_k=9, thread_id=None)
        assert best(memory, ranking="dense", top_k=9) == alone


def test_inside_one_thread(memory: SemanticRecall) -> None:
    say(memory, PRICE, *FILLER[2:], "I played the violin.", "Solveig would be glad.", thread="now")
    assert best(memory, scope="thread") == [PRICE]
    assert best(memory) == [PRICE]


def test_the_query_itself_is_not_one_of_the_last_turns(told: SemanticRecall) -> None:
    say(told, FOLLOW_UP, thread="now")
    assert best(told) == [PRICE]


def test_a_thread_that_begins_with_the_query_has_no_last_turns(told: SemanticRecall) -> None:
    say(told, FOLLOW_UP, thread="fresh")
    (own,) = told.history("fresh", "ana")
    assert best(told, thread_id="fresh") == best(told, thread_id=None, exclude_ids=[own.id])


def test_messages_of_tools_are_stepped_over(told: SemanticRecall) -> None:
    told.remember(
        [
            {"role": "tool", "content": "bread, bakery, museum, fee"},
            {"role": "assistant", "content": ""},
            {"role": "system", "content": "car, night"},
        ],
        thread_id="now",
        resource_id="ana",
    )
    assert best(told) == [PRICE]


def test_of_a_long_answer_the_beginning_and_the_end_are_heard(told: SemanticRecall) -> None:
    first = (
        "Solveig mended the violin: new pegs, soundpost, bridge, strings, varnish, glue, chin rest."
    )
    last = (
        "Ebony, spruce, maple, boxwood, bow, horsehair, rosin, case: Solveig knows a violin well."
    )
    middle = " ".join(FILLER * 5)
    say(told, "I played the violin.", f"{first} {middle} {last}", thread="long")
    in_the_prompt = [m.id for thread in ("now", "long") for m in told.history(thread, "ana")]
    assert best(told, thread_id="long", exclude_ids=in_the_prompt) == [PRICE]


def test_only_the_thread_of_this_resource_is_heard(told: SemanticRecall) -> None:
    say(told, "I played the violin.", "Solveig would be glad.", thread="x", resource_id="bob")
    assert best(told, thread_id="x") == best(told, thread_id=None)


def test_a_forgotten_thread_is_not_heard(told: SemanticRecall) -> None:
    alone = best(told, thread_id=None, exclude_ids=[m.id for m in told.history("now", "ana")])
    told.forget(thread_id="now", resource_id="ana")
    assert best(told) == alone


def test_a_scope_that_is_not_searched_whole_is_searched_for_the_query_alone(
    memory_path: Path,
) -> None:
    settings = Settings(exact_limit=0)
    embedder = HashEmbedder(64)
    with SemanticRecall.open(memory_path, embedder=embedder, settings=settings) as memory:
        memory.remember(
            Message(role="user", text=f"{text} {number}", thread_id=f"t{number}", resource_id="ana")
            for number in range(200)
            for text in (PRICE, *FILLER)
        )
        say(memory, "I played the violin today.", "Solveig would be glad.", thread="now")
        assert memory.flush()
        assert best(memory, top_k=5) == best(memory, top_k=5, thread_id=None)
