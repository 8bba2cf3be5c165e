"""A headless Chromium, and the inspector served to it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, sync_playwright

from semantic_recall import SemanticRecall
from semantic_recall.inspector import Inspector

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

_ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a Chromium without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def inspected(memory: SemanticRecall, name: str = "memory") -> Iterator[Inspector]:
    """Serve the inspector of a memory from another thread."""
    with Inspector(memory, name=name) as inspector:
        thread = threading.Thread(target=inspector.run)
        thread.start()
        try:
            yield inspector
        finally:
            inspector.stop()
            thread.join()


class Watched:
    """A page, and all that it did that it should not.

    Args:
        page: The page; watched from now on.
    """

    def __init__(self, page: Page) -> None:
        self.page = page
        self.addresses: list[str] = []
        self.problems: list[str] = []
        page.on("request", lambda request: self.addresses.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("console", self._console)

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, said: ConsoleMessage) -> None:
        # A refused call is none: the page says what it was told.
        refused = "server responded with a status of 40" in said.text
        if said.type in ("error", "warning") and not refused:
            self.problems.append(f"{said.type}: {said.text}")

    def assert_harmless(self, origin: str) -> None:
        """Nothing ran, nothing failed, and nothing was asked of anybody but `origin`."""
        elsewhere = [one for one in self.addresses if not one.startswith(origin)]
        assert not self.problems, self.problems
        assert not elsewhere, elsewhere
        assert self.page.evaluate("window.hacked") is None
