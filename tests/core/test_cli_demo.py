"""`semantic-recall demo`, and what the command line is made of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.core.cli_support import run, run_json, said, start, write_lines


def test_demo_recalls_with_the_default_embedder() -> None:
    process = start("demo", "--json")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert document["messages"] == 200
    assert document["asked"] == 15
    # What was measured; some are hard on purpose. Better ranking may only raise it.
    assert document["found"] >= 12
    assert document["found_as_hit"] >= 10
    assert document["strangers"] == 0
    assert not Path(document["path"]).exists()  # it was a temporary folder


def test_demo_for_people(tmp_path: Path) -> None:
    process = start("demo", "--path", tmp_path / "demo", env={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    text = out.decode("ascii")  # a terminal that shows ASCII only
    assert "200 messages" in text
    assert "When is Sora getting married now, and where?" in text
    assert "of 15 answers recalled" in text
    assert (tmp_path / "demo" / "recall.sqlite3").is_file()


def test_demo_again_in_the_same_folder_adds_nothing(tmp_path: Path) -> None:
    options = ("demo", "--path", tmp_path / "demo", "--embedder", "hash")
    assert run_json(*options)["new"] == 200
    assert run_json(*options)["new"] == 0


def test_demo_leaves_other_memories_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    file = write_lines(tmp_path / "chat.jsonl", said("mine"))
    run("import", file, "--path", path, "--embedder", "hash")
    result = run("demo", "--path", path, "--embedder", "hash", code=1)
    assert "holds other conversations" in result.stderr
    assert run_json("stats", "--path", path)["messages"] == 1


def test_the_library_does_not_load_the_command_line() -> None:
    code = (
        "import sys, semantic_recall; semantic_recall.SemanticRecall; "
        "print([name for name in ('typer', 'rich', 'semantic_recall.cli') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert shown.stdout.strip() == "[]"


def test_help_tells_the_exit_codes() -> None:
    assert "Exit codes" in run("--help").stdout
    assert run("--version").stdout.startswith("semantic-recall ")
