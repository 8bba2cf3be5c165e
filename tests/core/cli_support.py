"""How the tests of the command line run it: in this process, or as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from semantic_recall.cli import app

RUNNER = CliRunner()


def run(*arguments: str | Path, code: int = 0, answer: str | None = None) -> Result:
    """Run a command in this process and check its exit code."""
    result = RUNNER.invoke(
        app, [str(one) for one in arguments], input=answer, env={"COLUMNS": "160"}
    )
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return result


def run_json(*arguments: str | Path, code: int = 0, answer: str | None = None) -> Any:
    """Run a command with --json: its standard output must be one JSON document."""
    result = run(*arguments, "--json", code=code, answer=answer)
    return json.loads(result.stdout)


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start the command line as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "semantic_recall.cli", *map(str, arguments)],
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        env={**os.environ, "COLUMNS": "100", **options.pop("env", {})},
        **options,
    )


def write_lines(path: Path, *records: object) -> Path:
    """Write JSON Lines."""
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return path


def said(text: str, **more: object) -> dict[str, object]:
    """Return a record of a user's message in thread t of resource r."""
    return {"role": "user", "content": text, "thread_id": "t", "resource_id": "r", **more}
