"""The page for everybody: keyboard, names, contrast, narrow screens, dark rooms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from semantic_recall import SemanticRecall
from semantic_recall.inspector import Inspector
from tests.inspector.browsing import inspected
from tests.inspector.contrast import LOW_CONTRAST


@pytest.fixture
def inspector(memory: SemanticRecall) -> Iterator[Inspector]:
    with inspected(memory) as serving:
        yield serving


def opened(
    browser: Browser,
    inspector: Inspector,
    *,
    width: int = 1280,
    scheme: Literal["light", "dark"] = "light",
) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
    page.goto(inspector.url)
    page.locator("#resources").get_by_role("button", name="ana").click()
    page.get_by_label("What does the user say now?").fill("night ferry")
    expect(page.locator("#results .hit")).not_to_have_count(0)
    return page


def test_the_keyboard_reaches_everything(
    browser: Browser, inspector: Inspector, memory: SemanticRecall
) -> None:
    page = browser.new_page()
    page.goto(inspector.url)
    expect(page.get_by_label("What does the user say now?")).to_be_focused()
    skip = page.get_by_role("link", name="Skip to the query")
    skip.focus()
    box = skip.bounding_box()
    assert box is not None
    assert box["x"] > 0
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the first resource
    current = page.locator("#resources [aria-current]")
    expect(current).to_contain_text("no owner")
    page.locator("#resources").get_by_role("button", name="no owner").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(current).to_contain_text("ana")
    skip.press("Enter")
    expect(page.get_by_label("What does the user say now?")).to_be_focused()
    page.keyboard.type("night ferry")
    page.keyboard.press("Enter")
    expect(page.locator("#results .hit")).not_to_have_count(0)
    page.get_by_role("button", name="ferry", exact=True).press("Enter")
    tab = page.get_by_role("tab", name="Thread")
    expect(tab).to_have_attribute("aria-selected", "true")
    tab.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Recalled")).to_be_focused()
    expect(page.get_by_role("tab", name="Recalled")).to_have_attribute("aria-selected", "true")
    page.get_by_role("button", name="Forget: Which ferry goes").press("Enter")
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("tabpanel")).to_be_focused()
    assert [one.id for one in memory.history("ferry", "ana")] == ["ferry-1"]
    page.close()


def test_every_control_has_a_name_and_results_are_announced(
    browser: Browser, inspector: Inspector
) -> None:
    page = opened(browser, inspector)
    tree = page.locator("body").aria_snapshot()
    roles = "button|searchbox|textbox|spinbutton|slider|combobox|radio|tab|link|navigation"
    named = re.findall(rf"- '?({roles}) \"", tree)
    assert set(named) == set(roles.split("|")) - {"textbox"}
    assert not re.findall(rf"- '?(?:{roles})\b(?! \")", tree), tree
    assert page.locator("#summary").get_attribute("aria-live") == "polite"
    expect(page.get_by_role("status")).to_contain_text("hits")
    assert page.get_by_role("slider", name="Token budget").get_attribute("aria-valuetext") == (
        "no limit"
    )
    assert page.locator("html").get_attribute("lang") == "en"
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(
    browser: Browser, inspector: Inspector, scheme: Literal["light", "dark"]
) -> None:
    page = opened(browser, inspector, scheme=scheme)
    assert page.evaluate(LOW_CONTRAST) == []
    page.locator("#threads").get_by_role("button").first.click()
    expect(page.locator("#panel-thread .text")).not_to_have_count(0)
    page.locator("#panel-thread").get_by_role("button", name="Forget:").first.click()
    assert page.evaluate(LOW_CONTRAST) == []
    background = page.locator("body").evaluate("one => getComputedStyle(one).backgroundColor")
    light = int(re.findall(r"\d+", background)[0]) > 128
    assert light == (scheme == "light")
    page.close()


def test_a_narrow_screen_needs_no_sideways_scrolling(
    browser: Browser, inspector: Inspector
) -> None:
    for width in (400, 320):
        page = opened(browser, inspector, width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#threads").get_by_role("button").first.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        read = page.locator("#panel-thread")
        read.get_by_role("button", name="Forget:").first.click()
        box = page.get_by_role("dialog").bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        page.close()
