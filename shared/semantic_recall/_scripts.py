"""Which characters make words, and how the words of each script are cut."""

from __future__ import annotations

import re

# Scripts written without spaces between words: Han, kana, Hangul (spaces, but endings grow on the
# words), Thai, Lao, Burmese, Khmer. Their runs become characters and character bigrams.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3031-\u3035\u3040-\u30ff"
    "\u3105-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff"
    "\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)

# Marks inside words that `\w` does not match: combining accents, Hebrew and Arabic points, the
# vowel signs and viramas of the scripts of India.
_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd"
    "\u0a01-\u0a03\u0a3c-\u0a4d\u0a70\u0a71\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57"
    "\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03"
    "\u0d3b-\u0d57\u0d81-\u0d83\u0dca-\u0df3\u200c\u200d"
)

_JOINTS = "[.,:@'’\\-]"
"""Characters that may stand inside an e-mail address, a number, an identifier, a contraction."""

_WORD = f"[^\\W{UNSPACED}]+(?:[{_MARKS}]+[^\\W{UNSPACED}]*)*"

ASCII_CHUNKS = re.compile(r"[A-Za-z0-9_]+(?:[.,:@'\-][A-Za-z0-9_]+)*")
"""The chunks of a text that is all ASCII; the same as `CHUNKS` there, and faster."""

CHUNKS = re.compile(f"[{UNSPACED}]+|{_WORD}(?:{_JOINTS}{_WORD})*")
"""Runs of an unspaced script, or words with what joins them to one identifier."""

_STEMMERS = (
    # first letter from, to, Snowball algorithm; Latin script is taken as English
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u04ff", "russian"),
    ("\u0530", "\u058f", "armenian"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "hindi"),
    ("\u0b80", "\u0bff", "tamil"),
)


def stemmer_of(word: str) -> str:
    """Return the name of the Snowball algorithm for a word, by the script of its first letter."""
    first = word[:1]
    if first >= "\u0370":
        for low, high, name in _STEMMERS:
            if low <= first <= high:
                return name
    return "english"


# Short on purpose. Question words are in it, because in a message they say nothing about its
# topic ("when I was ..."), and so are the words that only carry a sentence. Words that a question
# can be about are not: "first", "last", "name", "new", "time", "old", "no", "never", "more".
_STOP_WORDS = """
a an the this that these those and or but if so than then as of at by for with from to in on
into about i me my mine myself we us our ours you your yours yourself he him his she her hers
it its itself they them their theirs am is are was were be been being do does did done doing
have has had having can could will would shall should may might must
what which who whom whose when where why how there here not just too very also
s t m d re ve ll
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
