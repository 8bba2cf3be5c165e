"""Importing needs no more memory for a large file than for a small one."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, message_to_dict
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from semantic_recall import Message
from semantic_recall.cli import _importing
from semantic_recall.importers import (
    ChatGPTImporter,
    ClaudeImporter,
    Importer,
    JsonLinesImporter,
    LangChainImporter,
    LlamaIndexImporter,
    OpenAIMessagesImporter,
    SlackImporter,
    read,
)
from tests.core.cli_support import run_json
from tests.importers.support import DEFAULTS, conversation, node, peak

TEXT = "x" * 900
SMALL, LARGE = 1_000, 4_000
IN_A_CONVERSATION = 50

# Prints the most memory that a process had. A field of its own where there is one: what getrusage
# says begins with the memory of the process that started this one.
PEAK = """
import os, resource, sys
def peak():
    if not os.path.exists("/proc/self/status"):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
"""


class Generated(io.RawIOBase):
    """A file of any size that is never in memory whole."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        length = min(len(buffer), len(self._rest))
        buffer[:length], self._rest = self._rest[:length], self._rest[length:]
        return length


def listed(records: Iterable[object], start: str = "[", end: str = "]") -> Iterator[bytes]:
    """Yield a JSON list piece by piece."""
    yield start.encode()
    for number, record in enumerate(records):
        yield (",\n" if number else "").encode() + json.dumps(record).encode()
    yield end.encode()


def chatgpt(messages: int) -> Iterator[bytes]:
    def one(number: int) -> object:
        nodes = [
            node(str(i), str(i - 1) if i else None, "user", TEXT) for i in range(IN_A_CONVERSATION)
        ]
        return conversation(*nodes, current=nodes[-1]["id"], conversation_id=str(number))

    return listed(one(number) for number in range(messages // IN_A_CONVERSATION))


def claude(messages: int) -> Iterator[bytes]:
    said = [{"uuid": str(i), "sender": "human", "text": TEXT} for i in range(IN_A_CONVERSATION)]
    return listed(
        {"uuid": str(number), "chat_messages": said}
        for number in range(messages // IN_A_CONVERSATION)
    )


def jsonl(messages: int) -> Iterator[bytes]:
    return (json.dumps({"role": "user", "content": TEXT}).encode() + b"\n" for _ in range(messages))


def openai(messages: int) -> Iterator[bytes]:
    return listed({"role": "user", "content": TEXT} for _ in range(messages))


def langchain(messages: int) -> Iterator[bytes]:
    return listed({"type": "human", "data": {"content": TEXT}} for _ in range(messages))


def llamaindex(messages: int) -> Iterator[bytes]:
    chats = ({"role": "user", "content": TEXT} for _ in range(messages))
    return listed(chats, '{"store": {"k": [', "]}}")


@pytest.mark.parametrize(
    ("importer", "pieces"),
    [
        (JsonLinesImporter(), jsonl),
        (OpenAIMessagesImporter(), openai),
        (ChatGPTImporter(), chatgpt),
        (ClaudeImporter(), claude),
        (LangChainImporter(), langchain),
        (LlamaIndexImporter(), llamaindex),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_texts(importer: Importer, pieces: Callable[[int], Iterator[bytes]]) -> None:
    def work(messages: int) -> None:
        stream = io.BufferedReader(Generated(pieces(messages)))
        items = importer.read(stream, DEFAULTS)
        assert sum(isinstance(item, Message) for item in items) == messages

    small, large = peak(lambda: work(SMALL)), peak(lambda: work(LARGE))
    assert large < 1.1 * small + 64 * 1024
    assert large < 2 * 2**20  # the file has 4 MB


def test_archives(tmp_path: Path) -> None:
    def write(messages: int) -> Path:
        path = tmp_path / f"{messages}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
            made.writestr("users.json", "[]")
            for day in range(1, 11):
                times = (f"17140{day:05}.{number:06}" for number in range(messages // 10))
                said = [{"type": "message", "user": "U", "text": TEXT, "ts": ts} for ts in times]
                made.writestr(f"general/2024-01-{day:02}.json", json.dumps(said))
            with made.open("other/conversations.json", "w") as member:
                for piece in chatgpt(messages):
                    member.write(piece)
        return path

    def work(path: Path, messages: int) -> None:
        for importer in (SlackImporter(), ChatGPTImporter()):
            items = read(path, importer=importer)
            assert sum(isinstance(item, Message) for item in items) == messages

    first, second = write(SMALL), write(LARGE)
    small, large = peak(lambda: work(first, SMALL)), peak(lambda: work(second, LARGE))
    assert large < 1.1 * small + 64 * 1024
    assert large < 2 * 2**20


# Looks from outside of Python: SQLite sorts and caches in memory of its own.
TABLES = """
from pathlib import Path
from semantic_recall import Message
from semantic_recall.importers import named, read

def work(path):
    for name in ("langchain-sql", "llamaindex-sql", "langgraph"):
        print(sum(isinstance(item, Message) for item in read(path, importer=named(name))))
    print(peak())

for path in sys.argv[1:]:
    work(path)
"""


def write_tables(path: Path, messages: int) -> Path:
    """Write an SQLite file with each format of tables."""
    said = json.dumps(message_to_dict(HumanMessage(TEXT)))
    chat = json.dumps({"role": "user", "content": TEXT})
    kind, blob = JsonPlusSerializer().dumps_typed(
        {
            "ts": "2025-01-01",
            "channel_values": {"messages": [HumanMessage(TEXT)] * IN_A_CONVERSATION},
        }
    )
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE lc (id INTEGER PRIMARY KEY, session_id, message)")
        database.executemany(
            "INSERT INTO lc (session_id, message) VALUES ('s', ?)",
            ((said,) for _ in range(messages)),
        )
        database.execute(
            "CREATE TABLE li (id INTEGER PRIMARY KEY, key, timestamp, role, status, data)"
        )
        database.executemany(
            "INSERT INTO li (key, timestamp, role, status, data) VALUES ('k', ?, '', '', ?)",
            ((10**18 - number, chat) for number in range(messages)),
        )
        database.execute(
            "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT DEFAULT '',"
            " checkpoint_id TEXT, type TEXT, checkpoint BLOB,"
            " PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
        threads = range(messages // IN_A_CONVERSATION)
        database.executemany(
            "INSERT INTO checkpoints VALUES (?, '', ?, ?, ?)",
            ((f"t{thread}", f"{i}", kind, blob) for thread in threads for i in range(3)),
        )
    return path


def measured(script: str, *arguments: str | Path) -> list[str]:
    """Run a script that prints the peak of its memory; returns its lines."""
    command = [sys.executable, "-c", PEAK + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_tables(tmp_path: Path) -> None:
    small = write_tables(tmp_path / "small.db", SMALL)
    large = write_tables(tmp_path / "large.db", 4 * LARGE)
    lines = list(map(int, measured(TABLES, small, large)))
    assert lines[:3] == [SMALL] * 3
    assert lines[4:7] == [4 * LARGE] * 3
    assert lines[7] - lines[3] < 10 * 1024  # KiB; each table of the large file has 15 MB


IMPORT = """
from semantic_recall.cli import app
app(sys.argv[1:], standalone_mode=False)
print(peak())
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    def imported(messages: int) -> int:
        file = tmp_path / f"{messages}.jsonl"
        with file.open("w", encoding="utf-8") as stream:
            for number in range(messages):
                record = {
                    "role": "user",
                    "content": f"{number} was said in thread {number // 100}. " + TEXT[:200],
                    "thread_id": f"t{number // 100}",
                    "resource_id": f"r{number // 2_000}",
                    "created_at": 1_700_000_000 + number,
                }
                stream.write(json.dumps(record) + "\n")
        path = tmp_path / f"memory-{messages}"
        lines = measured(IMPORT, "import", file, "--path", path, "--embedder", "none", "--json")
        assert json.loads(lines[0])["new"] == messages
        return int(lines[-1])

    small, large = imported(10_000), imported(100_000)
    assert large - small < 40 * 1024  # KiB; the text alone has 24 MB


def test_batches_are_bounded_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_importing, "BATCH_CHARACTERS", 10_000)
    file = tmp_path / "images.jsonl"
    parts = [{"type": "image_url", "image_url": {"url": "data:" + "A" * 3_000}}]
    records = [
        {"role": "user", "content": [*parts, {"type": "text", "text": str(number)}]}
        for number in range(20)
    ]
    file.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    sizes: list[int] = []

    def watch(memory: object, batch: Any) -> Any:
        sizes.append(len(batch.messages))
        return batch.messages

    monkeypatch.setattr(_importing, "_first_times", watch)
    path = tmp_path / "memory"
    for new in (20, 0):  # the first one finds an empty memory, in which nothing is looked up
        done = run_json("import", file, "--path", path, "--embedder", "none")
        assert (done["messages"], done["new"]) == (20, new)
    assert sizes == [4] * 5
