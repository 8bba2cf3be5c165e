"""Who owns the folder of an embedded Chroma index: one process at a time, and no forked child."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from semantic_recall.errors import IndexLockedError, VectorIndexError

if sys.platform != "win32":
    import fcntl


class Ownership:
    """A lock on a folder, which is made if it is missing.

    Two processes on one Chroma folder corrupt it without an error. So there is a lock file beside
    it; and, because somebody may delete that while it is held, a lock on the folder itself, where
    the file system has such locks. (Windows deletes no file that is open.)

    Raises:
        IndexLockedError: Another process, or another index of this one, holds the folder.
        VectorIndexError: The folder or its lock file cannot be made, or this process was forked
            from one that had used Chroma.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _check_fork(path)
        self._file, self._folder = _acquired(path)
        _held[path] = self._folder
        _used.add(path)

    def release(self) -> None:
        """Let others have the folder; releasing twice is fine."""
        _held.pop(self._path, None)
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None
        self._file.release(force=True)


def check_free(path: Path) -> None:
    """See that nobody owns a folder, which is made if it is missing; takes less than 1 ms.

    Raises:
        IndexLockedError: Another process, or another index of this one, holds the folder.
        VectorIndexError: The folder or its lock file cannot be made.
    """
    file, folder = _acquired(path)
    if folder is not None:
        os.close(folder)
    file.release(force=True)


def _acquired(path: Path) -> tuple[FileLock, int | None]:
    """Lock the file beside a folder and the folder itself, if that works."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = FileLock(f"{path}.lock", thread_local=False)
        file.acquire(timeout=0)
        try:
            path.mkdir(exist_ok=True)
            return file, _locked(path)
        except BaseException:
            file.release(force=True)
            raise
    except Timeout as error:
        raise IndexLockedError(
            f"the vector index {path} is in use by another process, or by another memory "
            "of this one; it indexes for all. Close it there to use the index here"
        ) from error
    except (OSError, ValueError) as error:
        raise VectorIndexError(f"the vector index {path} cannot be locked: {error}") from error


def _locked(folder: Path) -> int | None:
    """Lock a folder itself; None where that does not work.

    Raises:
        Timeout: Somebody else has locked it.
    """
    if sys.platform == "win32":
        return None
    opened = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(opened)
        if isinstance(error, BlockingIOError):
            raise Timeout(str(folder)) from error
        return None  # such as on NFS, which locks no folders
    return opened


_held: dict[Path, int | None] = {}
_used: set[Path] = set()
_held_by_parent: set[Path] = set()
_used_by_parent: set[Path] = set()


def _check_fork(path: Path) -> None:
    """Refuse Chroma to a child of a process that has used it: calls would hang for ever.

    Chroma's threads are not in the child, and its SQLite believes in locks of the parent.
    """
    if path in _held_by_parent:
        raise IndexLockedError(
            f"the vector index {path} was open when this process was forked; the parent indexes "
            "for it. To own it here, fork before the memory is opened"
        )
    if _used_by_parent:
        raise VectorIndexError(
            f"the vector index {path} cannot be opened: this process was forked from one that had "
            "used Chroma. Fork before a memory is opened, or start processes with 'spawn'"
        )


def _after_fork_in_child() -> None:
    _held_by_parent.update(_held)
    _used_by_parent.update(_used)
    for folder in _held.values():
        if folder is not None:
            # The parent's lock ends with the parent, not with the last of its children.
            with suppress(OSError):
                os.close(folder)
    _held.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
