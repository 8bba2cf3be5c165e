"""The default embedder: offline, quiet, checked, and equal to the library it stands for."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from semantic_recall.adapting import encodable
from semantic_recall.embedders._support import check_file
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.errors import EmbedderError, InvalidOptionError

OFFLINE = """
import socket
def refuse(*arguments, **options): raise AssertionError("the network was used")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
"""


def run(code: str, path: Path | None = None) -> str:
    """Run code in a process of its own that may neither warn, print on stderr nor connect."""
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE + code],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


def test_loading_touches_neither_network_nor_logging_nor_the_package() -> None:
    out = run("""
import logging, os, sys
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
before = dict(os.environ)
WordLlamaEmbedder().embed_documents(["hello"])
assert dict(os.environ) == before
print(logging.getLogger().handlers, logging.getLogger().level, "wordllama" in sys.modules)
""")
    assert out == "[] 30 False"


def test_vectors_are_those_of_the_library() -> None:
    out = run("""
from pathlib import Path
import numpy as np, wordllama
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
texts = ["user: hello there", "Das ist ein Satz.", "你好", "a", "long text " * 180, "\\0 😀"]
home = Path(wordllama.__file__).parent
for dimensions in (256, 128, 64):
    model = wordllama.WordLlama.load(cache_dir=home, disable_download=True, trunc_dim=dimensions)
    theirs = model.embed(texts, norm=True)
    ours = np.array(WordLlamaEmbedder(dimensions).embed_documents(texts))
    print(bool(np.abs(theirs - ours).max() < 1e-5), ours.shape)
""")
    assert out.splitlines() == ["True (6, 256)", "True (6, 128)", "True (6, 64)"]


def test_a_forked_child_can_embed() -> None:
    if sys.platform == "win32":
        return  # there is no fork to survive
    out = run("""
import os, warnings
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
embedder = WordLlamaEmbedder()
before = embedder.embed_documents(["hello"] * 100)[0]
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork beside threads
child = os.fork()
if child == 0:
    same = (embedder.embed_documents(["hello"] * 100)[0] == before).all()
    os._exit(7 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert out == "7"


def test_a_damaged_wheel_is_refused_with_the_remedy(tmp_path: Path) -> None:
    spec = find_spec("wordllama")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    home = Path(spec.submodule_search_locations[0])
    fake = tmp_path / "wordllama"
    for part in ("weights", "tokenizers"):
        shutil.copytree(home / part, fake / part)
    (fake / "__init__.py").touch()
    weights = fake / "weights" / "l2_supercat_256.safetensors"
    code = """
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.errors import EmbedderError
try:
    WordLlamaEmbedder().embed_query("a")
except EmbedderError as error:
    print(error)
else:
    print("fine")
"""
    assert run(code, tmp_path) == "fine"
    with weights.open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"\0\1\2\3")
    assert "is not the one expected" in run(code, tmp_path)
    weights.unlink()
    refusal = run(code, tmp_path)
    assert "cannot read the model file" in refusal
    assert "pip install" in refusal


def test_a_missing_package_is_named_with_the_command() -> None:
    out = run("""
import sys
sys.modules["wordllama"] = None
from semantic_recall.embedders.wordllama import WordLlamaEmbedder
from semantic_recall.errors import MissingDependencyError
try:
    WordLlamaEmbedder().embed_query("a")
except MissingDependencyError as error:
    print(error)
""")
    assert "'wordllama' is not installed" in out
    assert "pip install" in out


def test_texts_without_tokens_share_one_vector() -> None:
    empty, again, word = WordLlamaEmbedder().embed_documents(["", "", "word"])
    np.testing.assert_array_equal(empty, again)
    assert empty @ word < 0.9


def test_meaning_counts() -> None:
    question, answer, other = WordLlamaEmbedder().embed_documents(
        ["Which food is she allergic to?", "Anna cannot eat peanuts.", "The train leaves at nine."]
    )
    assert question @ answer > question @ other


@pytest.mark.parametrize("dimensions", [0, 32, 255, 512])
def test_dimensions_that_do_not_exist_are_refused(dimensions: int) -> None:
    with pytest.raises(InvalidOptionError, match="64, 128, 256"):
        WordLlamaEmbedder(dimensions)


def test_spaces_of_other_dimensions_differ() -> None:
    assert len({WordLlamaEmbedder(dimensions).space for dimensions in (64, 128, 256)}) == 3


def test_checking_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"numbers" * 1_000_000)
    check_file(path, hashlib.sha256(b"numbers" * 1_000_000).hexdigest(), remedy="do this")
    with pytest.raises(EmbedderError, match="do this"):
        check_file(path, "0" * 64, remedy="do this")
    with pytest.raises(EmbedderError, match="do that") as caught:
        check_file(tmp_path / "none", "0" * 64, remedy="do that")
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("plain", "plain"),
        ("ünï 你好 😀 \0", "ünï 你好 😀 \0"),
        ("a\ud83db", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_lone_surrogates_become_replacement_characters(text: str, clean: str) -> None:
    assert encodable(text) == clean
