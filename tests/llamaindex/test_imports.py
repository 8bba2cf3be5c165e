"""What can be imported, and what is needed for it."""

from __future__ import annotations

import subprocess
import sys

import llamaindex_semantic_recall as package


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )


def test_the_public_names() -> None:
    assert package.__all__ == sorted(package.__all__)
    assert [getattr(package, name).__name__ for name in package.__all__] == package.__all__


def test_without_llamaindex_it_says_what_to_install() -> None:
    done = run("import sys; sys.modules['llama_index'] = None; import llamaindex_semantic_recall")
    assert done.returncode == 1
    assert 'pip install "chat-semantic-recall[llamaindex]"' in done.stderr
    assert "MissingDependencyError" in done.stderr.splitlines()[-1]


def test_a_broken_dependency_of_llamaindex_is_not_called_missing() -> None:
    done = run("import sys; sys.modules['tenacity'] = None; import llamaindex_semantic_recall")
    assert done.returncode == 1
    assert "MissingDependencyError" not in done.stderr


def test_the_package_loads_no_database_driver_and_no_model() -> None:
    done = run(
        "import sys, llamaindex_semantic_recall\n"
        "heavy = {'chromadb', 'qdrant_client', 'wordllama', 'langchain_core'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
