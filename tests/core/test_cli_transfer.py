"""`import` and `export`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from semantic_recall import Message, SemanticRecall
from semantic_recall.opening import INDEX_FOLDER
from semantic_recall.samples import conversations
from tests.core.cli_support import run, run_json, said, start, write_lines

HASH = ("--embedder", "hash")


def stored(path: Path) -> list[Message]:
    with SemanticRecall.open(path, embedder=None) as memory:
        return list(memory.messages())


def test_import_stores_and_says_so_and_twice_changes_nothing(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "chat.jsonl", said("one"), said("two"))
    path = tmp_path / "memory"
    first = run("import", file, "--path", path, *HASH)
    assert "2 messages stored in" in first.stdout
    assert "(2 new)" in first.stdout
    before = stored(path)
    again = run_json("import", file, "--path", path, *HASH)
    assert (again["messages"], again["new"], again["skipped"], again["pending"]) == (2, 0, 0, 0)
    assert again["format"] == "jsonl"
    assert stored(path) == before


def test_bad_records_are_named_and_the_rest_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    good = json.dumps(said("fine"))
    file.write_bytes(f'{good}\n{{"role":\n{good}\n'.encode() + b'{"role":"user","content":"\xff"}')
    path = tmp_path / "memory"
    result = run("import", file, "--path", path, *HASH, code=3)
    assert "warning: 2 records skipped:" in result.stderr
    assert "line 2: not JSON" in result.stderr
    assert "line 4: not UTF-8" in result.stderr
    assert len(stored(path)) == 2
    document = run_json("import", file, "--path", path, *HASH, code=3)
    assert [one["line"] for one in document["reasons"]] == [2, 4]


def test_only_the_first_reasons_are_shown_but_all_counted(tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps(said("a")) + "\n" + "[]\n" * 50, encoding="utf-8")
    result = run("import", file, "--path", tmp_path / "memory", *HASH, code=3)
    assert "50 records skipped" in result.stderr
    assert result.stderr.count("  line ") == 20
    assert "and 30 more" in result.stderr


def test_openai_list_takes_its_thread_from_the_file_and_its_owner_from_the_option(
    tmp_path: Path,
) -> None:
    file = tmp_path / "holiday.json"
    file.write_text('{"messages":[{"role":"user","content":"Porto"}]}', encoding="utf-8")
    path = tmp_path / "memory"
    document = run_json("import", file, "--path", path, "--resource", "mina", *HASH)
    assert document["format"] == "openai"
    run("import", file, "--path", path, "--thread", "other", "--format", "openai", *HASH)
    assert [(one.thread_id, one.resource_id) for one in stored(path)] == [
        ("holiday", "mina"),
        ("other", None),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "cannot be read"), ("", "is empty"), ("hello", "Known formats: chatgpt")],
)
def test_a_file_that_is_none_is_one_line_and_makes_no_memory(
    content: str | None, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    result = run("import", file, "--path", tmp_path / "memory", *HASH, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "memory").exists()


def test_more_than_one_batch(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "chat.jsonl", *(said(f"message number {i}") for i in range(2_500))
    )
    document = run_json("import", file, "--path", tmp_path / "memory", *HASH)
    assert (document["messages"], document["new"], document["pending"]) == (2_500, 2_500, 0)
    texts = [one.text for one in stored(tmp_path / "memory")]
    assert texts == [f"message number {i}" for i in range(2_500)]


def test_a_broken_vector_index_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.mkdir()
    (path / INDEX_FOLDER).write_text("in the way", encoding="utf-8")
    file = write_lines(tmp_path / "chat.jsonl", said("red apples"), said("pears"))
    result = run("import", file, "--path", path, *HASH)
    assert "2 messages stored" in result.stdout
    assert "warning: " in result.stderr
    assert "2 changes not in the vector index yet" in result.stderr
    document = run_json("search", "apples", "--path", path, *HASH, "-k", "1")
    assert document["messages"][0]["content"] == "red apples"


STRANGE = [
    said("plain", id="1"),
    said("nul \x00, escape \x1b[31m, surrogate \ud800, [bold]markup[/bold], 안녕 你好", id="2"),
    said("", id="3", name="bot", metadata={"tags": ["a", "b"], "n": 1.5, "deep": {"x": None}}),
    {"role": "assistant", "content": None, "thread_id": "t", "id": "4", "tool_calls": [{"id": 1}]},
    said("other thread\nwith lines\r\n", id="1", thread_id="u/%_:", created_at="1969-12-31"),
    said("no owner", id="1", resource_id=None, created_at="2024-02-29T23:59:59.999999Z"),
]


def test_export_and_import_give_the_same_memory(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    run("import", write_lines(tmp_path / "chat.jsonl", *STRANGE), "--path", first, *HASH)
    exported = tmp_path / "export.jsonl"
    result = run("export", "--path", first, "--output", exported)
    assert result.stdout == ""
    assert "6 messages written" in result.stderr
    assert [one.name for one in tmp_path.glob("*.part")] == []
    run("import", exported, "--path", second, *HASH)
    assert stored(second) == stored(first)
    assert len(stored(first)) == 6


def test_export_of_one_thread_or_owner(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    run("import", write_lines(tmp_path / "chat.jsonl", *STRANGE), "--path", path, *HASH)

    def ids(*options: str) -> list[str]:
        lines = run("export", "--path", path, *options).stdout.splitlines()
        return [json.loads(line)["content"][:5] for line in lines]

    assert ids("--thread", "u/%_:") == ["other"]
    assert ids("--resource", "r") == ["plain", "nul \x00", "", "other"]
    assert ids("--thread", "t", "--resource", "") == ["", "no ow"]
    result = run("export", "--path", path, "--thread", "missing", code=1)
    assert "there is no thread 'missing'" in result.stderr


def test_export_never_leaves_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    run("import", write_lines(tmp_path / "chat.jsonl", said("a")), "--path", path, *HASH)
    (tmp_path / "taken").mkdir()
    result = run("export", "--path", path, "--output", tmp_path / "taken", code=1)
    assert "error: " in result.stderr
    result = run("export", "--path", path, "--output", tmp_path / "no" / "where", code=1)
    assert "No such file" in result.stderr
    assert [one.name for one in tmp_path.glob("**/*.part")] == []


def test_pipes_between_processes(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with conversations() as samples:
        run("import", samples, "--path", first, *HASH)
    importing = start("import", "-", "--path", second, *HASH, "--json", stdin=subprocess.PIPE)
    with start("export", "--path", first, stdout=importing.stdin) as exporting:
        _, err = exporting.communicate(timeout=120)
    assert (exporting.returncode, err) == (0, b"")
    out, err = importing.communicate(timeout=120)
    assert (importing.returncode, err) == (0, b"")
    assert json.loads(out)["new"] == 200
    assert stored(second) == stored(first)


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    records = (said("x" * 2_000 + str(i)) for i in range(500))
    run("import", write_lines(tmp_path / "chat.jsonl", *records), "--path", path, *HASH)
    with start("export", "--path", path) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_interrupt_is_clean(tmp_path: Path) -> None:
    process = start(
        "import", "-", "--path", tmp_path / "memory", *HASH,
        stdin=subprocess.PIPE,
        # A test run that a shell started in the background ignores interrupts, and so would this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdin is not None
    # More than a pipe holds: once it is written the command is at work, and waits for the rest.
    process.stdin.write(b"\n" * 1_000_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, b"error: interrupted\n")
