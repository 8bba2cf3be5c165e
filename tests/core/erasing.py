"""What must not be left of a forgotten message, and a search for it in every file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from semantic_recall import Message, SemanticRecall
from semantic_recall.embedders.hash import HashEmbedder
from semantic_recall.indexed_text import indexed_text

SECRET = "xylophonist Örtlund keeps 4711-0815 under the flowerpot 花盆下面"
OLDER = "zebrafish Öberg keeps 9321-7788 behind the samovar 茶炊后面"
OWNER = "mallory-the-owner-7f3a"
THREAD = "thread-of-mallory-55d1"
ID = "message-of-mallory-c0de"
NAME = "Mallory-the-speaker-e7"
METADATA = {"place": "metadata-of-mallory-91ab"}


def secret_message(text: str = SECRET) -> Message:
    return Message(
        role="user", text=text, id=ID, thread_id=THREAD, resource_id=OWNER, name=NAME,
        metadata=METADATA, payload={"content": text, "raw": "payload-of-mallory-44f0"},
    )  # fmt: skip


def vector_bytes(text: str) -> bytes:
    (vector,) = HashEmbedder(64).embed_documents([indexed_text(secret_message(text))])
    return np.asarray(vector, np.float32).tobytes()


def traces(*texts: str) -> Mapping[str, bytes]:
    """What must not be left: each text in two encodings and in parts, ids, and vectors."""
    found: dict[str, bytes] = {}
    for number, text in enumerate(texts):
        for word in (text, *text.split()):
            if len(word) > 5:
                found[f"{word!r} in UTF-8"] = word.encode()
                found[f"{word!r} in UTF-16"] = word.encode("utf-16-le")
                found[f"{word!r} in JSON"] = word.encode("unicode_escape")
        vector = vector_bytes(text)
        found[f"vector {number}"] = vector
        found[f"half of vector {number}"] = vector[: len(vector) // 2]
        found[f"other half of vector {number}"] = vector[len(vector) // 2 :]
    for word in (OWNER, THREAD, ID, NAME, "metadata-of-mallory", "payload-of-mallory"):
        found[word] = word.encode()
        found[f"{word} in UTF-16"] = word.encode("utf-16-le")
    return found


def left(folder: Path, wanted: Mapping[str, bytes]) -> set[tuple[str, str]]:
    """Return (file, trace) for everything that is still there."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {
        (file.name, name)
        for file in files
        for name, trace in wanted.items()
        if trace in file.read_bytes()
    }


def opened(folder: Path) -> SemanticRecall:
    return SemanticRecall.open(folder, embedder=HashEmbedder(64))


def fill(memory: SemanticRecall, count: int, owner: str = "anna") -> None:
    memory.remember(
        [{"role": "user", "content": f"harmless words number {n}"} for n in range(count)],
        thread_id="t",
        resource_id=owner,
    )
