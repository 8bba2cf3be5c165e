"""What can be imported, and what is needed for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import langchain_semantic_recall as package

WITHOUT_LANGCHAIN = """
import sys
sys.modules["langchain"] = None
sys.modules["langgraph"] = None
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_the_public_names() -> None:
    assert package.__all__ == sorted(package.__all__)
    assert package.__all__ == dir(package)
    assert [getattr(package, name).__name__ for name in package.__all__] == package.__all__
    assert all(getattr(package, name).__doc__ for name in package.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = package.Nothing


def test_everything_but_the_middleware_works_with_langchain_core_alone() -> None:
    names = [name for name in package.__all__ if name != "SemanticRecallMiddleware"]
    done = run(f"{WITHOUT_LANGCHAIN}\nfrom langchain_semantic_recall import {', '.join(names)}")
    assert done.returncode == 0, done.stderr


def test_the_middleware_without_langchain_says_what_to_install() -> None:
    done = run(
        f"{WITHOUT_LANGCHAIN}\nfrom langchain_semantic_recall import SemanticRecallMiddleware"
    )
    assert done.returncode == 1
    assert 'pip install "chat-semantic-recall[langchain]"' in done.stderr
    assert "MissingDependencyError" in done.stderr.splitlines()[-1]


def test_a_broken_langchain_is_not_called_missing() -> None:
    broken = "import sys; sys.modules['langchain_core.messages'] = None\n"
    done = run(f"{broken}\nfrom langchain_semantic_recall import SemanticRecallMiddleware")
    assert done.returncode == 1
    assert "MissingDependencyError" not in done.stderr


def test_the_package_does_not_import_langchain_or_a_driver() -> None:
    done = run(
        "import sys, langchain_semantic_recall\n"
        "print(sorted({'langchain', 'langgraph', 'chromadb', 'wordllama'} & set(sys.modules)))"
    )
    assert done.stdout.strip() == "[]", done.stderr
