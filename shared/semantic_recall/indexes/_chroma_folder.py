"""The folder of an embedded Chroma index: whether it is whole, and what Chroma leaves in it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from semantic_recall.indexes._chroma_files import blank, damage, is_cut_short
from semantic_recall.indexes._chroma_lock import Ownership
from semantic_recall.indexes._chroma_probe import probe

_FILLED = (
    "SELECT segments.id FROM segments JOIN max_seq_id ON segment_id = segments.id"
    " WHERE scope = 'VECTOR'"
)
"""The segments that vectors were moved into."""


class Gate:
    """Lets in many callers at once, or one alone."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._taken = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the gate together with others."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep newcomers out, wait for those inside, and hold the gate alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken)
            self._taken = True
            self._changed.wait_for(lambda: self._inside == 0)
        try:
            yield
        finally:
            with self._changed:
                self._taken = False
                self._changed.notify_all()


class Folder:
    """A Chroma folder that this object has locked for itself.

    Raises:
        IndexLockedError: Another process, or another index of this one, holds the folder.
        VectorIndexError: The folder or its lock file cannot be made, or this process was forked
            from one that had used Chroma.
    """

    def __init__(self, path: Path) -> None:
        # Two spellings of one folder must meet at one lock.
        self.path = Path(os.path.realpath(path))
        self._ownership = Ownership(self.path)
        self._mark = self.path / "in-use"
        self.is_doubtful = self._mark.exists()
        """Whether the last owner ended without closing the index."""
        with suppress(OSError):  # what cannot be written here will soon be said more clearly
            self._mark.touch()

    def release(self, *, clean: bool = False) -> None:
        """Let others have the folder; releasing twice is fine.

        Args:
            clean: Chroma has closed it.
        """
        if clean:
            with suppress(OSError):
                self._mark.unlink(missing_ok=True)
        self._ownership.release()

    @property
    def database(self) -> Path:
        """Chroma's SQLite file."""
        return self.path / "chroma.sqlite3"

    def damage(self, *, thorough: bool = False) -> str | None:
        """Return what is wrong with the files, or None.

        Chroma opens some damaged files without a word, and cannot mend any. After an owner that
        did not close the index, another process looks first whether reading it ends a process.

        Args:
            thorough: Read the whole database, not only what tells that it is cut short.
        """
        if not self.database.is_file():
            return f"{self.database.name} is missing" if self._segments() else None
        if not self._journal.exists() and is_cut_short(self.database):
            return f"{self.database.name} is torn"
        try:
            with closing(sqlite3.connect(self.database, timeout=30)) as connection:
                if thorough:
                    found = connection.execute("PRAGMA quick_check(1)").fetchone()
                    if found != ("ok",):
                        return f"{self.database.name} is damaged: {found}"
                segments = connection.execute(_FILLED).fetchall()
        except sqlite3.OperationalError:  # locked, no permission, no tables yet: not damage
            return None
        except sqlite3.DatabaseError as error:
            return f"{self.database.name} is damaged: {error}"
        for (id,) in segments:
            what = damage(self.path / str(id))
            if what is not None:
                return f"{id}: {what}"
        # The structure is sound; what it says may still lead Chroma's native code astray.
        return probe(self.path) if segments and self.is_doubtful else None

    def empty(self) -> None:
        """Remove the database and the vectors; no client may be open.

        They are derived and rebuilt from the store; damaged, they would break the index for good.
        """
        self.database.unlink(missing_ok=True)
        self._journal.unlink(missing_ok=True)
        for entry in self._segments():
            shutil.rmtree(entry)

    def blank(self) -> None:
        """Overwrite what new segments hold by accident."""
        for entry in self._segments():
            blank(entry)

    @property
    def _journal(self) -> Path:
        return self.database.with_name(self.database.name + "-journal")

    def _segments(self) -> list[Path]:
        if not self.path.is_dir():
            return []
        return [entry for entry in self.path.iterdir() if _is_uuid(entry.name)]

    def remove_leftovers(self) -> None:
        """Remove the vector files of deleted collections, which Chroma leaves in place (#5520)."""
        found = self._segments()
        # The folders were listed first: a segment is known to the database before it has one.
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            known = {str(row[0]) for row in connection.execute("SELECT id FROM segments")}
        for entry in found:
            if entry.name not in known:
                shutil.rmtree(entry, ignore_errors=False)

    def overwritten(self) -> set[str]:
        """Return the ids of collections whose log still holds an older vector of some id."""
        with closing(sqlite3.connect(self.database, timeout=30)) as connection:
            rows = connection.execute(
                "SELECT DISTINCT topic FROM embeddings_queue GROUP BY topic, id HAVING count(*) > 1"
            ).fetchall()
        return {str(topic).rpartition("/")[2] for (topic,) in rows}

    def vacuum(self) -> None:
        """Rewrite the database without freed pages and without the log of deleted collections.

        No client may be open.
        """
        with closing(
            sqlite3.connect(self.database, timeout=30, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            known = {str(row[0]) for row in connection.execute("SELECT id FROM collections")}
            topics = connection.execute("SELECT DISTINCT topic FROM embeddings_queue").fetchall()
            for (topic,) in topics:
                if str(topic).rpartition("/")[2] not in known:
                    connection.execute("DELETE FROM embeddings_queue WHERE topic = ?", (topic,))
            connection.execute("VACUUM")


def _is_uuid(name: str) -> bool:
    try:
        return str(uuid.UUID(name)) == name
    except ValueError:
        return False
