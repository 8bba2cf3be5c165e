"""What a run of faults did to a memory, as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Outcome:
    """What one kind of fault did, over all its times."""

    fault: str
    times: int = 0
    acknowledged: int = 0
    """Messages that the library had said are stored."""
    lost: int = 0
    """Of those, how many are gone, changed, or not found by their own text."""
    resurrected: int = 0
    """Messages that came back after the library had said they are forgotten."""
    crossed: int = 0
    """Messages that a recall of another resource or thread showed."""
    problems: list[str] = field(default_factory=list)
    """Everything else that went wrong: an error, a hang, an index that does not mend."""

    @property
    def harmless(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.resurrected or self.crossed or self.problems)

    def add(self, other: Outcome) -> None:
        """Count another run of the same fault."""
        self.times += other.times
        self.acknowledged += other.acknowledged
        self.lost += other.lost
        self.resurrected += other.resurrected
        self.crossed += other.crossed
        self.problems += other.problems


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the table, and the problems below it."""
    outcomes = list(outcomes)
    head = ("fault", "times", "acknowledged", "lost", "resurrected", "crossed", "problems")
    rows = [
        (o.fault, o.times, o.acknowledged, o.lost, o.resurrected, o.crossed, len(o.problems))
        for o in outcomes
    ]
    width = max(len(str(row[0])) for row in [head, *rows])
    lines = [
        f"{name:<{width}}" + "".join(f"  {number:>12}" for number in numbers)
        for name, *numbers in [head, *rows]
    ]
    lines += [f"  {o.fault}: {problem}" for o in outcomes for problem in o.problems[:20]]
    return "\n".join(lines)
