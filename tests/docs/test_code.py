"""The code in the README and in docs/ runs, and prints what the pages say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, blocks_of, name_of
from tests.docs.running import Page

WITH_CODE = [page for page in PAGES if any(blocks_of(page))]


@pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecationWarning")  # LlamaIndex's
@pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")  # local Qdrant
@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMANTIC_RECALL_PATH", raising=False)
    Page(page, monkeypatch).run()
