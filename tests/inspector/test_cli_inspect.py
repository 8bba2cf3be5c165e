"""The command `semantic-recall inspect`, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semantic_recall import SemanticRecall
from semantic_recall.cli.inspect import _shown
from semantic_recall.errors import ConfigurationError, MissingDependencyError
from semantic_recall.inspector import Inspector, open_in_browser
from tests.core.cli_support import run, start


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect") / "memory"
    with SemanticRecall.open(folder, embedder="hash") as memory:
        memory.remember({"role": "user", "content": "Hello."}, thread_id="t", resource_id="r")
    return folder


@contextmanager
def running(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, str]]]:
    process = start(
        "inspect", "--path", path, "--embedder", "hash", "--no-open", "--json", *options
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def opened(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def reachable(host: str, port: str) -> bool:
    """Tell whether something listens there; from a process that may try other addresses."""
    code = f"import socket; socket.create_connection(({host!r}, {port}), timeout=5)"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    return finished.returncode == 0


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped_and_closes_the_memory(
    path: Path, sent: signal.Signals
) -> None:
    with running(path) as (process, told):
        url = told["url"]
        assert url.startswith(f"http://127.0.0.1:{told['port']}/")
        assert opened(url) == 200
        assert opened(url.replace("127.0.0.1", "localhost")) == 200
        assert opened(f"http://127.0.0.1:{told['port']}/") == 403
        assert reachable("127.0.0.1", told["port"])
        assert not reachable("127.0.0.2", told["port"])  # nor from anywhere else
        process.send_signal(sent)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out, error) == (0, b"", b"")
    with SemanticRecall.open(path, embedder="hash") as memory:
        assert memory.flush(timeout=30)
        assert memory.stats().owns_index  # the other one has let go of it


def test_a_port_that_is_taken_is_said_in_one_line(path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run("inspect", "--path", path, "--embedder", "hash", "--port", port, code=1)
    assert f"port {port} of 127.0.0.1 cannot be had" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_memory_that_is_not_there_is_said(tmp_path: Path) -> None:
    result = run("inspect", "--path", tmp_path / "none", "--no-open", code=1)
    assert "there is no memory in" in result.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_one_line_has_the_command(path: Path, package: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\nfrom semantic_recall.cli import main; main()"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code, "inspect", "--path", str(path), "--embedder", "hash"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 1
    assert finished.stdout == ""
    assert finished.stderr.count("\n") == 1
    assert f"the inspector needs the package '{package}'" in finished.stderr
    assert 'pip install "chat-semantic-recall[inspect]"' in finished.stderr
    assert issubclass(MissingDependencyError, ConfigurationError)


@pytest.mark.skipif(os.name != "posix", reason="the modes of files are POSIX's")
def test_the_browser_is_given_a_file_and_not_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of the machine can list the arguments of a process."""
    log = tmp_path / "arguments"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {log}.new\nmv {log}.new {log}\n', encoding="utf-8")
    browser.chmod(0o700)
    monkeypatch.setenv("BROWSER", str(browser))
    url = "http://127.0.0.1:1/secret-token/"
    with open_in_browser(url):
        deadline = time.monotonic() + 30
        while not log.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        arguments = log.read_text(encoding="utf-8").strip()
        assert "secret-token" not in arguments
        file = Path(arguments.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert f'url={url}"' in file.read_text(encoding="utf-8")
    assert not file.exists()


def test_nothing_is_opened_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    opened_ones: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened_ones.append)
    with open_in_browser("http://127.0.0.1:1/x/"):
        pass
    assert opened_ones == []


def test_a_databases_password_is_not_shown() -> None:
    assert _shown("postgresql://me:secret@db.example:5432/chats?password=x") == (
        "postgresql://db.example/chats"
    )
    assert _shown("./memory") == "./memory"


def test_each_has_another_token_and_lets_go_of_its_port(path: Path) -> None:
    with SemanticRecall.open(path, embedder="hash") as memory:
        with Inspector(memory) as inspector:
            port = inspector.port
            with pytest.raises(ConfigurationError, match="cannot be had"):
                Inspector(memory, port=port)
        with Inspector(memory, port=port) as again:
            tokens = {one.url.split("/")[3] for one in (again, inspector)}
    assert len(tokens) == 2
    assert all(len(token) >= 40 for token in tokens)
