"""The page in a real Chromium, used as a person does: by clicking and by typing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from semantic_recall import SemanticRecall
from semantic_recall.inspector import Inspector
from semantic_recall.inspector.views import PAGE
from tests.inspector.browsing import Watched, inspected
from tests.inspector.conversations import HOSTILE


@pytest.fixture
def inspector(memory: SemanticRecall) -> Iterator[Inspector]:
    with inspected(memory, "the memory") as serving:
        yield serving


@pytest.fixture
def page(browser: Browser, inspector: Inspector) -> Iterator[Page]:
    """The inspector, opened; at the end nothing may have run, failed or gone elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    watched = Watched(context.new_page())
    watched.page.goto(inspector.url)
    expect(watched.page.locator("#threads li")).not_to_have_count(0)
    yield watched.page
    watched.assert_harmless(inspector.url.rpartition("/")[0].rpartition("/")[0])
    context.close()


def ask(page: Page, query: str) -> None:
    page.get_by_label("What does the user say now?").fill(query)
    expect(page.locator("#results .hit")).not_to_have_count(0)


def choose(page: Page, resource: str) -> None:
    page.locator("#resources").get_by_role("button", name=resource).click()


def tokens(page: Page) -> int:
    return int(page.locator("#tokens").inner_text().replace(",", ""))


def test_one_can_browse_resources_threads_and_messages(page: Page) -> None:
    resources = page.locator("#resources")
    expect(resources.get_by_role("button")).to_have_text(
        [re.compile("no owner"), re.compile("ana3 threads · 7 messages"), re.compile("eve")]
    )
    choose(page, "ana")
    expect(resources.get_by_role("button", name="ana")).to_have_attribute("aria-current", "true")
    threads = page.locator("#threads").get_by_role("button")
    expect(threads).to_have_count(3)
    threads.filter(has_text="trip").click()
    expect(page.get_by_role("tab", name="Thread")).to_have_attribute("aria-selected", "true")
    shown = page.locator("#panel-thread .text")
    expect(shown).to_have_text(["Is the ferry to Braga cheap?", "Yes, 12 euros.", "Good."])
    expect(page.locator("#panel-thread time").first).to_have_text("1 Mar 2025, 09:30")
    expect(page.locator("#facts")).to_contain_text("11 messages in 6 threads")


def test_a_query_shows_what_is_recalled_and_why(page: Page, memory: SemanticRecall) -> None:
    choose(page, "ana")
    ask(page, "When does the night ferry go?")
    recall = memory.recall("When does the night ferry go?", resource_id="ana")
    expect(page.locator("#summary")).to_contain_text(f"{len(recall.hits)} hits")
    expect(page.locator("#results .message")).to_have_count(len(recall))
    first = page.locator("#results .hit").filter(has=page.get_by_text("Hit 1", exact=True))
    best = recall.hits[0]
    expect(first.locator(".text")).to_have_text(best.message.text)
    expect(first.locator("mark").first).to_be_visible()
    assert best.score is not None
    expect(first.locator(".score .value")).to_have_text(f"{best.score:.2f}")
    width = first.locator(".score .bar i").evaluate("bar => bar.style.width")
    assert width == "100%"
    expect(page.locator("#block")).to_contain_text("Conversation ")
    assert tokens(page) == recall.tokens


def test_moving_the_options_changes_the_block_and_its_tokens(page: Page) -> None:
    choose(page, "ana")
    ask(page, "ferry")
    whole = tokens(page)
    hits = page.get_by_role("slider", name="Hits, slider")
    hits.focus()
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    expect(page.get_by_label("Hits", exact=True)).to_have_value("1")
    expect(page.locator("#results .hit")).to_have_count(1)
    fewer = tokens(page)
    assert 0 < fewer < whole
    page.get_by_label("Neighbours before", exact=True).fill("0")
    page.get_by_label("Neighbours after", exact=True).fill("0")
    expect(page.locator("#results .message")).to_have_count(1)
    assert 0 < tokens(page) < fewer
    page.get_by_role("button", name="Reset options").click()
    expect(page.locator("#tokens")).to_have_text(str(whole))
    page.get_by_label("Token budget", exact=True).fill(str(whole - 1))
    expect(page.locator("#dropped")).to_contain_text("left out: over max_tokens")
    assert tokens(page) < whole
    expect(page.locator("#tokens-of")).to_have_text(f"of {whole - 1} tokens")
    expect(page.locator("#code")).to_contain_text(f"max_tokens={whole - 1},")
    page.get_by_label("Least cosine", exact=True).fill("1")
    expect(page.locator("#summary")).to_have_text(re.compile("Nothing would be recalled"))
    expect(page.locator("#dropped")).to_contain_text("left out: below threshold")
    expect(page.locator("#prompt")).to_contain_text("Nothing is added to the prompt.")


def test_the_code_says_what_the_page_did(page: Page, memory: SemanticRecall) -> None:
    choose(page, "ana")
    page.get_by_label("Current thread", exact=True).select_option(label="ferry")
    page.get_by_role("radio", name="meaning", exact=True).check()
    page.get_by_label("Neighbours after", exact=True).fill("3")
    ask(page, 'the "ferry"\\')
    code = page.locator("#code").inner_text()
    recall = eval(code, {"memory": memory})
    assert (recall.query, recall.thread_id) == ('the "ferry"\\', "ferry")
    assert tokens(page) == recall.tokens
    assert 'ranking="dense"' in code
    assert "message_range=(1, 3)" in code
    assert "top_k" not in code


def test_the_current_thread_comes_as_messages(page: Page) -> None:
    choose(page, "ana")
    page.locator("#threads").get_by_role("button").filter(has_text="ferry").click()
    page.get_by_role("button", name="Make it the current thread").click()
    ask(page, "ferry at night")
    expect(page.locator("#prompt .chat")).to_contain_text("Which ferry goes at night?")
    expect(page.locator("#results .badge")).to_have_text("current")
    page.get_by_role("radio", name="current thread").check()
    expect(page.locator("#block")).to_have_count(0)
    expect(page.locator("#results .group")).to_have_count(1)


def test_a_wrong_option_is_said_and_mended(page: Page) -> None:
    choose(page, "ana")
    ask(page, "ferry")
    page.get_by_label("Least cosine", exact=True).fill("7")
    problem = page.get_by_role("alert")
    expect(problem).to_contain_text("threshold takes None or a cosine similarity from -1 to 1")


def test_hostile_text_is_text_everywhere(page: Page) -> None:
    choose(page, "eve")
    page.locator("#threads").get_by_role("button").filter(has_text="hostile").click()
    shown = page.locator("#panel-thread .text")
    expect(shown.first).to_have_text(HOSTILE)
    expect(shown.nth(1)).to_contain_text("leftU+202Egnp.exe")
    expect(shown.nth(1)).to_contain_text("zero 2 unseen characters nul")
    ask(page, HOSTILE)
    expect(page.locator("#results .text", has_text="<script>").first).to_be_visible()
    expect(page.locator("#block")).to_contain_text("<img src=x onerror=")
    page.locator("#threads").get_by_role("button").filter(has_text="<script>").click()
    expect(page.locator("#panel-thread .text")).to_have_text(["A thread with a name."])
    page.get_by_role("button", name="Make it the current thread").click()
    assert page.locator("select").evaluate("one => one.value") == f":{HOSTILE}"
    page.get_by_role("tab", name="Thread").click()
    page.get_by_role("button", name="Forget: A thread").click()
    expect(page.get_by_role("dialog")).to_contain_text("<svg onload=")
    page.keyboard.press("Escape")
    assert page.locator("main script, main img, iframe, svg, main style").count() == 0


def test_markup_cannot_be_made_of_text_on_this_page(browser: Browser, inspector: Inspector) -> None:
    page = browser.new_page()
    page.goto(inspector.url)
    made = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'made' } "
        "catch (error) { return error.name } }"
    )
    assert made == "TypeError"
    page.close()


def test_forgetting_asks_and_shows_the_receipt(page: Page, memory: SemanticRecall) -> None:
    choose(page, "ana")
    ask(page, "Is the ferry to Braga cheap?")
    message = page.locator("#results .message").filter(has_text="to Braga cheap")
    message.get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog", name="Forget this message?")
    expect(dialog).to_contain_text("Is the ferry to Braga cheap?")
    dialog.get_by_role("button", name="Keep it").click()
    expect(dialog).not_to_be_visible()
    assert len(memory.history("trip", "ana")) == 3

    message.get_by_role("button", name="Forget").click()
    dialog.get_by_role("button", name="Forget it").click()
    receipt = page.get_by_role("dialog", name="Forgotten")
    expect(receipt).to_contain_text("Nothing of it is left.")
    counts = dict(
        zip(
            receipt.locator("th").all_inner_texts(),
            receipt.locator("td").all_inner_texts(),
            strict=True,
        )
    )
    assert counts["messages removed"] == "1"
    left = {count for place, count in counts.items() if place.startswith("left in ")}
    assert left == {"0"}
    receipt.get_by_role("button", name="Close").click()
    expect(page.locator("#facts")).to_contain_text("10 messages")
    expect(message).to_have_count(0)
    assert [one.id for one in memory.history("trip", "ana")] == ["trip-1", "trip-2"]


def test_forgetting_the_last_message_of_a_resource(page: Page, memory: SemanticRecall) -> None:
    choose(page, "no owner")
    threads = page.locator("#threads").get_by_role("button")
    expect(threads).to_have_count(1)
    threads.click()
    page.get_by_role("button", name="Forget: Nobody owns").click()
    page.get_by_role("button", name="Forget it").click()
    page.get_by_role("button", name="Close").click()
    expect(page.locator("#resources li")).to_have_count(2)
    expect(page.get_by_role("tab", name="Recalled")).to_have_attribute("aria-selected", "true")
    assert memory.stats().messages == 10


def test_what_is_gone_meanwhile_is_said(page: Page, memory: SemanticRecall) -> None:
    choose(page, "ana")
    threads = page.locator("#threads").get_by_role("button")
    threads.filter(has_text="work").click()
    expect(page.locator("#panel-thread .text")).to_have_count(2)
    memory.forget(thread_id="work", resource_id="ana")
    page.get_by_role("button", name="Forget: The printer").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("dialog")).to_contain_text("It was gone already")
    page.get_by_role("button", name="Close").click()
    expect(threads).to_have_count(2)


def test_long_lists_and_threads_come_in_pages(
    browser: Browser, inspector: Inspector, memory: SemanticRecall
) -> None:
    threads_of_one = [
        {"role": "user", "content": "x", "thread_id": f"t{number}"} for number in range(PAGE + 2)
    ]
    memory.remember(threads_of_one, resource_id="a")
    texts = [f"number {number}" for number in range(PAGE + 10)]
    memory.remember(
        [{"role": "user", "content": text} for text in texts], thread_id="long", resource_id="a"
    )
    page = browser.new_page()
    page.goto(inspector.url)
    choose(page, "a 53 threads")
    threads = page.locator("#threads").get_by_role("button")
    expect(threads).to_have_count(PAGE)
    page.get_by_role("button", name="Show more threads").click()
    expect(threads).to_have_count(PAGE + 3)
    page.get_by_label("Find threads").fill("long")
    expect(threads).to_have_count(1)
    threads.click()
    shown = page.locator("#panel-thread .text")
    expect(shown).to_have_count(PAGE)
    page.get_by_role("button", name="Show earlier messages").click()
    expect(shown).to_have_text(texts)
    page.close()


def test_a_server_that_is_gone_is_said(
    browser: Browser, inspector: Inspector, memory: SemanticRecall
) -> None:
    page = browser.new_page()
    page.goto(inspector.url)
    choose(page, "ana")
    page.route("**/api/recall", lambda route: route.abort())
    page.get_by_label("What does the user say now?").fill("ferry")
    expect(page.get_by_role("alert")).to_contain_text("Is `semantic-recall inspect` still running?")
    page.close()
