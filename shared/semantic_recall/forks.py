"""What a forked child needs: locks that somebody can release, and no half-made changes."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Renewable(Protocol):
    """Something with locks."""

    def renew(self) -> None:
        """Begin anew, with locks that nobody holds."""
        ...


_renewed: weakref.WeakSet[Renewable] = weakref.WeakSet()

IMPORTING = threading.RLock()
"""Held while drivers are imported in the background: a fork waits for it. In the middle of an
import, it would leave the child the lock of a module, and nobody to release it."""


def renew_in_child(thing: Renewable) -> None:
    """Call `thing.renew` in each forked child, where other threads' locks stay locked."""
    _renewed.add(thing)


def _after_fork_in_child() -> None:
    IMPORTING.release()
    for thing in list(_renewed):
        thing.renew()


if os.name == "posix":
    os.register_at_fork(
        before=IMPORTING.acquire,
        after_in_parent=IMPORTING.release,
        after_in_child=_after_fork_in_child,
    )
