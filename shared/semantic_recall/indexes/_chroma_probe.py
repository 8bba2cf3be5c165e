"""Whether reading a Chroma folder ends the process that does it: asked of a process of its own.

Chroma's native code trusts the vector files. What is wrong inside them, though their sizes are
right, can make it read where there is no memory (chroma #7238, #6949, #6979).
"""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

from semantic_recall.indexes._interpreter import command, environment

SECONDS = 300.0
"""How long reading may take; a process that hangs would hang the application."""
MOST = 10_000
"""Neighbours that are asked for, to walk as much of each graph as can be."""
_CRASHES = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")
    if name in signal.Signals.__members__
)
_WINDOWS_CRASH = 0xC000_0000
"""Exit codes from here on are exceptions that nobody has handled."""


def probe(path: Path) -> str | None:
    """Return how a process that reads the folder ends, or None when it does not crash.

    Nobody may have the folder open. What else goes wrong there is no evidence: it raises an error
    in this process too, where it is dealt with.
    """
    run = command(__name__, str(path))
    if run is None:
        return None
    try:
        code = subprocess.run(
            run,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
            timeout=SECONDS,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return f"reading it takes longer than {SECONDS:.0f} s"
    except OSError:
        return None
    if -code in _CRASHES:
        return f"reading it ends a process with {signal.Signals(-code).name}"
    return f"reading it ends a process with {code:#x}" if code >= _WINDOWS_CRASH else None


def read(path: Path) -> None:
    """Read every collection as recall would."""
    # Here, because only the process of its own needs it.
    import chromadb  # noqa: PLC0415
    from chromadb.config import Settings  # noqa: PLC0415

    client = chromadb.PersistentClient(path, settings=Settings(anonymized_telemetry=False))
    for page in count():
        found = client.list_collections(limit=100, offset=100 * page)
        for listed in found:
            collection = client.get_collection(listed.name, embedding_function=None)
            first = collection.get(limit=1, include=["embeddings"])["embeddings"]
            if first is not None and len(first):
                collection.query(
                    query_embeddings=first,
                    n_results=min(collection.count(), MOST),
                    include=["distances"],
                )
        if len(found) < 100:
            return


if __name__ == "__main__":
    read(Path(sys.argv[1]))
