"""A headless Chromium, and the inspector served to it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

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
        page.on("dialog", lambda dialog: self._dialog(dialog.message, dialog.dismiss))
        page.on(
            "console",
            lambda said: (
                self.problems.append(f"{said.type}: {said.text}")
                if said.type in ("error", "warning")
                else None
            ),
        )

    def _dialog(self, message: str, dismiss: object) -> None:
        self.problems.append(f"dialog: {message}")
        assert callable(dismiss)
        dismiss()

    def assert_harmless(self, origin: str) -> None:
        """Nothing ran, nothing failed, and nothing was asked of anybody but `origin`."""
        assert self.problems == []
        assert [one for one in self.addresses if not one.startswith(origin)] == []
        assert self.page.evaluate("window.hacked") is None
