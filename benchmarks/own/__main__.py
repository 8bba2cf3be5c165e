"""`python -m benchmarks.own FILE` writes the set, by default to build/own.json."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.own import build

if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "build/own.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(build(), ensure_ascii=False, indent=1), encoding="utf-8")
