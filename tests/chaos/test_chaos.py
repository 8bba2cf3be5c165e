"""The short run of `python -m tests.chaos`; the long one is `make chaos`."""

import subprocess
import sys

import pytest


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute on an idle machine
def test_nothing_is_lost_comes_back_or_is_shown_to_others() -> None:
    """In a process of its own: it forks, and pytest may have used Chroma."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--short"],
        capture_output=True,
        text=True,
        timeout=870,
    )
    print(run.stdout)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"
    assert "killed while remembering" in run.stdout
