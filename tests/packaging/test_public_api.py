import importlib
import subprocess
import sys
from types import FunctionType

import pytest

import semantic_recall

PACKAGES = ["semantic_recall", "langchain_semantic_recall", "llamaindex_semantic_recall"]

# What takes long to import and is only needed once a memory is opened, or never.
HEAVY = ["chromadb", "sqlalchemy", "wordllama", "tokenizers", "tiktoken", "typer", "rich"]
FRAMEWORKS = ["langchain_core", "langgraph", "llama_index"]

IMPORT_MILLISECONDS = 150
"""Of everything that `SemanticRecall` needs, without numpy, which every program that embeds has
loaded; the package alone is lazy and takes none of it."""


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_has_every_public_name(package: str) -> None:
    module = importlib.import_module(package)
    own = {
        name
        for name, value in vars(module).items()
        if isinstance(value, type | FunctionType) and value.__module__.startswith(f"{package}.")
    }
    assert module.__all__ == sorted(module.__all__)
    assert {name for name in own if not name.startswith("_")} <= set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_says_what_it_is(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type):
            # A dataclass without a docstring shows its signature instead of one.
            assert value.__doc__, name
            assert not value.__doc__.startswith(f"{name}("), name


def run(code: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_import_loads_no_driver_and_no_framework() -> None:
    loaded = run("import sys, semantic_recall; print(*sys.modules)").split()
    assert "semantic_recall" in loaded
    assert set(loaded).isdisjoint(HEAVY + FRAMEWORKS)


def test_a_name_is_imported_on_first_use() -> None:
    before, after = run(
        "import sys, semantic_recall\n"
        "print(*sys.modules)\n"
        "semantic_recall.SemanticRecall\n"
        "print(*sys.modules)"
    ).splitlines()
    assert set(before.split()).isdisjoint({"numpy", "asyncio", "semantic_recall.types"})
    assert {"numpy", "semantic_recall.types"} <= set(after.split())
    assert set(after.split()).isdisjoint(HEAVY + FRAMEWORKS)
    assert set(semantic_recall.__all__) <= set(dir(semantic_recall))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = semantic_recall.Nothing  # type: ignore[attr-defined]


def test_the_import_is_quick() -> None:
    code = (
        "from time import process_time as now; a = now(); import numpy; b = now();"
        "from semantic_recall import SemanticRecall; print(b - a, now() - b)"
    )
    times = [[float(part) * 1000 for part in run(code).split()] for _ in range(8)]
    numpy, own = (min(column) for column in zip(*times, strict=True))
    # The import of numpy, 60 ms on a quiet machine, tells how busy this one is.
    assert own < max(IMPORT_MILLISECONDS, 2.5 * numpy)
