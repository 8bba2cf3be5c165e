import html.parser
import pickle
import sys
import timeit
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given

from semantic_recall.result import Recall
from semantic_recall.tokens import count_tokens
from tests.core.blocks import HOSTILE, parse, recalled


def sample() -> Recall:
    return Recall(
        query="project deadline",
        messages=(
            recalled("Is it in May?", thread="t1", score=0.4),
            recalled("Yes.", thread="t1", role="assistant", hit=False, score=None),
            recalled("It moved to June.", thread="t2", score=0.9),
            recalled("Somebody else's t1", thread="t1", resource="u2", score=None),
        ),
        thread_id="t1",
        resource_id="u1",
        dropped={"below threshold": 3},
        timings={"search": 0.2},
    )


def texts(messages: tuple[object, ...]) -> list[str]:
    return [message.message.text for message in messages]  # type: ignore[attr-defined]


def test_hits_stand_best_first() -> None:
    hits = sample().hits
    assert texts(hits) == ["It moved to June.", "Is it in May?", "Somebody else's t1"]


def test_equal_scores_keep_their_order() -> None:
    recall = Recall(query="q", messages=tuple(recalled(text) for text in "cab"))
    assert texts(recall.hits) == ["c", "a", "b"]


def test_the_current_thread_is_told_by_resource_and_thread() -> None:
    recall = sample()
    assert texts(recall.same_thread) == ["Is it in May?", "Yes."]
    assert texts(recall.cross_thread) == ["It moved to June.", "Somebody else's t1"]


def test_without_a_current_thread_everything_is_of_others() -> None:
    recall = Recall(query="q", messages=sample().messages)
    assert recall.same_thread == ()
    assert recall.cross_thread == recall.messages


def test_the_text_has_the_other_threads_and_the_block_all() -> None:
    recall = sample()
    assert [text for *_, text in parse(recall.text)] == ["It moved to June.", "Somebody else's t1"]
    assert [thread for thread, *_ in parse(recall.block("all"))] == ["t1", "t1", "t2", "t1"]
    assert Recall(query="q").text == ""


def test_tokens_count_what_goes_into_the_prompt() -> None:
    recall = sample()
    expected = sum(count_tokens(text) for text in (recall.text, "Is it in May?", "Yes."))
    assert recall.tokens == expected
    assert Recall(query="q").tokens == 0


def test_a_block_can_be_cut_to_tokens() -> None:
    recall = Recall(query="q", messages=(recalled("word " * 2000),))
    block = recall.block(max_tokens=120)
    assert 100 <= count_tokens(block) <= 120
    assert parse(block)


def test_it_is_a_value_that_cannot_be_changed() -> None:
    recall = sample()
    assert recall == Recall(
        query=recall.query,
        messages=recall.messages,
        thread_id="t1",
        resource_id="u1",
        dropped={"below threshold": 3},
        timings={"search": 99.0},
    )
    with pytest.raises(FrozenInstanceError):
        recall.query = "other"  # type: ignore[misc]
    assert recall.text  # what was computed does not stand in the way of a copy
    assert pickle.loads(pickle.dumps(recall)) == recall


def test_it_iterates_over_its_messages_and_is_false_when_empty() -> None:
    recall = sample()
    assert list(recall) == list(recall.messages)
    assert len(recall) == 4
    assert not Recall(query="q")


def test_making_one_costs_next_to_nothing() -> None:
    messages = tuple(recalled("word " * 50, minutes=i) for i in range(12))
    times = timeit.repeat(
        lambda: Recall(query="q", messages=messages, thread_id="t1"), number=200, repeat=10
    )
    assert min(times) / 200 < 20e-6


def test_the_repr_is_one_short_line() -> None:
    assert repr(sample()) == (
        "<Recall 'project deadline', 3 hits, 4 messages, 2 of the current thread, "
        "dropped 3 below threshold>"
    )
    assert repr(Recall(query="q")) == "<Recall 'q', 0 hits, 0 messages>"
    assert repr(Recall(query="q", messages=(recalled("a"),))) == "<Recall 'q', 1 hit, 1 message>"


@given(HOSTILE)
def test_the_repr_is_safe_for_a_terminal(query: str) -> None:
    shown = repr(Recall(query=query * 100, messages=(recalled(query),)))
    assert shown.isprintable()
    shown.encode()
    assert len(shown) < 500


class Page(html.parser.HTMLParser):
    """Collects tags and text, and fails on a tag that is not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def page(recall: Recall) -> Page:
    reader = Page()
    reader.feed(recall._repr_html_())
    reader.close()
    assert reader.open == []
    return reader


def test_the_page_has_a_table_per_thread_with_headings() -> None:
    shown = page(sample())
    tags = [tag for tag, _ in shown.tags]
    assert tags.count("table") == tags.count("caption") == 3
    scopes = [attrs.get("scope") for tag, attrs in shown.tags if tag == "th"]
    assert scopes.count("col") == 3 * 5
    assert scopes.count("row") == len(sample().messages)
    text = " ".join(shown.text)
    for part in ("Thread t1 (current)", "Thread t2", "0.900", "3 below threshold", "0.20 ms"):
        assert part in text
    rows = [text for text in shown.text if text.isdigit() or text == "neighbour"]
    assert rows == ["2", "neighbour", "1", "3"]


def test_each_bar_stands_beside_its_number() -> None:
    shares = [attrs["value"] for tag, attrs in page(sample()).tags if tag == "meter"]
    assert shares == ["0.444", "1.000"]


def test_an_empty_recall_has_a_page() -> None:
    assert "0 hits, 0 neighbours, 0 tokens" in " ".join(page(Recall(query="q")).text)


@given(HOSTILE)
def test_the_page_runs_nothing_and_hides_nothing(text: str) -> None:
    hostile = f"{text}<script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    recall = Recall(
        query=hostile,
        messages=(recalled(hostile, name=hostile, thread=hostile),),
        dropped={hostile: 1},
    )
    shown = page(recall)
    assert {tag for tag, _ in shown.tags} <= {
        *("style", "div", "p", "strong", "table", "caption", "thead", "tbody", "tr", "th", "td"),
        *("meter", "details", "summary", "pre"),
    }
    assert {name for _, attrs in shown.tags for name in attrs} <= {
        *("class", "scope", "dir", "role", "aria-label", "aria-hidden", "value"),
    }
    recall._repr_html_().encode()
    assert "<script>alert(1)</script>" in "".join(shown.text)


def test_long_text_is_shortened_on_the_page() -> None:
    recall = Recall(query="q" * 5000, messages=(recalled("x" * 100_000),))
    assert len(recall._repr_html_()) < 15_000
    assert sys.getsizeof(repr(recall)) < 500
