"""A Chroma server on loopback: the index contract over HTTP, a whole memory, and bad networks."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from semantic_recall import SemanticRecall, Settings
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes.chroma import ChromaVectorIndex
from semantic_recall.protocols import VectorIndex
from semantic_recall.stores.sql import SQLMessageStore
from semantic_recall.testing.vector_index import DurableVectorIndexSuite
from semantic_recall.types import Scope, VectorRecord, VectorSpace

HOST = "127.0.0.1"
SPACE = VectorSpace("server", 4)
ANNA = Scope("anna", "t1")


def free_port() -> int:
    with closing(socket.socket()) as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


@contextmanager
def serving(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run `chroma run` on loopback and end it."""
    chroma = Path(sys.executable).with_name("chroma")
    with (folder / "server.log").open("ab") as log:
        server = subprocess.Popen(
            [chroma, "run", "--path", folder / "data", "--host", HOST, "--port", str(port)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
        )
        try:
            deadline = time.monotonic() + 60
            while not _answers(port):
                assert server.poll() is None, (folder / "server.log").read_text()
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.05)
            yield server
        finally:
            server.terminate()
            server.wait(20)


def _answers(port: int) -> bool:
    try:
        return httpx.get(f"http://{HOST}:{port}/api/v2/heartbeat", timeout=5).is_success
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    port = free_port()
    with serving(tmp_path_factory.mktemp("chroma-server"), port):
        yield port


class TestChromaServer(DurableVectorIndexSuite):
    @pytest.fixture
    def prefix(self) -> str:
        """Each test has its own collections: one server serves them all."""
        return f"test-{uuid.uuid4().hex}"

    @pytest.fixture
    def index(self, port: int, prefix: str) -> Iterator[ChromaVectorIndex]:
        index = ChromaVectorIndex.server(HOST, port, shards=4, prefix=prefix)
        yield index
        index.close()

    @pytest.fixture
    def reopen(self, port: int, prefix: str) -> Iterator[object]:
        opened: list[VectorIndex] = []

        def again() -> VectorIndex:
            opened.append(ChromaVectorIndex.server(HOST, port, shards=4, prefix=prefix))
            return opened[-1]

        yield again
        for index in opened:
            index.close()

    def test_scrub_keeps_what_is_left(self, index: VectorIndex, reopen: object) -> None:
        """Nobody but its operator can rewrite a server's files, and it says so."""
        index.upsert(SPACE, [VectorRecord(id="1.0", scope=ANNA, vector=np.ones(4, np.float32))])
        with pytest.raises(VectorIndexError, match="chroma vacuum"):
            index.scrub()
        assert list(index.ids(SPACE)) == ["1.0"]


def test_a_memory_over_a_server(tmp_path: Path, port: int) -> None:
    """Two memories of one store: both may write the index, as a server has no single owner."""

    def opened() -> SemanticRecall:
        return SemanticRecall(
            SQLMessageStore.open(tmp_path / "recall.sqlite3"),
            lambda: ChromaVectorIndex.server(HOST, port, prefix="whole-memory"),
            HashEmbedder(64),
            settings=Settings(exact_limit=0),
        )

    with opened() as memory, opened() as other:
        for owner, writer in (("u1", memory), ("u10", other)):
            writer.remember(
                [{"role": "user", "content": f"pin {n} of {owner}"} for n in range(30)],
                thread_id="t",
                resource_id=owner,
            )
            assert writer.flush()
        for reader in (memory, other):
            assert reader.stats().owns_index
            for owner in ("u1", "u10"):
                recalled = reader.recall(f"pin 7 of {owner}", resource_id=owner)
                assert recalled.hits[0].message.text == f"pin 7 of {owner}"
                assert {m.message.resource_id for m in recalled} == {owner}
        report = memory.verify()
        assert (report.ok, report.indexed) == (True, 60)
        assert other.forget(resource_id="u1").complete
        assert not memory.recall("pin 7", resource_id="u1")
        assert memory.verify().indexed == 30
        memory.reindex(HashEmbedder(32))
        assert memory.verify().indexed == 30


def test_a_server_that_is_gone_and_comes_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Recall goes on without it, and what it missed is written when it is there again."""
    port = free_port()
    memory = SemanticRecall(
        SQLMessageStore.open(tmp_path / "recall.sqlite3"),
        lambda: ChromaVectorIndex.server(HOST, port, timeout=5),
        HashEmbedder(64),
        settings=Settings(exact_limit=0),
    )
    with memory:
        with serving(tmp_path, port):
            memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
            assert memory.flush()
        memory.remember({"role": "user", "content": "pear"}, thread_id="t", resource_id="r")
        assert not memory.flush(20)
        recalled = memory.recall("pear", resource_id="r", ranking="dense")
        assert {m.message.text for m in recalled} == {"apple", "pear"}
        assert memory.forget(resource_id="r", thread_id="t").remaining["messages"] == 0
        memory.remember({"role": "user", "content": "plum"}, thread_id="t", resource_id="r")
        with serving(tmp_path, port):
            assert memory.flush(30)
            report = memory.verify()
            assert (report.ok, report.indexed) == (True, 1)
    assert "the background indexer failed" in caplog.text


class Recorder:
    """A socket that keeps what it is sent; it says nothing, or answers like a Chroma server."""

    def __init__(self, upstream: int | None) -> None:
        self._upstream = upstream
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self.heard: list[bytes] = []
        self._open: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:  # closed: the test is over
                return
            self._open.append(caller)
            if self._upstream is None:
                continue
            server = socket.create_connection((HOST, self._upstream))
            self._open.append(server)
            for source, target, heard in ((caller, server, self.heard), (server, caller, [])):
                threading.Thread(target=_pump, args=[source, target, heard], daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            one.close()


def _pump(source: socket.socket, target: socket.socket, heard: list[bytes]) -> None:
    try:
        while data := source.recv(65536):
            heard.append(data)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the other side has hung up
        return


def test_credentials_go_with_every_request(port: int) -> None:
    """Chroma has had no authentication of its own since 1.0: a proxy in front checks a header."""
    proxy = Recorder(port)
    headers = {"Authorization": "Bearer s3cret-token", "X-Team": "memory"}
    index = ChromaVectorIndex.server(HOST, proxy.port, headers=headers, prefix=uuid.uuid4().hex)
    index.upsert(SPACE, [VectorRecord(id="1.0", scope=ANNA, vector=np.ones(4, np.float32))])
    assert [hit.id for hit in index.search(SPACE, np.ones(4, np.float32), ANNA, top_k=1)] == ["1.0"]
    index.delete(SPACE, {"1.0": ANNA})
    index.drop(SPACE)
    index.close()
    proxy.close()
    heard = b"".join(proxy.heard).lower()
    requests = heard.count(b" http/1.1\r\n")
    assert requests > 5
    assert heard.count(b"authorization: bearer s3cret-token\r\n") == requests
    assert heard.count(b"x-team: memory\r\n") == requests


def test_a_server_that_says_nothing_runs_into_our_timeout() -> None:
    silent = Recorder(None)
    began = time.monotonic()
    with pytest.raises(VectorIndexError, match="reach the server"):
        ChromaVectorIndex.server(HOST, silent.port, timeout=0.5)
    assert 0.4 < time.monotonic() - began < 10
    silent.close()


def test_a_server_that_falls_silent_runs_into_our_timeout(tmp_path: Path) -> None:
    """Stopped with SIGSTOP, as a machine that swaps: a call ends, and a recall is answered."""
    port = free_port()
    with serving(tmp_path, port) as server:
        memory = SemanticRecall(
            SQLMessageStore.open(tmp_path / "recall.sqlite3"),
            lambda: ChromaVectorIndex.server(HOST, port, timeout=1.0),
            HashEmbedder(64),
            settings=Settings(exact_limit=0),
        )
        with memory:
            memory.remember({"role": "user", "content": "apple"}, thread_id="t", resource_id="r")
            assert memory.flush()
            assert memory.recall("apple", resource_id="r").hits
            server.send_signal(19)
            try:
                began = time.monotonic()
                assert memory.recall("apple", resource_id="r", ranking="dense").hits
                assert time.monotonic() - began < 20
                memory.remember({"role": "user", "content": "pear"}, thread_id="t", resource_id="r")
                assert memory.recall("pear", resource_id="r", top_k=1).hits
            finally:
                server.send_signal(18)
            assert memory.flush(30)


def test_nobody_listens() -> None:
    with pytest.raises(VectorIndexError, match="reach the server"):
        ChromaVectorIndex.server(HOST, free_port(), timeout=2)
