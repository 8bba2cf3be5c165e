"""What the page is told about messages and recalls. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from semantic_recall._scripts import CHUNKS, UNSPACED
from semantic_recall.formatting import as_chat_message
from semantic_recall.result import Recall
from semantic_recall.terms import text_terms
from semantic_recall.types import Message, RecalledMessage

TEXT_SHOWN = 20_000
"""Characters of a message that are sent to the page."""
BLOCK_SHOWN = 400_000
"""Characters of a prompt block that are sent to the page."""

_UNSPACED = re.compile(f"[{UNSPACED}]")

Part = tuple[str, bool]
"""A piece of a text, and whether it is a word of the query."""


def message_document(message: Message) -> dict[str, Any]:
    """Return a message for the page, a long text cut."""
    return {
        "id": message.id,
        "thread_id": message.thread_id,
        "resource_id": message.resource_id,
        "role": message.role,
        "name": message.name,
        "text": message.text[:TEXT_SHOWN],
        "characters": len(message.text),
        "created_at": message.created_at.isoformat(),
    }


def recall_document(recall: Recall) -> dict[str, Any]:
    """Return a recall for the page: what came, why, what did not, and what the prompt gets."""
    terms = frozenset(text_terms(recall.query).tolist())
    ranks = {id(hit): rank for rank, hit in enumerate(recall.hits, start=1)}
    same = {id(recalled) for recalled in recall.same_thread}
    return {
        "messages": [
            {
                **_recalled(recalled, terms),
                "rank": ranks.get(id(recalled)),
                "current": id(recalled) in same,
            }
            for recalled in recall
        ],
        "hits": len(recall.hits),
        "tokens": recall.tokens,
        "block": recall.text[:BLOCK_SHOWN],
        "block_characters": len(recall.text),
        "chat": [_chat(recalled) for recalled in recall.same_thread],
        "dropped": [{"reason": name, "count": count} for name, count in recall.dropped.items()],
        "timings": dict(recall.timings),
    }


def _recalled(recalled: RecalledMessage, terms: frozenset[int]) -> dict[str, Any]:
    document = message_document(recalled.message)
    return {
        **document,
        "parts": merged(parts(document.pop("text"), terms)),
        "is_hit": recalled.is_hit,
        "score": recalled.score,
        "dense": recalled.dense,
        "lexical": recalled.lexical,
    }


def _chat(recalled: RecalledMessage) -> dict[str, str]:
    message = as_chat_message(recalled)
    return {**message, "content": message["content"][:TEXT_SHOWN]}


def parts(text: str, terms: frozenset[int]) -> Iterator[Part]:
    """Yield a text in pieces, telling which of them a search for `terms` matches.

    A word matches when one of its terms does (its stem, or a part of an identifier). Of scripts
    written without spaces, pairs of characters match: a single one says too little.
    """
    end = 0
    for chunk in CHUNKS.finditer(text):
        yield text[end : chunk.start()], False
        end = chunk.end()
        word = chunk[0]
        if _UNSPACED.match(word):
            yield from _pairs(word, terms)
        else:
            yield word, not terms.isdisjoint(text_terms(word).tolist())
    yield text[end:], False


def _pairs(run: str, terms: frozenset[int]) -> Iterator[Part]:
    marked = [False] * len(run)
    for place in range(len(run) - 1):
        pair = run[place : place + 2]
        # The last term of two characters is the pair itself; the first two are the characters.
        if text_terms(pair).tolist()[-1] in terms:
            marked[place] = marked[place + 1] = True
    return zip(run, marked, strict=True)


def merged(pieces: Iterable[Part]) -> list[Part]:
    """Return pieces with neighbours of the same kind made one, and empty ones left out."""
    result: list[Part] = []
    for text, mark in pieces:
        if result and result[-1][1] == mark:
            result[-1] = (result[-1][0] + text, mark)
        elif text:
            result.append((text, mark))
    return result
