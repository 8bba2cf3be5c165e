"""`search`, `threads`, `show` and `stats`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semantic_recall.errors import StoreError
from semantic_recall.samples import conversations
from tests.core.cli_support import run, run_json, said, write_lines

HASH = ("--embedder", "hash")


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reading") / "memory"
    with conversations() as file:
        run("import", file, "--path", path, *HASH)
    return path


def search(path: Path, query: str, *options: str, code: int = 0) -> dict[str, object]:
    document = run_json("search", query, "--path", path, *HASH, *options, code=code)
    assert isinstance(document, dict)
    return document


def test_search_shows_hits_with_scores_and_neighbours(samples: Path) -> None:
    result = run(
        "search", "plum cake tin", "--path", samples, *HASH, "--resource", "mina", "--top-k", "2"
    )
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["score", "dense", "words", "time", "(UTC)", "message"]
    assert any(line.strip() == "recipes" for line in lines)
    assert any("●" in line and "26 cm" in line for line in lines)
    assert "2 hits ●" in result.stdout.replace("\n", " ")


def test_search_as_json(samples: Path) -> None:
    document = search(samples, "plum cake tin", "--resource", "mina", "--top-k", "1")
    assert document["hits"] == ["recipes-01"] or document["hits"] == ["recipes-02"]
    assert document["resource_id"] == "mina"
    messages = document["messages"]
    assert isinstance(messages, list)
    assert [one["is_hit"] for one in messages].count(True) == 1
    assert len(messages) >= 2
    hit = next(one for one in messages if one["is_hit"])
    assert hit["score"] > 0
    assert hit["lexical"] > 0
    assert -1 <= hit["dense"] <= 1
    assert "block" not in document


@pytest.mark.parametrize(("value", "count"), [("0", 1), ("0,2", 3), ("2,0", 3), ("1", 3)])
def test_search_range(samples: Path, value: str, count: int) -> None:
    query = "Viktor is ill. They moved the interview"
    document = search(samples, query, "--resource", "mina", "-k", "1", "--range", value)
    messages = document["messages"]
    assert isinstance(messages, list)
    assert len(messages) == count


def test_search_options_reach_the_recall(samples: Path) -> None:
    def ids(*options: str) -> list[str]:
        document = search(samples, "allergic hives", "--resource", "mina", "--range", "0", *options)
        messages = document["messages"]
        assert isinstance(messages, list)
        return [one["id"] for one in messages]

    assert len(ids("--top-k", "7")) == 7
    late = ids("--since", "2025-01-01")
    assert late
    assert not set(late) & set(ids("--until", "2025-01-01T00:00:00Z"))
    thread = ids("--thread", "health-notes", "--scope", "thread", "-k", "20")
    assert {one.rpartition("-")[0] for one in thread} == {"health-notes"}
    assert ids("--threshold", "1") == []
    dense = search(samples, "allergic hives", "--resource", "mina", "--ranking", "dense")
    messages = dense["messages"]
    assert isinstance(messages, list)
    assert all(one["score"] == one["dense"] for one in messages if one["is_hit"])
    small = search(samples, "allergic hives", "--resource", "mina", "--max-tokens", "120")
    assert isinstance(small["tokens"], int)
    assert small["tokens"] <= 120


def test_search_never_crosses_the_owner(samples: Path) -> None:
    document = search(samples, "penicillin bees", "--resource", "mina", "--top-k", "50")
    messages = document["messages"]
    assert isinstance(messages, list)
    assert {one["resource_id"] for one in messages} == {"mina"}


def test_block_is_printed_as_it_goes_into_a_prompt(samples: Path) -> None:
    options = ("search", "cashews", "--path", samples, *HASH, "--resource", "mina", "--block")
    text = run(*options).stdout
    document = run_json(*options)
    assert text == document["block"] + "\n"
    assert "cashews" in text


def test_search_says_who_can_be_meant(samples: Path, tmp_path: Path) -> None:
    result = run("search", "x", "--path", samples, *HASH, code=2)
    assert "'mina', 'oskar'" in " ".join(result.stderr.replace("│", " ").split())
    file = write_lines(tmp_path / "chat.jsonl", said("only one owner"))
    run("import", file, "--path", tmp_path / "memory", *HASH)
    assert search(tmp_path / "memory", "owner")["resource_id"] == "r"


def test_a_thread_without_an_owner_is_searched_alone(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "c.jsonl", said("red apples", resource_id=None), said("apples"))
    path = tmp_path / "memory"
    run("import", file, "--path", path, *HASH)
    document = search(path, "apples", "--thread", "t", "--resource", "")
    assert document["resource_id"] is None
    messages = document["messages"]
    assert isinstance(messages, list)
    assert len(messages) == 1
    result = run("search", "apples", "--path", path, *HASH, "--thread", "t", code=1)
    assert "2 owners have a thread 't'" in result.stderr


def test_nothing_found_is_said(samples: Path) -> None:
    result = run("search", "x", "--path", samples, *HASH, "--resource", "nobody")
    assert result.stdout == "Nothing found\n"


def test_why_nothing_was_found_is_said(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    run("import", write_lines(tmp_path / "c.jsonl", said("apples")), "--path", path, *HASH)
    result = run("search", "apples", "--path", path, *HASH, "--threshold", "1")
    assert result.stdout.startswith("Nothing found, 1 left out: ")


@pytest.mark.parametrize(
    "options",
    [
        ("--range", "x"),
        ("--range", "1,2,3"),
        ("--range", "-1"),
        ("--since", "yesterday"),
        ("--scope", "all"),
        ("--top-k", "0"),
        ("--threshold", "2"),
        ("--embedder", "gpt"),
        ("--nonsense",),
    ],
)
def test_wrong_usage_is_2(samples: Path, options: tuple[str, ...]) -> None:
    result = run("search", "q", "--path", samples, "--resource", "mina", *options, code=2)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("search", "q"),
        ("threads",),
        ("show", "t"),
        ("stats",),
        ("verify",),
        ("reindex",),
        ("export",),
        ("forget", "--thread", "t", "--yes"),
    ],
)
def test_a_missing_memory_is_an_error_and_not_made(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "nowhere"
    result = run(*command, "--path", path, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: there is no memory in {path}")
    assert result.stderr.count("\n") == 1
    assert not path.exists()


def test_debug_keeps_the_traceback(tmp_path: Path) -> None:
    result = run("stats", "--path", tmp_path / "nowhere", "--debug", code=1)
    assert isinstance(result.exception, StoreError)
    assert result.stderr == ""


def test_the_path_comes_from_the_environment(
    samples: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMANTIC_RECALL_PATH", str(samples))
    assert run_json("stats")["messages"] == 200


def test_threads(samples: Path) -> None:
    document = run_json("threads", "--path", samples)
    assert len(document) == 16
    wedding = next(one for one in document if one["thread_id"] == "sister-wedding")
    assert wedding["messages"] == 20
    assert wedding["first_at"].startswith("2024-10-05T21:30:00")
    assert len(run_json("threads", "--path", samples, "--resource", "oskar")) == 2
    assert run_json("threads", "--path", samples, "--resource", "") == []
    assert "sister-wedding" in run("threads", "--path", samples).stdout


def test_show(samples: Path) -> None:
    document = run_json("show", "gifts", "--path", samples, "--last", "2")
    assert [one["id"] for one in document] == ["gifts-09", "gifts-10"]
    text = run("show", "pool-timeout", "--path", samples).stdout
    assert "2024-11-05 10:15 user: Our booking service hangs" in text
    assert "[ERROR] sqlalchemy.exc.TimeoutError" in text
    result = run("show", "gift", "--path", samples, code=1)
    assert "there is no thread 'gift'" in result.stderr


def test_stats(samples: Path) -> None:
    document = run_json("stats", "--path", samples)
    assert (document["messages"], document["threads"], document["resources"]) == (200, 16, 2)
    assert (document["vectors"], document["pending"]) == (200, 0)
    assert "messages" in run("stats", "--path", samples).stdout


HOSTILE = "\x1b]0;owned\x07\x1b[2J [bold red]x[/] [/nope] :smile: \x9b31m \u202egnp\r over\nline"


def test_hostile_text_and_ids_do_not_reach_the_terminal(tmp_path: Path) -> None:
    file = write_lines(
        tmp_path / "chat.jsonl",
        said(HOSTILE, thread_id="t\x1b[31m[red]", resource_id="r\x1b[0m[/]", name="n\x1b[1m"),
    )
    path = tmp_path / "memory"
    run("import", file, "--path", path, *HASH)
    outputs = [
        run("search", "smile", "--path", path, *HASH, "--resource", "r\x1b[0m[/]"),
        run("search", "smile", "--path", path, *HASH, "--full"),
        run("search", "smile", "--path", path, *HASH, "--block"),
        run("threads", "--path", path),
        run("show", "t\x1b[31m[red]", "--path", path),
        run("show", "t\x1b", "--path", path, code=1),
        run("forget", "--thread", "t\x1b[31m[red]", "--path", path, answer="no\n", code=1),
    ]
    for result in outputs:
        for text in (result.stdout, result.stderr):
            assert not set(text) & set("\x1b\x07\x9b\u202e\r")
    assert "[bold red]x[/] [/nope] :smile:" in outputs[0].stdout
    assert "t\ufffd[31m[red]" in outputs[3].stdout
    # Programs get it unchanged.
    assert json.loads(run("export", "--path", path).stdout)["content"] == HOSTILE
