"""Each notebook runs from top to bottom, offline and without a key, and says what it promises."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

SAYS = {
    "01_langchain_agent": (
        "You are allergic to peanuts, so no satay.",
        "I don't know what you can't eat.",
        "--- system\nYou are a helpful cook.\n\nBelow is a record",
        "10 messages forgotten",
        '<div class="semantic-recall recall" role="group" aria-label="Recall">',
    ),
    "02_langchain_chains": (
        "The Alfama Rooms.",
        "--- human\nBelow is a record",
        "bike | user: My bike makes a clicking noise",
        "It was the pedal: a drop of grease made it quiet.",
        "search_memory | conversations, query, since, until",
        "You stay in the Hotel Alfama Rooms.",
    ),
    "03_llamaindex_chat_engine": (
        "Your cat is called Mochi.",
        "I don't know your cat.",
        "--- system\nBelow is a record",
        "('assistant', 'Your cat is called Mochi.')",
        "monday: She sleeps on my keyboard.",
    ),
    "04_tuning_recall": (
        "200 messages, 15 questions",
        '<div class="semantic-recall recall" role="group" aria-label="Recall">',
        "over max_tokens",
        "answers kept",
        "<Figure size",
        "threshold=0.05",
    ),
    "05_scale_out": (
        "bob stored 20 messages; owns the index: False",
        "['bob saw bird number 19']",
        "store and index agree: True",
        "['I keep bees.'] | 2 vectors in Chroma",
        "searching exactly",
        "['The bees swarmed today.']",
        "['My train to Ghent leaves at 9:40.']",
        "1 message, 1 vector",
    ),
}
"""What must stand in the outputs of each."""

DISPLAYED = ("text/plain", "text/html")

# In the kernel, before the first cell: what pytest does for the other tests.
SETUP = """
import warnings
from pydantic.warnings import PydanticDeprecationWarning
from pytest_socket import socket_allow_hosts

warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="ipykernel")  # complains about itself when it ends
warnings.filterwarnings("ignore", category=PydanticDeprecationWarning)  # agents of LlamaIndex
socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)
"""


def load(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    assert isinstance(notebook, NotebookNode)
    return notebook


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def shown(notebook: NotebookNode) -> str:
    """Everything that the cells print, then what they display as text or HTML."""
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    # A kernel may send one line in two pieces, so nothing goes between them.
    printed = "".join(output.get("text", "") for output in outputs)
    data = [output.get("data", {}) for output in outputs]
    return "\n".join([printed, *(one.get(kind, "") for one in data for kind in DISPLAYED)])


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a kernel inherits: no key, no settings of this user, the packages under test."""
    for name in os.environ:
        if re.search(r"API_KEY|_TOKEN|_PROXY", name, re.IGNORECASE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # the PostgreSQL from PyPI wants one


def test_each_notebook_is_known_and_in_the_index() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(SAYS)
    index = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    assert re.findall(r"\(\.\./notebooks/(\w+)\.ipynb\)", index) == sorted(SAYS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_has_no_outputs_and_names_a_real_provider(path: Path) -> None:
    notebook = load(path)
    nbformat.validate(notebook)
    for cell in code_cells(notebook):
        assert (cell.outputs, cell.execution_count) == ([], None)
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert "openai" in path.read_text(encoding="utf-8").lower()


@pytest.mark.slow
@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_says_what_it_promises(path: Path, tmp_path: Path) -> None:
    notebook = load(path)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETUP))  # type: ignore[no-untyped-call]
    folder = tmp_path / "work"
    folder.mkdir()
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}})
    client.execute()  # raises what a cell raises
    for cell in code_cells(notebook):
        streams = {output.get("name") for output in cell.outputs} - {None, "stdout"}
        allowed = {"stderr"} if "logs" in cell.metadata.get("tags", ()) else set()
        assert streams <= allowed, cell
    text = shown(notebook)
    assert [phrase for phrase in SAYS[path.stem] if phrase not in text] == []
    assert list(folder.iterdir()) == []  # each tidies up after itself
