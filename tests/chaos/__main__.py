"""Break a memory in every way and print what was lost: `python -m tests.chaos --rounds 200`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.chaos import crowd, damage, disk, kills
from tests.chaos.outcomes import Outcome, table


def main() -> int:
    """Run the faults; returns 0 when nothing was lost, came back or was shown to others."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="how many kills")
    parser.add_argument("--messages", type=int, default=10_000, help="of each of four writers")
    parser.add_argument("--damages", type=int, default=24, help="how many files to break")
    parser.add_argument("--disks", type=int, default=3, help="how often the disk is full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="a few of each, in a minute")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.rounds, arguments.messages, arguments.damages, arguments.disks = 12, 300, 1, 1
    began = time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # another user looks at a read-only memory in it
        runs: list[Callable[[], list[Outcome]]] = [
            lambda: kills.run(folder, arguments.rounds, arguments.seed),
            lambda: damage.run(folder, arguments.damages, arguments.seed),
            lambda: disk.run(folder, arguments.disks, arguments.seed, real=not arguments.short),
            lambda: crowd.run(folder, arguments.messages, arguments.seed),
        ]
        for faults in runs:
            began_these = time.monotonic()
            outcomes += faults()
            print(f"... {time.monotonic() - began_these:.0f} s", file=sys.stderr, flush=True)
    print(table(outcomes))
    print(f"{time.monotonic() - began:.0f} s, seed {arguments.seed}")
    return 0 if all(outcome.harmless for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
