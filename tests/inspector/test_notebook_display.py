"""A recall shown in a notebook: looked at by a real browser, hostile text included."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from semantic_recall import Message, Recall, RecalledMessage
from tests.inspector.browsing import Watched
from tests.inspector.contrast import LOW_CONTRAST
from tests.inspector.conversations import HIDDEN, HOSTILE
from tests.inspector.surroundings import notebook_page


def said(text: str, thread: str = "t1", *, hit: bool = True, score: float = 0.5) -> RecalledMessage:
    message = Message(role="user", text=text, thread_id=thread, resource_id="r")
    return RecalledMessage(message=message, is_hit=hit, score=score, dense=score / 2, lexical=3.0)


RECALL = Recall(
    query="When is the wedding?",
    messages=(
        said("The wedding is in June.", score=1.2),
        said("In Lisbon?", hit=False),
        said("It moved to July.", "t2", score=0.6),
    ),
    thread_id="t1",
    resource_id="r",
    dropped={"below threshold": 12, "over max_tokens": 2},
    timings={"total": 1.5},
)


def shown(browser: Browser, recall: Recall, *, dark: bool = False, width: int = 900) -> Watched:
    watched = Watched(browser.new_page(viewport={"width": width, "height": 600}))
    watched.page.set_content(notebook_page(recall._repr_html_(), dark=dark))
    return watched


def test_hits_neighbours_threads_and_what_was_dropped_have_their_roles(browser: Browser) -> None:
    page = shown(browser, RECALL).page
    group = page.get_by_role("group", name="Recall")
    expect(group).to_contain_text("2 hits, 1 neighbour")
    expect(group).to_contain_text("Left out: 12 below threshold, 2 over max_tokens")
    table = group.get_by_role("table", name="Thread t1 (current)")
    heads = table.get_by_role("columnheader")
    expect(heads).to_have_text(["Hit", "Message", "Score", "Cosine", "BM25"])
    expect(table.get_by_role("rowheader")).to_have_text(["1", "neighbour"])
    expect(group.get_by_role("table", name="Thread t2").get_by_role("rowheader")).to_have_text("2")
    expect(table.get_by_role("cell", name="1.200")).to_be_visible()
    expect(table.get_by_role("meter")).to_have_count(0)  # the number beside it says the same
    page.get_by_text("Block for the prompt").click()
    expect(page.locator("pre")).to_contain_text("It moved to July.")
    page.close()


def test_the_bars_are_as_long_as_the_scores(browser: Browser) -> None:
    page = shown(browser, RECALL).page
    shares = page.locator("meter").evaluate_all("bars => bars.map(bar => bar.value)")
    assert shares == pytest.approx([1, 0.6, 1, 0.417, 0.25, 1, 0.5, 0.3, 1], abs=0.001)
    page.close()


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_painted_and_readable_in_both_themes(browser: Browser, dark: bool) -> None:
    page = shown(browser, RECALL, dark=dark).page
    assert page.evaluate(LOW_CONTRAST) == []
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    colors = {color: count for count, color in picture.getcolors(2**24) or []}
    ground = (17, 17, 17) if dark else (255, 255, 255)
    assert max(colors, key=lambda color: colors[color]) == ground
    assert colors[(31, 157, 139)] > 300  # the bars
    assert len(colors) > 50  # text
    page.close()


def test_hostile_text_is_text(browser: Browser) -> None:
    hostile = tuple(
        RecalledMessage(
            message=Message(role=HOSTILE, text=text, thread_id=HOSTILE, name=HOSTILE),
            is_hit=True,
            score=1.0,
        )
        for text in (HOSTILE, HIDDEN, HOSTILE + "x" * 5000)
    )
    recall = Recall(query=HOSTILE, messages=hostile, dropped={HOSTILE: 3}, timings={HOSTILE: 1.0})
    watched = shown(browser, recall)
    page = watched.page
    expect(page.locator(".text").first).to_have_text(HOSTILE)
    expect(page.locator("caption")).to_contain_text("<script>")
    page.get_by_text("Block for the prompt").click()
    expect(page.locator("pre")).to_contain_text("<img src=x")
    assert no_markup(page)
    shape = page.locator("tbody tr")
    expect(shape).to_have_count(3)
    expect(shape.first.locator("> *")).to_have_count(5)
    watched.assert_harmless("about:")
    page.close()


def no_markup(page: Page) -> bool:
    return page.locator(".recall :is(script, img, svg, a, iframe, style)").count() == 0


def test_a_wide_word_does_not_push_the_scores_out(browser: Browser) -> None:
    wide = replace(RECALL, messages=(said("w" * 500), said("中" * 300, hit=False)))
    page = shown(browser, wide, width=520).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 520
    page.close()


def test_an_empty_recall_says_so(browser: Browser) -> None:
    page = shown(browser, Recall(query="nothing")).page
    expect(page.get_by_role("group")).to_have_text(
        "Recall for “nothing”: 0 hits, 0 neighbours, 0 tokens"
    )
    page.close()
