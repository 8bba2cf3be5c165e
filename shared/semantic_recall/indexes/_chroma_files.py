"""Chroma's vector files: whether they are whole, and blanking what they hold by accident.

A segment is a folder in the format of hnswlib. Its header.bin begins, little endian, with a
version, the offset of the first element, the room for elements, their count, and the bytes of
each. data_level0.bin is the elements, length.bin four bytes per element, link_lists.bin for each
element a length and that many bytes; index_metadata.pickle is there once anything was written
out. Chroma writes them in place, and looks for damage only when it stumbles over it.
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct("<i4Q")
_HEADER_BYTES = 100
_VERSION = b"\1\0\0\0"
_LENGTH = struct.Struct("<I")
_FILES = ("header.bin", "data_level0.bin", "length.bin", "link_lists.bin")
_PICKLE = "index_metadata.pickle"


def damage(folder: Path) -> str | None:
    """Return what is wrong with a segment that vectors were moved into, or None.

    Before that Chroma does without the files, whatever their state.
    """
    for name in (*_FILES, _PICKLE):
        if not (folder / name).is_file():
            return f"{name} is missing"
    if (folder / "header.bin").stat().st_size != _HEADER_BYTES:
        return "header.bin is torn"
    if not (folder / "header.bin").read_bytes().startswith(_VERSION):
        return "header.bin is damaged"
    count, size = _count_and_size(folder)
    if (folder / "data_level0.bin").stat().st_size < count * size:
        return "data_level0.bin is torn"
    if (folder / "length.bin").stat().st_size < count * _LENGTH.size:
        return "length.bin is torn"
    if not _links_are_whole((folder / "link_lists.bin").read_bytes(), count):
        return "link_lists.bin is torn"
    return None if _is_whole_pickle(folder / _PICKLE) else f"{_PICKLE} is torn"


def blank(folder: Path) -> None:
    """Overwrite what lies behind the elements: memory that the process had used for other things.

    Chroma writes a new segment with room for 100 elements, whatever its memory holds there.
    """
    if any(not (folder / name).is_file() for name in _FILES):
        return
    count, size = _count_and_size(folder)
    _zero(folder / "data_level0.bin", count * size)
    _zero(folder / "length.bin", count * _LENGTH.size)


def _count_and_size(folder: Path) -> tuple[int, int]:
    with (folder / "header.bin").open("rb") as file:
        head = file.read(_HEADER.size).ljust(_HEADER.size, b"\0")
    _, _, _, count, size = _HEADER.unpack(head)
    return count, size


def _links_are_whole(links: bytes, count: int) -> bool:
    place = 0
    for _ in range(count):
        if place + _LENGTH.size > len(links):
            return False
        place += _LENGTH.size + _LENGTH.unpack_from(links, place)[0]
    return place <= len(links)


def _is_whole_pickle(path: Path) -> bool:
    data = path.read_bytes()
    return data.startswith(b"\x80") and data.endswith(b".")


def _zero(path: Path, start: int) -> None:
    end = path.stat().st_size
    if start < end:
        with path.open("r+b") as file:
            file.seek(start)
            file.write(bytes(end - start))


def is_cut_short(database: Path) -> bool:
    """Tell whether an SQLite file has fewer pages than it says; its journal must be gone."""
    with database.open("rb") as file:
        head = file.read(100)
    if len(head) < 100 or head[24:28] != head[92:96]:
        return 0 < len(head) < 100
    page = int.from_bytes(head[16:18], "big")
    pages = int.from_bytes(head[28:32], "big")
    return database.stat().st_size < pages * (65536 if page == 1 else page)
