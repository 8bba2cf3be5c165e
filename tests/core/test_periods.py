"""Which time a query asks about, and what it does to the ranking."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semantic_recall import SemanticRecall
from semantic_recall.periods import Asked, microseconds, time_asked_about

NOW = datetime(2026, 3, 15, 10, tzinfo=timezone.utc)
HALF_A_DAY = timedelta(hours=12)


def asked(query: str, newest: datetime = NOW) -> tuple[str, str] | None:
    """Return the first and the last day of the period, without the half days around it."""
    time = time_asked_about(query)
    period = None if time is None else time.period(NOW, newest)
    if period is None:
        return None
    first, end = period[0] + HALF_A_DAY, period[1] - HALF_A_DAY
    return f"{first:%Y-%m-%d}", f"{end - timedelta(days=1):%Y-%m-%d}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did I plant last May?", ("2025-05-01", "2025-05-31")),
        ("Where were we in JUNE 2024?", ("2024-06-01", "2024-06-30")),
        ("What did we decide on 5 March 2025?", ("2025-03-05", "2025-03-05")),
        ("What did she say on March 3rd?", ("2026-03-03", "2026-03-03")),
        ("what broke on Jan 5", ("2026-01-05", "2026-01-05")),
        ("What did I buy in late December?", ("2025-12-01", "2025-12-31")),
        ("Who called on 2025-06-14?", ("2025-06-14", "2025-06-14")),
        ("Who called in 2025-06?", ("2025-06-01", "2025-06-30")),
        ("Where did I live in 2023?", ("2023-01-01", "2023-12-31")),
        ("What did I ask yesterday?", ("2026-03-14", "2026-03-14")),
        ("What was it the day before yesterday?", ("2026-03-13", "2026-03-13")),
        ("Who wrote last month?", ("2026-02-01", "2026-02-28")),
        ("Who wrote last year?", ("2025-01-01", "2025-12-31")),
        ("What did I cook last week?", ("2026-03-01", "2026-03-10")),
        ("what did I cook two weeks ago", ("2026-02-26", "2026-03-04")),
        ("what did I cook 3 days ago", ("2026-03-12", "2026-03-12")),
        ("what did I cook a year ago", ("2025-01-01", "2025-12-31")),
        ("我去年五月去了哪里？", ("2025-05-01", "2025-05-31")),
        ("十二月发生了什么？", ("2025-12-01", "2025-12-31")),
        ("2024年3月2日我说了什么？", ("2024-03-02", "2024-03-02")),
        ("上个月我买了什么？", ("2026-02-01", "2026-02-28")),
        ("昨天的会议说了什么？", ("2026-03-14", "2026-03-14")),
        ("三个月前我在忙什么？", ("2025-11-30", "2025-12-29")),
        ("前年我住在哪里？", ("2024-01-01", "2024-12-31")),
        ("작년 10월에 나는 어디를 다쳤어?", ("2025-10-01", "2025-10-31")),
        ("올해 2월에 뭐 샀어?", ("2026-02-01", "2026-02-28")),
        ("3월 2일에 뭐라고 했지?", ("2026-03-02", "2026-03-02")),
        ("지난달에 뭐 샀어?", ("2026-02-01", "2026-02-28")),
        ("어제 뭐라고 했지?", ("2026-03-14", "2026-03-14")),
        ("2024년에 어디 살았어?", ("2024-01-01", "2024-12-31")),
    ],
)
def test_times_in_three_languages(query: str, expected: tuple[str, str]) -> None:
    assert asked(query) == expected


@pytest.mark.parametrize("month", range(1, 13))
def test_every_month_by_its_names(month: int) -> None:
    name = f"{datetime(2025, month, 1, tzinfo=timezone.utc):%B}"
    names = {name, name[:3]}
    names |= {f"{name[:3]}."} if name != "May" else set()
    names |= {"Sept", "Sept."} if name == "September" else set()
    day = f"{2025 if month > NOW.month else 2026}-{month:02}-03"
    for short in names:
        for query in (f"What did I buy on 3 {short}?", f"Who called on {short} 3rd?"):
            assert asked(query) == (day, day), query


@pytest.mark.parametrize(
    "query",
    [
        "Where do I work?",
        "When did April call?",
        "Where did Jan and June meet May?",
        "May I ask what we said?",
        "The march went well, didn't it?",
        "What changed since June?",
        "What should I pack in June?",
        "Where are we going to be in June?",
        "Which price holds from October?",
        "Is it 20 or 19 kg?",
        "五月天的歌我听了几年？",
        "我们打算六月去哪里？",
        "他三个月大了吗？",
        "다음 달 6월에 어디로 가?",
        "우리 집 최고령 식구는 올해 몇 살?",
        "",
    ],
)
def test_no_time_is_asked_about(query: str) -> None:
    assert asked(query) is None


def test_a_month_is_the_last_one_before_the_newest_message() -> None:
    assert asked("in June", datetime(2023, 8, 1, tzinfo=timezone.utc)) == (
        "2023-06-01",
        "2023-06-30",
    )
    assert asked("in June", datetime(2023, 5, 1, tzinfo=timezone.utc)) == (
        "2022-06-01",
        "2022-06-30",
    )


def test_a_day_that_does_not_exist_is_no_time() -> None:
    assert asked("what was on 31 June 2025?") is None
    assert asked("what was on 2025-13-45?") is None
    assert Asked(years_ago=5000).period(NOW, NOW) is None


@given(
    st.text(
        "0123456789年月日号월일년 前전個个周주last ago in of may june yesterday去昨", max_size=40
    )
)
def test_any_text_is_read(query: str) -> None:
    time = time_asked_about(query)
    if time is not None:
        marked = time.marks(np.array([0, microseconds(NOW)]), NOW)
        assert marked.shape == (2,)


def test_marks_are_the_messages_of_the_period() -> None:
    days = [datetime(2025, month, 10, tzinfo=timezone.utc) for month in (5, 6, 7)]
    times = np.array([microseconds(day) for day in days])
    assert Asked(month=6).marks(times, NOW).tolist() == [False, True, False]
    assert Asked(year=2024).marks(times, NOW).tolist() == [False, False, False]
    assert Asked(month=6).marks(times[:0], NOW).tolist() == []


def test_recall_prefers_what_was_said_at_the_time(tmp_path: Path) -> None:
    with SemanticRecall.open(tmp_path, embedder=None) as memory:
        for month, year in ((5, 2024), (8, 2024), (5, 2025), (8, 2025)):
            memory.remember(
                {
                    "role": "user",
                    "content": f"went hiking near lake number {month * year}",
                    "id": f"{year}-{month}",
                    "created_at": datetime(year, month, 10, tzinfo=timezone.utc),
                },
                thread_id=f"{year}-{month}",
                resource_id="ann",
            )

        def first(query: str) -> str:
            return memory.recall(query, resource_id="ann", top_k=1).hits[0].message.id

        assert first("Where did I go hiking in May 2024?") == "2024-5"
        assert first("Where did I go hiking last May?") == "2025-5"
        assert first("我2024年8月 hiking 去了哪里？") == "2024-8"
        # It is a preference and no filter.
        recall = memory.recall("Where did I go hiking in May 2024?", resource_id="ann", top_k=4)
        assert len(recall.hits) == 4
