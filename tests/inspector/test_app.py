"""The endpoints of the inspector, asked as the page asks them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.inspector.views import PAGE
from tests.inspector.asking import TOKEN, Api, asking
from tests.inspector.conversations import HIDDEN, HOSTILE, ODD_IDS


@pytest.fixture
async def api(memory: SemanticRecall) -> AsyncIterator[Api]:
    async with asking(memory) as asked:
        yield asked


async def test_the_overview_has_the_size_and_the_options(api: Api, memory: SemanticRecall) -> None:
    found = await api("overview")
    assert found["name"] == "the memory"
    assert found["stats"]["messages"] == memory.stats().messages == 11
    assert found["options"] == {
        "top_k": 4,
        "before": 1,
        "after": 1,
        "threshold": None,
        "max_tokens": None,
        "ranking": "hybrid",
    }


async def test_resources_and_threads_are_listed(api: Api) -> None:
    found = await api("resources")
    assert found["total"] == 3
    assert {
        one["resource_id"]: (one["threads"], one["messages"]) for one in found["resources"]
    } == {
        "ana": (3, 7),
        "eve": (2, 3),
        None: (1, 1),
    }
    found = await api("threads", resource_id="ana")
    assert {one["thread_id"]: one["messages"] for one in found["threads"]} == {
        "trip": 3,
        "work": 2,
        "ferry": 2,
    }
    assert found["threads"][0]["last_at"] == "2025-03-03T09:30:00+00:00"


async def test_threads_without_an_owner_are_apart(api: Api) -> None:
    for fields in ({}, {"resource_id": None}):
        found = await api("threads", **fields)
        assert [one["thread_id"] for one in found["threads"]] == ["alone"]
    shown = await api("messages", thread_id="alone", resource_id=None)
    assert [one["text"] for one in shown["messages"]] == ["Nobody owns this ferry."]
    assert "trip" in await api.refused("messages", code=404, thread_id="trip", resource_id=None)


async def test_lists_can_be_searched(api: Api) -> None:
    found = await api("threads", resource_id="ana", contains="ER")
    assert [one["thread_id"] for one in found["threads"]] == ["ferry"]
    assert (await api("resources", contains="EV"))["total"] == 1
    assert (await api("threads", resource_id="ana", contains="%"))["total"] == 0


async def test_long_lists_come_in_pages(api: Api, memory: SemanticRecall) -> None:
    count = PAGE + 3
    memory.remember(
        [{"role": "user", "content": "x", "thread_id": f"t{number}"} for number in range(count)],
        resource_id="bob",
    )
    first = await api("threads", resource_id="bob")
    rest = await api("threads", resource_id="bob", skip=PAGE)
    assert (first["total"], len(first["threads"]), len(rest["threads"])) == (count, PAGE, 3)
    ids = {one["thread_id"] for page in (first, rest) for one in page["threads"]}
    assert len(ids) == count


async def test_a_long_thread_comes_from_its_end(api: Api, memory: SemanticRecall) -> None:
    texts = [str(number) for number in range(2 * PAGE)]
    memory.remember(
        [{"role": "user", "content": text} for text in texts], thread_id="long", resource_id="bob"
    )
    last = await api("messages", thread_id="long", resource_id="bob")
    first = await api("messages", thread_id="long", resource_id="bob", skip=PAGE)
    assert [one["text"] for one in first["messages"] + last["messages"]] == texts
    assert (last["more"], first["more"]) == (True, False)
    beyond = await api("messages", thread_id="long", resource_id="bob", skip=5 * PAGE)
    assert beyond == {"messages": [], "more": False}


async def test_a_recall_says_what_came_and_why(api: Api, memory: SemanticRecall) -> None:
    query = "When does the night ferry go?"
    found = await api("recall", query=query, resource_id="ana", top_k=1)
    recall = memory.recall(query, resource_id="ana", top_k=1)
    assert [one["id"] for one in found["messages"]] == [one.message.id for one in recall]
    assert [one["rank"] for one in found["messages"] if one["is_hit"]] == [1]
    for shown, recalled in zip(found["messages"], recall, strict=True):
        assert "".join(text for text, _ in shown["parts"]) == recalled.message.text
        assert (shown["score"], shown["dense"]) == (recalled.score, recalled.dense)
        assert shown["lexical"] == recalled.lexical
    assert found["tokens"] == recall.tokens > 0
    assert found["block"] == recall.text
    assert found["hits"] == 1
    assert found["timings"]["total"] > 0
    marked = {text for one in found["messages"] for text, mark in one["parts"] if mark}
    assert {"ferry", "night"} <= marked


async def test_the_options_reach_the_recall(api: Api) -> None:
    async def ids(**fields: object) -> list[str]:
        found = await api("recall", query="ferry", resource_id="ana", **fields)
        return [one["id"] for one in found["messages"]]

    assert len(await ids(top_k=7, before=0, after=0)) == 7
    assert len(await ids(top_k=1, before=0, after=0)) == 1
    assert len(await ids(top_k=1, before=2, after=2)) > 1
    assert set(await ids(scope="thread", thread_id="work")) <= {"work-0", "work-1"}
    assert await ids(ranking="dense", threshold=0.999) == []


async def test_a_smaller_budget_makes_a_smaller_block(api: Api) -> None:
    whole = await api("recall", query="ferry", resource_id="ana")
    cut = await api("recall", query="ferry", resource_id="ana", max_tokens=whole["tokens"] - 1)
    assert cut["tokens"] < whole["tokens"]
    assert len(cut["block"]) < len(whole["block"])
    assert {"reason": "over max_tokens"}.items() <= cut["dropped"][0].items()


async def test_messages_of_the_current_thread_come_beside_the_block(api: Api) -> None:
    found = await api("recall", query="ferry", resource_id="ana", thread_id="ferry", top_k=2)
    assert {"role": "assistant", "content": "The ferry at ten."} in found["chat"]
    assert "at ten" not in found["block"]
    assert {one["thread_id"] for one in found["messages"] if one["current"]} == {"ferry"}


async def test_nobody_elses_messages_are_shown(api: Api) -> None:
    found = await api("recall", query="ferry", resource_id="ana", top_k=100)
    assert {one["resource_id"] for one in found["messages"]} == {"ana"}
    assert (await api("recall", query="ferry", resource_id="an"))["messages"] == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"top_k": 0}, "top_k takes a whole number from 1 to 100, not 0."),
        ({"top_k": -3}, "not -3"),
        ({"top_k": 101}, "not 101"),
        ({"top_k": "4"}, 'not "4"'),
        ({"top_k": True}, "not true"),
        ({"top_k": 1.5}, "not 1.5"),
        ({"before": -1}, "before takes"),
        ({"after": 21}, "after takes"),
        ({"threshold": 1.5}, "threshold takes None or a cosine similarity"),
        ({"threshold": "high"}, "threshold takes a number"),
        ({"max_tokens": 0}, "max_tokens takes"),
        ({"scope": "world"}, "scope"),
        ({"scope": "thread"}, "needs a thread_id"),
        ({"resource_id": None}, "needs a resource_id"),
        ({"resource_id": ""}, "resource_id is empty"),
        ({"resource_id": 7}, "resource_id takes a string or null"),
        ({"ranking": "best"}, "ranking"),
        ({"query": None}, "query takes a string"),
        ({"topk": 3}, 'no field "topk"'),
    ],
)
async def test_a_wrong_field_is_said(api: Api, fields: dict[str, object], said: str) -> None:
    answer = await api.answer("recall", **{"query": "q", "resource_id": "ana", **fields})
    assert answer.status_code == 400
    assert said in answer.json()["error"]


@pytest.mark.parametrize(
    "content", ["", "[]", "1", "{", "[" * 60_000, '{"query": 1' + "0" * 5000 + "}", "\xff"]
)
async def test_what_is_no_json_object_is_refused(api: Api, content: str) -> None:
    answer = await api.client.post(
        "/api/recall",
        content=content.encode("latin-1"),
        headers={"x-inspector-token": TOKEN, "content-type": "application/json"},
    )
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_not_a_number_is_refused(api: Api) -> None:
    said = await api.refused("recall", query="q", resource_id="ana", threshold=float("nan"))
    assert "threshold takes" in said


async def test_an_unknown_thread_or_message_is_said(api: Api) -> None:
    assert "nowhere" in await api.refused(
        "messages", code=404, thread_id="nowhere", resource_id="ana"
    )
    receipt = await api("forget", id="nothing", thread_id="trip", resource_id="ana")
    assert receipt["messages"] == 0
    assert await api.refused("forget", thread_id="trip", resource_id="ana")
    assert await api.refused("forget", id="trip-0", resource_id="ana")


@pytest.mark.parametrize("odd", ODD_IDS)
async def test_odd_ids_are_found_exactly(api: Api, memory: SemanticRecall, odd: str) -> None:
    memory.remember({"role": "user", "content": "Here.", "id": odd}, thread_id=odd, resource_id=odd)
    listed = await api("threads", resource_id=odd)
    assert [one["thread_id"] for one in listed["threads"]] == [odd]
    shown = await api("messages", thread_id=odd, resource_id=odd)
    assert [one["id"] for one in shown["messages"]] == [odd]
    found = await api("recall", query="here", resource_id=odd)
    assert [one["thread_id"] for one in found["messages"]] == [odd]
    receipt = await api("forget", id=odd, thread_id=odd, resource_id=odd)
    assert (receipt["messages"], receipt["threads"], receipt["complete"]) == (1, 1, True)
    assert memory.stats().messages == 11


async def test_hostile_text_goes_through_unchanged(api: Api) -> None:
    shown = await api("messages", thread_id="hostile", resource_id="eve")
    assert [one["text"] for one in shown["messages"]] == [HOSTILE, HIDDEN]
    found = await api("recall", query=HOSTILE, resource_id="eve", thread_id="hostile")
    assert HOSTILE in ["".join(text for text, _ in one["parts"]) for one in found["messages"]]


async def test_a_long_message_is_cut_and_says_so(api: Api, memory: SemanticRecall) -> None:
    memory.remember(
        {"role": "user", "content": "ferry " * 200_000}, thread_id="big", resource_id="bob"
    )
    [shown] = (await api("messages", thread_id="big", resource_id="bob"))["messages"]
    assert (len(shown["text"]), shown["characters"]) == (20_000, 1_200_000)
    found = await api("recall", query="ferry", resource_id="bob")
    assert found["block_characters"] > len(found["block"]) == 400_000


async def test_forgetting_removes_and_counts(api: Api, memory: SemanticRecall) -> None:
    receipt = await api("forget", id="trip-1", thread_id="trip", resource_id="ana")
    assert (receipt["messages"], receipt["threads"], receipt["vectors"]) == (1, 0, 1)
    assert receipt["complete"]
    assert receipt["remaining"]
    assert set(receipt["remaining"].values()) == {0}
    assert [one.id for one in memory.history("trip", "ana")] == ["trip-0", "trip-2"]
    found = await api("recall", query="12 euros", resource_id="ana", top_k=50)
    assert "trip-1" not in [one["id"] for one in found["messages"]]


async def test_forgetting_can_overwrite_the_bytes(own_memory: SemanticRecall) -> None:
    async with asking(own_memory) as api:
        fields = {"id": "trip-1", "thread_id": "trip", "resource_id": "ana"}
        receipt = await api("forget", **fields, secure=True)
        assert receipt["secure"]
        assert receipt["complete"]
        own_memory.close()
        assert "closed" in await api.refused("resources", code=503)


async def test_an_id_of_another_owner_is_not_touched(api: Api, memory: SemanticRecall) -> None:
    receipt = await api("forget", id="trip-1", thread_id="trip", resource_id="eve")
    assert receipt["messages"] == 0
    assert len(memory.history("trip", "ana")) == 3
