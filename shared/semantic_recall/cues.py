"""What a query says about where its answer stands, read from its wording.

English and Chinese; a query in another language gives no cue, which costs nothing.
"""

from __future__ import annotations

import re
from typing import Literal

_LONGEST = 2_000
"""Characters that are read: a pasted document is no question about a conversation."""

_TELLING = (
    "recommend|suggest|advise|tell|told|say|said|mention|offer|propose|explain|give|gave|answer|"
    "write|wrote"
)
_OF_ASSISTANT = (
    re.compile(
        rf"\b(?:you|u)\b(?: \w+){{0,2}} (?:{_TELLING})"
        r"|\byour (?:advice|suggestion|recommendation|answer|opinion|reply)"
    ),
    # "you" that tells, not "you" that is told ("I shared with you", "I told you").
    re.compile(
        "(?<![和给向跟与])(?<!告诉)(?<!过)你.{0,4}(?:推荐|建议|说|告诉|介绍|提到|给|回答|教)"
    ),
)
_OF_USER = re.compile(r"\b(?:i|my|me|mine)\b|我")
_ADVICE = re.compile(
    r"\b(?:can|should|could|would|shall) (?:i|we)\b|\bhow (?:do|to|would)\b|怎么|如何|应该|能不能"
)


def role_asked_about(query: str) -> Literal["user", "assistant"] | None:
    """Return whose messages a query asks about.

    "What did you suggest?" is about the assistant's, "Where do I work?" about the user's; "How do
    I install it?" asks for advice and gives no cue.
    """
    query = query[:_LONGEST].lower()  # patterns that ignore case take four times as long
    english, chinese = _OF_ASSISTANT
    if english.search(query) or (not query.isascii() and chinese.search(query)):
        return "assistant"
    if _OF_USER.search(query) and not _ADVICE.search(query):
        return "user"
    return None
