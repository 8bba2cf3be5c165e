"""Tells whether a query is a follow-up: whether it leaves out what it is about.

"And what did she charge?", "那次赔了多少？", "얼마였지?" say little to who has not heard what came
before. Read from the wording alone, in English, Chinese and Korean; a query in another language
is hardly ever taken for one, which costs nothing.
"""

from __future__ import annotations

import re

from semantic_recall.terms import text_terms

_LONGEST = 100
"""Characters. Who writes more says what it is about."""
_OWN_TERMS = 5
"""Up to so many different terms of its own a follow-up in English has."""
_FACT_TERMS = 2
"""As many has one that asks for yes or no: it states the fact, so more of them tell enough."""
_OPENED_WORDS = 5
"""Up to so many words after "and" or "what about" say no more than whom or what is meant now."""
_KOREAN_WORDS = 6
_REPLYING_KOREAN_WORDS = 4
_CHINESE_CHARACTERS = 20
_REPLYING_CHINESE_CHARACTERS = 12

_REPLIES = (
    "yes|yeah|yep|no|nope|right|ok|okay|sure|true|exactly|indeed|haha|lol|maybe|perhaps|probably|"
    "of course|no idea|thanks|thank you|great|nice|good|fine|cool|well|hm|hmm|oh|ah"
)
_REPLY = re.compile(rf"(?:(?:{_REPLIES})\s*[,.!:;…]+\s*)+")
"""An answer to what was just said: what comes after it goes on from there."""
_OPENINGS = "and|but|so|or|then|also|what about|how about"
_OPENING = re.compile(rf"(?:{_OPENINGS})\b")
_POINTERS = "he|she|it|they|him|her|hers|his|its|them|their|theirs"
_POINTING = re.compile(
    rf"\b(?:(?:{_POINTERS})\b"
    r"|(?:is|was|were|are|of|for|about|with|after|before|to|like|did) (?:that|those|this|these)\b"
    r"|(?:that|again)[?.!]*\Z|(?:first|second|last|other) one\b|instead of\b)"
    # "Where is it there?", but not "Is there any ...?".
    r"|(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere(?:[?.!,]|\Z)"
)
_FIRST = frozenset(f"{_REPLIES}|{_OPENINGS}".split("|"))
_FIRST_TWO = tuple(words for words in _FIRST if " " in words)
_ANYWHERE = frozenset(
    word + end
    for word in (*_POINTERS.split("|"), "that", "those", "this", "these", "there", "one", "again")
    for end in ("", "?", ".", "!", ",", "'s")
) | {"instead"}
"""Without one of these, as most queries are, the patterns need not be tried: they are slower."""
_NAMED = re.compile(
    r"(?<=[\w,;:)] )(?:[A-Z][^\W_]|[A-Z]{2})|(?<!\w)[\"“”'‘](?=\w)|\d|[_`/@=]|[a-z][A-Z]"
)
"""A name, a number, an identifier or a quotation: the query says what it is about."""
_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|might)\b"
)
_HOW_MANY = re.compile(r"\bhow \w+")
_CLAUSE = re.compile(r"[,;:]|\band\b")

_KOREAN = re.compile("[\uac00-\ud7a3]")
_KOREAN_REPLY = re.compile(
    "(?:(?:응|네|아니|그래|맞아|괜찮아|모르겠어|좋아|글쎄|어|ㅋ+|ㅎ+)[\\s,.!~]+)+"
)
_KOREAN_POINTING = re.compile(
    "(?:^|\\s)(?:걔|얘(?!기)|쟤|그(?:때|거|것|날|분|건|게|쪽|녀|곳| 사람| 친구))"
    "|(?:^|\\s)(?:거기|거긴|저번|지난번)"
    # A question that begins with its question word has no subject.
    "|^(?:근데 |그럼 |그리고 )?(?:얼마|어디|언제|누구|누가|뭐|뭘|몇|왜|어떻게|어느)"
)
_CHINESE = re.compile("[\u4e00-\u9fff]")
_CHINESE_REPLY = re.compile(
    "(?:对啊?|嗯+|好的?|是的?|没有?|不是|不错|还行吧?|喜欢|哈哈+|可能|也许|不知道)[，。！,. ]+"
)
_KANA = re.compile("[\u3040-\u30ff]")
_CHINESE_POINTING = re.compile(
    "(?<![其吉])他|[她它]|^那(?!个)|(?<!的)那(?:边|里|儿|次|时|天|家)|后来"
    "|^(?:到底|究竟|具体)?是?(?:什么时候|哪[天年月里儿]|多少|几[点号月]|在哪|为什么|怎么)"
)


def is_follow_up(query: str) -> bool:
    """Return whether a query leaves out what it is about, so that the last turns must tell."""
    if len(query) > _LONGEST:
        return False
    if query.isascii():
        return _english(query)
    if _KOREAN.search(query):
        return _korean(query)
    if _CHINESE.search(query):
        return not _KANA.search(query) and _chinese(query)
    return _english(query)


def _english(query: str) -> bool:
    low = query.lower()
    words = low.split()
    first = words[0].rstrip(",.!:;…") if words else ""
    if _ANYWHERE.isdisjoint(words) and first not in _FIRST and not low.startswith(_FIRST_TWO):
        return False
    reply = _REPLY.match(low)
    start = reply.end() if reply else 0
    opening = _OPENING.match(low, start)
    pointing = None if reply or opening else _POINTING.search(low)
    if not (reply or opening or pointing):
        return False
    if opening and len(words) <= _OPENED_WORDS:
        return True  # "What about Wim?": the name is all that it says
    most = _FACT_TERMS if _YES_OR_NO.match(low, start) else _OWN_TERMS
    if _NAMED.search(query, start) or _terms(low[start:]) > most:
        return False
    if pointing is None:
        return True
    # "What breed is our dog and where had she been?": what "she" points at was said before it.
    before = _HOW_MANY.sub("", low[: pointing.start()])
    at_the_end = not low[pointing.end() :].strip("?.! ")
    said = _terms(before)
    return said == 0 or (said <= 1 + at_the_end and not _CLAUSE.search(before))


def _korean(query: str) -> bool:
    reply = _KOREAN_REPLY.match(query)
    rest = query[reply.end() :] if reply else query
    words = len(rest.split())
    if reply and words <= _REPLYING_KOREAN_WORDS:
        return True
    return words <= _KOREAN_WORDS and bool(_KOREAN_POINTING.search(rest))


def _chinese(query: str) -> bool:
    reply = _CHINESE_REPLY.match(query)
    rest = query[reply.end() :] if reply else query
    if reply and len(rest) <= _REPLYING_CHINESE_CHARACTERS:
        return True
    pointing = _CHINESE_POINTING.search(rest)
    return (
        pointing is not None
        and len(rest) <= _CHINESE_CHARACTERS
        and "，" not in rest[: pointing.start()]
    )


def _terms(text: str) -> int:
    return len(set(text_terms(text).tolist()))
