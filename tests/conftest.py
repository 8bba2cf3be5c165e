"""What all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Suites that other projects can use are not test files, so pytest has to be told to explain
# their assertions; this must come before the first import of them.
pytest.register_assert_rewrite("semantic_recall.testing")

# Nothing leaves the machine: see --allow-hosts in pyproject.toml; these would try.
os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ["LANGSMITH_TRACING"] = "false"

# The machine that runs the tests decides neither what is tried nor how long it may take.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture
def memory_path(tmp_path: Path) -> Path:
    """A folder for a memory; it does not exist yet."""
    return tmp_path / "memory"
