"""Which time a query asks about: "in June", "last week", "去年五月", "2025년 3월".

English, Chinese and Korean; a query in another language names none, which costs nothing. Only the
past counts, and only a stretch with two ends ("since June" is most of a memory).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LONGEST = 2_000
"""Characters that are read: a pasted document is no question about a time."""
_SLACK = timedelta(hours=12)
"""Nobody says in which time zone a "yesterday" began."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SHORT = "jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
_LONG = "january|february|march|april|may|june|july|august|september|october|november|december"
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"((?:19|20)\d\d)"

_HINTS = (
    "last ", " ago", "yesterday", "19", "20",
    *"年月周前昨년월달", "지난", "어제", "그제", "그저께", "작년", "전",
)  # fmt: skip
_MONTH_NAMES = re.compile(rf"\b(?:{_LONG}|{_SHORT})\b")
"""One of the hints or names is in every query that names a time, and in few others: to look for
them takes two microseconds, to look for times ten more."""
_FUTURE = re.compile(
    r"\b(?:will|shall|should|could|would|can|going to|gonna|next|upcoming|plan(?:ning)? to)\b"
    r"|打算|应该|能不能|下个?[周月]|明年|다음|내년|할까|갈까"
)
_OPEN_ENDED = re.compile(r"\b(?:since|from|until|till|before|after|by|this)\s+(?:the\s+)?\Z")

# A month needs a word before it or a number beside it: April, May and June are people too.
_ENGLISH = re.compile(
    rf"\b(?:{_DAY}\s+(?:of\s+)?)?(?:(in|during|last|of|early|late|mid)[\s-]+)?"
    rf"(?:({_LONG})|({_SHORT})\.?)(?:\s+{_DAY}(?!\d))?(?:,?\s+(?:of\s+)?{_YEAR})?\b"
)
_YEAR_ALONE = re.compile(rf"\b(?:in|during|of)\s+{_YEAR}\b")
_ISO = re.compile(rf"\b{_YEAR}-(\d\d)(?:-(\d\d))?\b")
_NUMERAL = "[一二三四五六七八九]|十[一二]?"
_CJK_DATE = re.compile(
    rf"(?:{_YEAR}[年년]|(去年|前年|今年|작년|재작년|지난해|올해))?\s*的?"
    rf"(\d{{1,2}}|{_NUMERAL})[月월](?!天)(?:\s*(\d{{1,2}})[日号일])?"
)
_CJK_YEAR = re.compile(rf"{_YEAR}[年년]|(去年|前年|작년|재작년|지난해)")
_YEARS_AGO = {"今年": 0, "올해": 0, "去年": 1, "작년": 1, "지난해": 1, "前年": 2, "재작년": 2}

_SPANS = (
    # (pattern, days from its beginning and from its end to today's beginning); the longer first
    (re.compile(r"\bday before yesterday\b|前天|그저께|그제"), 2, 1),
    (re.compile(r"\byesterday\b|\blast night\b|昨天|昨晚|어제|어젯밤"), 1, 0),
    (re.compile(r"\blast week\b|上个?(?:周|星期|礼拜)|(?:지난|저번) ?주"), 14, 4),
)
_LAST_MONTH = re.compile(r"\blast month\b|上个?月|(?:지난|저번) ?달")
_LAST_YEAR = re.compile(r"\blast year\b")
_AGO = re.compile(
    r"\b(\d{1,3}|an?|one|two|three|four|five|six|(?:a )?couple of|a few)"
    r" (day|week|month|year)s? ago\b"
    r"|(\d{1,3}|[一二两三四五六七八九十]) ?个?(天|周|星期|月|年)(?:之|以)?前"
    r"|(\d{1,3}) ?(일|주|달|개월|년) ?전"
)
_COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6,
    "couple of": 2, "a couple of": 2, "a few": 3, "两": 2, "十": 10, "十一": 11, "十二": 12,
    **{numeral: number for number, numeral in enumerate("一二三四五六七八九", 1)},
}  # fmt: skip
_UNITS = {
    "day": 1, "天": 1, "일": 1, "week": 7, "周": 7, "星期": 7, "주": 7,
    "month": 30, "月": 30, "달": 30, "개월": 30, "year": 365, "年": 365, "년": 365,
}  # fmt: skip


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def microseconds(moment: datetime) -> int:
    """Return whole microseconds since 1970 in UTC, the unit of `ScopeView.created_at`."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


class Asked(NamedTuple):
    """The time that a query names, as far as it says it."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    years_ago: int | None = None
    months_ago: int | None = None
    days_ago: tuple[int, int] | None = None
    """From how many days before today until how many; 0 is the beginning of today."""

    def period(self, now: datetime, newest: datetime) -> tuple[datetime, datetime] | None:
        """Return the beginning and the end, with half a day on each side; None: no such day.

        Args:
            now: What "yesterday" is measured from; aware.
            newest: The time of the newest message: "in June" is the last June before it.
        """
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        try:
            if self.days_ago is not None:
                first, end = (today - timedelta(days=days) for days in self.days_ago)
            elif self.months_ago is not None:
                months = today.year * 12 + today.month - 1 - self.months_ago
                first, end = _month(today, months // 12, months % 12 + 1)
            else:
                first, end = self._calendar(today, newest)
            return first - _SLACK, end + _SLACK
        except (ValueError, OverflowError):  # 31 June; a year before 1
            return None

    def marks(self, times: NDArray[np.int64], now: datetime) -> NDArray[np.bool_]:
        """Return which of `times` (n,), in microseconds since 1970, are in the period."""
        newest = _EPOCH + timedelta(microseconds=int(times.max(initial=0)))
        period = self.period(now, newest)
        if period is None:
            return np.zeros(len(times), np.bool_)
        first, end = map(microseconds, period)
        within: NDArray[np.bool_] = (times >= first) & (times < end)
        return within

    def _calendar(self, today: datetime, newest: datetime) -> tuple[datetime, datetime]:
        year = self.year
        if year is None and self.years_ago is not None:
            year = today.year - self.years_ago
        if year is None:
            year = newest.year - ((self.month or 1) > newest.month)
        if self.month is None:
            return _month(today, year, 1)[0], _month(today, year + 1, 1)[0]
        first, end = _month(today, year, self.month)
        if self.day is None:
            return first, end
        day = first.replace(day=self.day)
        return day, day + timedelta(days=1)


def time_asked_about(query: str) -> Asked | None:
    """Return the past time that a query names; None when it names none, or a time to come."""
    query = query[:_LONGEST].lower()
    hinted = any(map(query.__contains__, _HINTS)) or _MONTH_NAMES.search(query)
    if not hinted or _FUTURE.search(query):
        return None
    return _relative(query) or _date(query)


def _relative(query: str) -> Asked | None:
    if match := _AGO.search(query):
        count, unit = (group for group in match.groups() if group)
        return _ago(_number(count), _UNITS[unit])
    for pattern, far, near in _SPANS:
        if pattern.search(query):
            return Asked(days_ago=(far, near))
    if _LAST_MONTH.search(query):
        return Asked(months_ago=1)
    return Asked(years_ago=1) if _LAST_YEAR.search(query) else None


def _ago(count: int, unit: int) -> Asked:
    if unit == 365:
        return Asked(years_ago=count)
    # "Three weeks ago" is said of a day about then.
    return Asked(days_ago=(count * unit + unit // 2, count * unit - unit // 2 - unit % 2))


def _date(query: str) -> Asked | None:
    if match := _ISO.search(query):
        return Asked(int(match[1]), int(match[2]), _int(match[3]))
    for match in _ENGLISH.finditer(query):
        day, word, name, short, day_after, year = match.groups()
        told = day or day_after or year or (word and name)
        if told and not _OPEN_ENDED.search(query, 0, match.start()):
            month = _MONTHS.index((name or short)[:3]) + 1
            return Asked(_int(year), month, _int(day or day_after))
    if match := _CJK_DATE.search(query):
        year, ago, named, day = match.groups()
        years_ago = _YEARS_AGO[ago] if ago else None
        return Asked(_int(year), _number(named), _int(day), years_ago)
    if match := _CJK_YEAR.search(query):
        return Asked(_int(match[1]), years_ago=None if match[1] else _YEARS_AGO[match[2]])
    match = _YEAR_ALONE.search(query)
    return Asked(int(match[1])) if match else None


def _month(like: datetime, year: int, month: int) -> tuple[datetime, datetime]:
    first = like.replace(year=year, month=month, day=1)
    return first, (first + timedelta(days=32)).replace(day=1)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else _COUNTS[text]


def _int(text: str | None) -> int | None:
    return int(text) if text else None
