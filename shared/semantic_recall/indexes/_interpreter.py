"""How a module of this library is run in a process of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def command(module: str, *arguments: str) -> list[str] | None:
    """Return the command that runs a module; None where there is no interpreter to run it.

    In a frozen or embedding application `sys.executable` is that application, or nothing.
    """
    if not Path(sys.executable or "").name.lower().startswith(("python", "pypy")):
        return None
    return [sys.executable, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Return an environment in which the command finds what this process would import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
