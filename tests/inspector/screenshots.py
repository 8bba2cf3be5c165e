"""Makes the pictures in docs/images anew: `python -m tests.inspector.screenshots [FOLDER]`.

They show the shipped sample conversations, embedded by the default embedder, in a headless
Chromium. Letters are those of the machine; with the fonts Inter and Noto Sans CJK installed they
come out as they are in the repository.
"""

from __future__ import annotations

import json
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from semantic_recall import SemanticRecall
from semantic_recall.samples import RESOURCE_ID, conversations
from tests.inspector.browsing import chromium, inspected
from tests.inspector.surroundings import notebook_page

IMAGES = Path(__file__).parents[2] / "docs" / "images"
QUERY = "Which hotel did I book in Porto?"


def main(folder: Path) -> None:
    """Write every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        chromium() as browser,
        SemanticRecall.open(Path(place, "memory")) as memory,
    ):
        with conversations() as source:
            lines = source.read_text(encoding="utf-8").splitlines()
        memory.remember([json.loads(line) for line in lines])
        _notebook(browser, memory, folder)
        with inspected(memory, "demo-memory") as inspector:
            _inspector(browser, inspector.url, folder)


def _notebook(browser: Browser, memory: SemanticRecall, folder: Path) -> None:
    for name, dark, threshold in (("notebook", False, 0.2), ("notebook-dark", True, 0.3)):
        question = "When is Sora getting married now, and where?"
        for _ in range(2):  # the first has to load everything
            recall = memory.recall(question, resource_id=RESOURCE_ID, threshold=threshold)
        page = browser.new_page(viewport={"width": 940, "height": 200}, device_scale_factor=1.5)
        page.set_content(notebook_page(recall._repr_html_(), dark=dark))
        _save(page, folder / f"{name}.png", whole=True)


def _inspector(browser: Browser, url: str, folder: Path) -> None:
    page = _asked(browser, url, 1440, 1000)
    _save(page, folder / "inspector.png")

    page = _asked(browser, url, 1440, 1000)
    page.get_by_label("Current thread", exact=True).select_option(label="porto-conference")
    page.get_by_label("Least cosine", exact=True).fill("0.2")
    page.get_by_label("Token budget", exact=True).fill("180")
    expect(page.locator("#tokens-of")).to_have_text("of 180 tokens")
    page.get_by_role("heading", level=1).click()
    _save(page, folder / "inspector-budget.png")

    page = _asked(browser, url, 1440, 1000, dark=True)
    page.locator("#threads").get_by_role("button").filter(has_text="recipes").click()
    expect(page.locator("#panel-thread .message")).not_to_have_count(0)
    _save(page, folder / "inspector-thread-dark.png")

    page = _asked(browser, url, 400, 1180)
    page.locator("#results").scroll_into_view_if_needed()
    page.evaluate("window.scrollTo(0, 372)")
    _save(page, folder / "inspector-narrow.png")

    page = _asked(browser, url, 1440, 1000)
    message = page.locator("#results .message").filter(has_text="Hotel Aurora")
    message.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.get_by_role("dialog", name="Forgotten")).to_be_visible()
    page.evaluate("window.scrollTo(0, 0)")
    _save(page, folder / "inspector-receipt.png")


def _asked(browser: Browser, url: str, width: int, height: int, *, dark: bool = False) -> Page:
    scheme = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = scheme.new_page()
    page.goto(url)
    page.locator("#resources").get_by_role("button", name=RESOURCE_ID).click()
    for _ in range(2):  # the second time everything is loaded, and the time shown is a usual one
        page.get_by_label("What does the user say now?").fill(QUERY)
        page.get_by_role("button", name="Recall", exact=True).click()
        expect(page.locator("#results .hit")).not_to_have_count(0)
        page.wait_for_timeout(500)
    return page


def _save(page: Page, path: Path, *, whole: bool = False) -> None:
    """Write what the page shows as a PNG of at most 255 colours, which is small."""
    page.wait_for_timeout(300)  # transitions
    picture = Image.open(BytesIO(page.screenshot(full_page=whole))).convert("RGB")
    picture.quantize(255, dither=Image.Dither.NONE).save(path, optimize=True)
    page.context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
