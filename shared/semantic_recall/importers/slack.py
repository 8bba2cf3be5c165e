"""Slack's export: a ZIP archive or a folder with a file per channel and day."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from semantic_recall.errors import ImportFormatError
from semantic_recall.importers._archive import Archive, archive_at, is_archive
from semantic_recall.importers._documents import items, listed, mapped, text
from semantic_recall.importers._protocols import Position
from semantic_recall.importers._records import BadRecord, Defaults, RecordError, to_message
from semantic_recall.types import Message

PAYLOAD_KEY = "slack"

_DAY = re.compile(r"(?P<base>.*/)?(?P<channel>[^/]+)/\d{4}-\d{2}-\d{2}\.json")
_LISTS = ("channels.json", "groups.json", "dms.json", "mpims.json")
_USERS = "users.json"
# What the application notes about the channel itself; nobody said it.
_EVENT = re.compile(
    r"(?:channel|group)_|(?:un)?pinned_item|bot_(?:add|remove|enable|disable)|reminder_add"
    r"|tombstone|huddle_thread|sh_room|file_comment"
)
_REFERENCE = re.compile(r"<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>")
_KEPT = ("files", "attachments", "reactions")


@dataclass(frozen=True, slots=True)
class _Person:
    name: str
    is_bot: bool


class SlackImporter:
    """Reads an export; people are users, bots are assistants.

    A channel is a thread, with replies where they were written. `<@U123>` and the like become
    names. Joining, leaving, renaming and so on are no messages. Files, attachments and reactions
    are kept in the payload.

    Args:
        replies_apart: A message and the replies to it are a thread of their own, "channel/ts".
    """

    def __init__(self, *, replies_apart: bool = False) -> None:
        self._replies_apart = replies_apart
        self.name = "slack-threads" if replies_apart else "slack"
        how = "replies as threads of their own" if replies_apart else "channels as threads"
        self.description = f"Slack's export, {how}: its ZIP archive, or the folder out of it"

    def recognises_file(self, path: Path) -> bool:
        """Tell whether there are files by channel and day beside lists of channels or users."""
        if not is_archive(path):
            return False
        with archive_at(path) as archive:
            base, days = _days(archive)
            return bool(days) and any(
                f"{base}{name}" in archive.sizes for name in (*_LISTS, _USERS)
            )

    def read_file(
        self, path: Path, defaults: Defaults, position: Position
    ) -> Iterator[Message | BadRecord]:
        """Yield the messages, channel by channel and day by day; one is in memory at a time.

        Raises:
            ImportFormatError: There is no file of messages, or one cannot be read.
        """
        with archive_at(path) as archive:
            base, days = _days(archive)
            if not days:
                raise ImportFormatError(f"{path} has no files like channel/2025-01-31.json")
            people = _people(archive, f"{base}{_USERS}")
            titles = _titles(archive, base, people)
            position.total = sum(archive.sizes[name] for _, name in days)
            for channel, name in days:
                own = replace(defaults, thread_id=channel)
                reading = _Day(own, titles.get(channel, channel), people, self._replies_apart)
                with archive.open(name) as stream:
                    for number, item in enumerate(items(stream), 1):
                        read = reading.message(item)
                        if isinstance(read, str):
                            line = item.line
                            yield BadRecord(line, read, f"{name}, message {number}, line {line}")
                        elif read is not None:
                            yield read
                position.done += archive.sizes[name]


def _days(archive: Archive) -> tuple[str, list[tuple[str, str]]]:
    """Return the folder of the export, and (channel, file) in the order of channel and day."""
    found = [(match, name) for name in archive.sizes if (match := _DAY.fullmatch(name))]
    bases = {match["base"] or "" for match, _ in found}
    base = min(bases, key=len, default="")
    days = [(str(match["channel"]), name) for match, name in found]
    inside = [
        day for day, (match, _) in zip(days, found, strict=True) if match["base"] in (base, None)
    ]
    return base, sorted(inside)


def _people(archive: Archive, name: str) -> dict[str, _Person]:
    people: dict[str, _Person] = {}
    for entry in _entries(archive, name):
        profile = mapped(entry.get("profile"))
        shown = (
            text(profile.get("display_name"))
            or text(profile.get("real_name"))
            or text(entry.get("real_name"))
            or text(entry.get("name"))
        )
        id_ = text(entry.get("id"))
        if id_ and shown:
            people[id_] = _Person(shown, entry.get("is_bot") is True)
    return people


def _titles(archive: Archive, base: str, people: Mapping[str, _Person]) -> dict[str, str]:
    """Return what each channel's folder is called; of a direct message, who talks."""
    titles: dict[str, str] = {}
    for name in _LISTS:
        for entry in _entries(archive, f"{base}{name}"):
            id_, called = text(entry.get("id")), text(entry.get("name"))
            who = [people[one].name for one in listed(entry.get("members")) if one in people]
            if called:
                titles[called] = called
            elif id_ and who:
                titles[id_] = ", ".join(who)
    return titles


def _entries(archive: Archive, name: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list that the messages can be read without."""
    if name not in archive.sizes:
        return
    with archive.open(name) as stream:
        for item in items(stream):
            if not isinstance(item, BadRecord) and isinstance(item.value, dict):
                yield item.value


class _Day:
    """Reads the messages of one channel."""

    def __init__(
        self, own: Defaults, title: str, people: Mapping[str, _Person], replies_apart: bool
    ) -> None:
        self._own = own
        self._metadata = {"channel": title}
        self._people = people
        self._replies_apart = replies_apart

    def message(self, item: object) -> Message | str | None:
        """Return a message, None for what is none, or why it cannot be read."""
        if isinstance(item, BadRecord):
            return item.reason
        value = getattr(item, "value", None)
        try:
            return self._read(value)
        except RecordError as error:
            return str(error)

    def _read(self, value: object) -> Message | None:
        if not isinstance(value, dict):
            raise RecordError("the message is not an object")
        if value.get("type", "message") != "message" or _EVENT.match(str(value.get("subtype"))):
            return None
        moment = value.get("ts")
        if not text(moment):
            raise RecordError('"ts" is missing')
        name, is_bot = self._speaker(value)
        kept = {key: value[key] for key in _KEPT if value.get(key)}
        record = {
            "role": "assistant" if is_bot else "user",
            "content": self._said(value),
            "id": moment,
            "name": name,
            "created_at": moment,
            "metadata": dict(self._metadata),
            "payload": {PAYLOAD_KEY: kept} if kept else None,
        }
        own, started = self._own, value.get("thread_ts")
        if self._replies_apart and text(started):
            own = replace(own, thread_id=f"{own.thread_id}/{started}")
        return to_message(record, own, position=0)

    def _speaker(self, value: Mapping[str, Any]) -> tuple[str | None, bool]:
        person = self._people.get(str(value.get("user")))
        profile, bot = mapped(value.get("user_profile")), mapped(value.get("bot_profile"))
        is_bot = (
            value.get("subtype") == "bot_message"
            or bool(text(value.get("bot_id")))
            or (person is not None and person.is_bot)
        )
        name = (
            (person.name if person else None)
            or text(profile.get("display_name"))
            or text(profile.get("real_name"))
            or text(value.get("username"))
            or text(bot.get("name"))
            or text(value.get("user"))
        )
        return name, is_bot

    def _said(self, value: Mapping[str, Any]) -> str:
        said = value.get("text")
        if said is not None and not isinstance(said, str):
            raise RecordError('"text" is not a text')
        if said and said.strip():
            return self._plain(said)
        # Bots often speak in attachments only.
        parts = [
            text(mapped(one).get("text")) or text(mapped(one).get("fallback"))
            for one in listed(value.get("attachments"))
        ]
        return self._plain("\n".join(part for part in parts if part))

    def _plain(self, said: str) -> str:
        """Return Slack's markup as people see it: names, labels, characters."""
        return html.unescape(_REFERENCE.sub(self._shown, said))

    def _shown(self, match: re.Match[str]) -> str:
        kind, target, label = match.groups()
        if kind == "@":
            person = self._people.get(target)
            return f"@{person.name if person else label or target}"
        if kind == "#":
            return f"#{label or target}"
        if kind == "!":
            return label or f"@{target}"
        return f"{label} ({target})" if label and label != target else target
