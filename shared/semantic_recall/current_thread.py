"""The end of the current thread: the query's own message, and what was said just before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semantic_recall.indexed_text import digest_number, indexed_text
from semantic_recall.protocols import MessageStore
from semantic_recall.scope_view import ScopeView
from semantic_recall.terms import text_terms
from semantic_recall.types import Scope

HEARD = 2
"""How many of the last messages are heard: a question and its answer. With more, what the thread
was about before outweighs what it is about now."""
_TERMS = 12
"""As many terms of a message are heard from its beginning, and as many from its end: long answers
name their subject there, and all of their words would drown it."""
_LOOKED_AT = 8
"""How many messages are read, to find the last that were spoken among those of tools."""
_SPOKEN = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class LastTurns:
    """What was said last in a thread."""

    terms: NDArray[np.uint32]
    """Hashed search terms of the last messages."""
    digests: NDArray[np.int64]
    """Those of the last messages, of the one before, which hears their words as its own, and of
    the query's own message, which hears them too."""


def last_turns(store: MessageStore, thread: Scope | None, own: int) -> LastTurns | None:
    """Return what was said last in a thread, or None when nothing was.

    Args:
        store: The truth.
        thread: The current thread; None when it is not known.
        own: The digest's number of the query as a message: it is not one of the last turns.
    """
    if thread is None:
        return None
    spoken = [
        message
        for message in store.history(thread, last=_LOOKED_AT)
        if message.role in _SPOKEN and message.text.strip()
    ][-HEARD - 2 :]
    digests = [digest_number(indexed_text(message)) for message in spoken]
    asked = digests[-1:] == [own]
    heard = spoken[-HEARD - 1 : -1] if asked else spoken[-HEARD:]
    if not heard:
        return None
    return LastTurns(
        np.concatenate([_ends(text_terms(message.text)) for message in heard]),
        np.array([own, *digests[-HEARD - 1 - asked :]], np.int64),
    )


def _ends(terms: NDArray[np.uint32]) -> NDArray[np.uint32]:
    if len(terms) <= 2 * _TERMS:
        return terms
    return np.concatenate((terms[:_TERMS], terms[-_TERMS:]))


def own_message(
    store: MessageStore, scope: Scope, view: ScopeView, own: int, thread: Scope | None
) -> int | None:
    """Return the key of the query's own message if it is stored: the last one of its thread."""
    if thread is None:
        return None
    ends = (np.append(view.starts[1:], len(view.keys)) - 1)[: len(view.starts)]
    for position in ends[view.digests[ends] == own].tolist():
        key = int(view.keys[position])
        message = store.fetch(scope, [key]).get(key)
        if message and Scope(message.resource_id, message.thread_id) == thread:
            return key
    return None
