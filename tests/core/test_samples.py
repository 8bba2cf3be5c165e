"""The shipped conversations and the questions to them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import pairwise

from semantic_recall.importers import read
from semantic_recall.samples import RESOURCE_ID, conversations, questions
from semantic_recall.types import Message


def messages() -> list[Message]:
    with conversations() as path:
        found = list(read(path))
    assert all(isinstance(item, Message) for item in found)
    return [item for item in found if isinstance(item, Message)]


def has_script(text: str, name: str) -> bool:
    return any(unicodedata.name(letter, "").startswith(name) for letter in text)


def test_they_are_what_the_documentation_says() -> None:
    all_ = messages()
    assert len(all_) == 200
    assert Counter(one.resource_id for one in all_) == {RESOURCE_ID: 190, "oskar": 10}
    threads = {(one.resource_id, one.thread_id) for one in all_}
    assert len([thread for thread in threads if thread[0] == RESOURCE_ID]) == 14
    assert len({one.id for one in all_}) == 200
    span = max(one.created_at for one in all_) - min(one.created_at for one in all_)
    assert span.days > 240
    assert {one.role for one in all_} == {"user", "assistant"}
    korean = {one.thread_id for one in all_ if has_script(one.text, "HANGUL")}
    chinese = {one.thread_id for one in all_ if has_script(one.text, "CJK UNIFIED")}
    assert (korean, chinese) == ({"mum-sixtieth"}, {"chinese-class"})


def test_time_runs_forward_inside_a_thread_and_turns_alternate() -> None:
    for before, after in pairwise(messages()):
        if before.thread_id == after.thread_id:
            assert before.created_at < after.created_at
            assert before.role != after.role


def test_each_question_has_its_answer_in_its_own_resource() -> None:
    owners = {one.id: one.resource_id for one in messages()}
    asked = questions()
    assert len(asked) >= 12
    assert {one.language for one in asked} == {"en", "zh", "ko"}
    assert len({one.id for one in asked}) == len(asked)
    for question in asked:
        assert question.answers
        assert {owners[answer] for answer in question.answers} == {question.resource_id}
