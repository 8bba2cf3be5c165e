import os
import subprocess
import sys

import pytest

from semantic_recall import formatting
from semantic_recall.formatting import (
    ELLIPSIS,
    PREAMBLE,
    as_chat_message,
    format_block,
)
from tests.core.blocks import parse, recalled


def test_the_block_is_what_the_documentation_shows() -> None:
    block = format_block(
        [
            recalled("I would like to go to Porto.\nOr to Braga.", thread="trip"),
            recalled("Is {budget} set?", thread="b-2", name="Ann", role="user", minutes=1),
            recalled("Both are an hour apart.", role="assistant", thread="trip", minutes=2),
        ]
    )
    fence = block.splitlines()[1].strip("<>")
    assert block == (
        f"{PREAMBLE}\n"
        f"<{fence}>\n"
        'Conversation "trip"\n'
        "[2024-02-28T09:30Z] user: I would like to go to Porto.\n"
        "    Or to Braga.\n"
        "[2024-02-28T09:32Z] assistant: Both are an hour apart.\n"
        "\n"
        'Conversation "b-2"\n'
        "[2024-02-28T09:31Z] Ann (user): Is {budget} set?\n"
        f"</{fence}>"
    )


def test_nothing_gives_nothing() -> None:
    assert format_block([]) == ""
    assert format_block([], limit=0) == ""


def test_the_same_thread_id_of_two_resources_is_two_conversations() -> None:
    messages = [recalled("a", resource="u1"), recalled("b", resource=None)]
    assert format_block(messages).count('Conversation "t1"') == 2


def test_the_token_depends_on_content_and_secret_alone() -> None:
    one, same, other = (format_block([recalled(text)]) for text in ("a", "a", "b"))
    assert one == same
    assert one.splitlines()[1] != other.splitlines()[1]
    assert format_block([recalled("a")], secret=b"s").splitlines()[1] != one.splitlines()[1]


def test_a_token_that_the_text_holds_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "_TOKEN_LENGTH", 1)
    for free in "bdf":  # digits and the other letters stand in every block
        block = format_block([recalled("0123456789ABCDEF".replace(free.upper(), ""))])
        assert block.endswith(f"-{free}>")


def test_times_are_utc_whatever_the_locale_and_zone() -> None:
    script = (
        "from datetime import datetime, timezone\n"
        "from semantic_recall.formatting import format_block\n"
        "from semantic_recall.types import Message, RecalledMessage\n"
        "m = Message(role='user', text='März', thread_id='t', id='1',"
        " created_at=datetime(2024, 3, 1, 0, 15))\n"
        "import sys\n"
        "sys.stdout.buffer.write("
        "format_block([RecalledMessage(message=m, is_hit=True)]).encode())"
    )
    blocks = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "TZ": zone, "LC_ALL": locale, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for zone, locale, seed in [
            ("America/Los_Angeles", "C", "1"),
            ("Asia/Kathmandu", "C.UTF-8", "2"),
            ("UTC", "de_DE.UTF-8", "3"),
        ]
    }
    assert len(blocks) == 1
    assert b"[2024-03-01T00:15Z] user: M\xc3\xa4rz" in blocks.pop()


# -- cutting ---------------------------------------------------------------------------------------


def test_neighbours_and_low_scores_go_first() -> None:
    messages = [
        recalled("neighbour " * 5, hit=False, score=0.9),
        recalled("low score " * 5, score=0.2, minutes=1),
        recalled("high score " * 5, score=0.8, minutes=2),
    ]
    whole = format_block(messages)
    texts = [text for *_, text in parse(format_block(messages, limit=len(whole) - 1))]
    assert [text[:4] for text in texts] == ["low ", "high"]
    shorter = format_block(messages, limit=len(whole) - 90)
    assert [text[:4] for *_, text in parse(shorter)] == ["high"]


def test_the_last_message_is_cut_by_characters_and_marked() -> None:
    block = format_block([recalled("word " * 1000)], limit=500)
    [(*_, text)] = parse(block)
    assert 480 <= len(block) <= 500
    assert text.endswith(f"word{ELLIPSIS}") or text.endswith(ELLIPSIS)


def test_every_limit_is_kept_and_used() -> None:
    messages = [recalled("one " * 9), recalled("two " * 9, score=0.9), recalled("three", hit=False)]
    whole = len(format_block(messages))
    sizes = [len(format_block(messages, limit=limit)) for limit in range(whole + 1)]
    assert all(size <= limit for limit, size in enumerate(sizes))
    assert sizes[whole] == whole
    assert sizes == sorted(sizes)


def test_a_limit_below_the_fence_gives_nothing() -> None:
    assert format_block([recalled("hello")], limit=100) == ""
    assert format_block([recalled("hello")], limit=-1) == ""


def test_the_limit_is_in_the_unit_of_its_measure() -> None:
    def words(text: str) -> int:
        return len(text.split())

    block = format_block([recalled("word " * 1000)], limit=60, measure=words)
    assert words(block) == 60


# -- chat messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "text", "expected"),
    [
        ("user", "hi", {"role": "user", "content": "hi"}),
        ("human", "hi", {"role": "user", "content": "hi"}),
        ("assistant", "hi", {"role": "assistant", "content": "hi"}),
        ("ai", "hi", {"role": "assistant", "content": "hi"}),
        ("system", "obey", {"role": "user", "content": "system: obey"}),
        ("developer", "obey", {"role": "user", "content": "developer: obey"}),
        ("tool", "42", {"role": "user", "content": "tool: 42"}),
        ("a\nb", "x", {"role": "user", "content": '"a\\nb": x'}),
        ("user", "a\ud800{b}", {"role": "user", "content": "a\ufffd{b}"}),
    ],
)
def test_chat_messages_have_a_safe_role_and_encode(
    role: str, text: str, expected: dict[str, str]
) -> None:
    message = as_chat_message(recalled(text, role=role))
    assert message == expected
    message["content"].encode()
