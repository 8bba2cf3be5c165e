"""Writes the mass of a conversation from dialogue patterns, the same from the same seed.

A file of patterns holds lists of values and dialogues:

    = dish: ramen | dal | a quiche
    ##
    U: I [made|tried] {dish} [last night|on Sunday], {2-5} people ate it.
    A: Was {dish} better than {dish.b}?

`[a|b]` is one of the two (they nest), `{dish}` one value for the whole dialogue, `{dish.b}` another
value of the same list, `{2-5}` a number, drawn anew each time, and a backslash with an n starts a
new line. A value that the hand-written part of the sample mentions is never drawn, so that filler
does not answer a question by accident.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from benchmarks.own._texts import Line

MAX_REPEATS = 4
"""How often one sentence of filler may stand in the whole set. "Done." is no sentence here."""

_ATTEMPTS = 100
_SHORT = 12
_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(?:(\d+)-(\d+)|([a-z]+)(?:\.[a-z])?)\}")
_START = re.compile(r"(?:^|(?<=[.!?] ))[a-z](?=[a-z']*[ ,!?:])")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")

T = TypeVar("T")
Pattern = tuple[tuple[str, str], ...]
"""(letter of the speaker, text) of each turn of a dialogue."""


def sentences(text: str) -> list[str]:
    """Return the sentences of a text that are longer than a short exclamation."""
    return [part.strip() for part in _SENTENCE_END.split(text) if len(part.strip()) > _SHORT]


def pick(random: Random, values: Sequence[T]) -> T:
    """Return one of the values. Only `random()` gives the same in every version of Python."""
    return values[int(random.random() * len(values))]


class Patterns:
    """The dialogues and lists of some files.

    Args:
        paths: The files; a list may be used by the dialogues of another file.
        told: The hand-written text of the sample, whose words leave the lists.
    """

    def __init__(self, paths: Sequence[Path], told: str) -> None:
        self.dialogues: list[Pattern] = []
        self.values: dict[str, list[str]] = {}
        for path in paths:
            self._read(path)
        folded = told.casefold()
        for name, values in self.values.items():
            self.values[name] = [value for value in values if not _stands_in(value, folded)]

    def _read(self, path: Path) -> None:
        turns: list[tuple[str, str]] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("= "):
                name, _, values = line[2:].partition(": ")
                self.values.setdefault(name, []).extend(values.split(" | "))
            elif line == "##":
                turns = []
                self.dialogues.append(())
            elif line:
                turns.append((line[0], line[3:].replace("\\n", "\n")))
                self.dialogues[-1] = tuple(turns)


class Writer:
    """Draws dialogues for all samples and keeps sentences from repeating."""

    def __init__(self) -> None:
        self._said: Counter[str] = Counter()
        self._drawn: Counter[Pattern] = Counter()
        self.exhausted: set[Pattern] = set()

    def dialogue(
        self, patterns: Patterns, speakers: Mapping[str, str], random: Random
    ) -> list[Line]:
        """Return one dialogue.

        Args:
            patterns: Where to draw from; those drawn least so far come first.
            speakers: The sample's speakers; the first is U, the second A.
            random: The source of chance.

        Raises:
            ValueError: No pattern has variants left.
        """
        names = dict(zip("UA", speakers.values(), strict=True))
        while candidates := self._least_drawn(patterns):
            pattern = pick(random, candidates)
            self._drawn[pattern] += 1
            draw = _Draw(patterns.values, random)
            texts = [self._fresh(text, draw) for _, text in pattern]
            lines = [
                Line(names[letter], text)
                for (letter, _), text in zip(pattern, texts, strict=True)
                if text
            ]
            if len(lines) == len(pattern):
                self._said.update(part for line in lines for part in sentences(line.text))
                return lines
            self.exhausted.add(pattern)
        raise ValueError("every pattern has too few variants left")

    def _least_drawn(self, patterns: Patterns) -> list[Pattern]:
        usable = [p for p in patterns.dialogues if p not in self.exhausted]
        fewest = min((self._drawn[p] for p in usable), default=0)
        return [p for p in usable if self._drawn[p] <= fewest + 1]

    def _fresh(self, text: str, draw: _Draw) -> str:
        """Return a variant none of whose sentences was said too often, "" if there is none."""
        for _ in range(_ATTEMPTS):
            said = draw.render(text)
            if all(self._said[part] < MAX_REPEATS for part in sentences(said)):
                return said
        return ""


class _Draw:
    """The values chosen for one dialogue."""

    def __init__(self, values: Mapping[str, list[str]], random: Random) -> None:
        self._values = values
        self._random = random
        self._chosen: dict[str, str] = {}

    def render(self, text: str) -> str:
        while match := _CHOICE.search(text):
            chosen = pick(self._random, match[1].split("|"))
            text = text[: match.start()] + chosen + text[match.end() :]
        said = text
        while _SLOT.search(said):  # values may hold slots
            said = _SLOT.sub(self._fill, said)
        return _START.sub(lambda match: match[0].upper(), said)

    def _fill(self, match: re.Match[str]) -> str:
        if match[1]:
            return str(
                int(match[1]) + int(self._random.random() * (int(match[2]) - int(match[1]) + 1))
            )
        slot = match[0]
        if slot not in self._chosen:
            taken = set(self._chosen.values())
            free = [value for value in self._values[match[3]] if value not in taken]
            if not free:
                raise ValueError(f"no value left for {slot}")
            self._chosen[slot] = pick(self._random, free)
        return self._chosen[slot]


def _stands_in(value: str, folded: str) -> bool:
    pattern = re.escape(value.casefold())
    # A script without spaces has no word boundaries.
    return bool(re.search(rf"\b{pattern}\b" if value.isascii() else pattern, folded))
