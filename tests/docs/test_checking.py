"""What is wrong on a page is found: the checks of the other files can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs import running
from tests.docs.blocks import ROOT, Block, blocks_of
from tests.docs.checking import check_commands, check_python


def block(code: str, why: str | None = "needs langchain-nowhere") -> Block:
    return Block(ROOT / "docs" / "page.md", "python", 1, code, why)


@pytest.mark.parametrize(
    "code",
    [
        "from semantic_recall import SemanticMemory",
        "from semantic_recall.stores.sql import MessageStore",
        "from semantic_recall import SemanticRecall\nSemanticRecall.open('.', embeddings=None)",
        "from semantic_recall import Settings\nSettings(exact=3)",
        "from langchain_elsewhere import Model",
        "import llama_index.nowhere",
        "def broken(:",
    ],
)
def test_code_that_is_not_run_is_checked(code: str) -> None:
    with pytest.raises((AssertionError, SyntaxError)):
        check_python(block(code))


def test_code_that_is_right_passes() -> None:
    check_python(
        block(
            "from langchain_nowhere.models import Model\n"
            "from semantic_recall import SemanticRecall, Settings\n"
            "with SemanticRecall.open('.', settings=Settings(timeout=1), top_k=2) as memory:\n"
            "    memory.recall('x', resource_id='u', anything=Model())\n"
        )
    )


@pytest.mark.parametrize("line", ["semantic-recall remember", "semantic-recall search x --topk 3"])
def test_a_wrong_command_is_found(line: str) -> None:
    with pytest.raises(AssertionError):
        check_commands(block(line))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("```python\nprint(1)\n```\n", "does not say"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "page.md, line 6"),
        ("```bash\nfalse\n```\n", "page.md, line 2"),
        ("```sh\nsemantic-recall stats\n```\n", "run it"),
        ("```sh\npip install 'chat-semantic-recall[lanchain]'\n```\n", "no extra"),
        ("```toml\n```\n", "a block of 'toml'"),
    ],
)
def test_what_a_page_gets_wrong_is_found(
    text: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr("tests.docs.blocks.ROOT", tmp_path)
    with pytest.raises(AssertionError, match=what):
        running.Page(page, monkeypatch).run()


def test_a_block_in_a_list_and_the_reason_before_it_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("- so:\n\n<!-- not run: a key -->\n\n  ```python\n  if x:\n      y\n  ```\n")
    [found] = blocks_of(page)
    assert (found.language, found.line, found.not_run) == ("python", 6, "a key")
    assert found.code == "if x:\n    y\n"
