"""With `ranking="dense"` recall brings back what Mastra's SemanticRecall 1.71 brings back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from semantic_recall import Message, SemanticRecall
from tests.core.embedders import TableEmbedder

TRACE = json.loads((Path(__file__).parents[1] / "data" / "mastra_parity.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SemanticRecall]:
    table = {f"{m['role']}: {m['text']}": m["vector"] for m in TRACE["messages"]}
    path = tmp_path_factory.mktemp("parity")
    with SemanticRecall.open(path, embedder=TableEmbedder(table, dimensions=4)) as memory:
        memory.remember(
            Message(
                id=m["id"],
                role=m["role"],
                text=m["text"],
                thread_id=m["threadId"],
                resource_id=TRACE["resource_id"],
                created_at=datetime.fromisoformat(m["createdAt"].replace("Z", "+00:00")),
            )
            for m in TRACE["messages"]
        )
        yield memory


@pytest.mark.parametrize("case", TRACE["cases"], ids=lambda case: case["name"])
def test_recalls_what_mastra_recalls(memory: SemanticRecall, case: dict[str, Any]) -> None:
    def recall(**overrides: Any) -> Any:
        return memory.recall(
            TRACE["query"]["text"],
            query_vector=np.asarray(TRACE["query"]["vector"], np.float32),
            thread_id=case["thread_id"],
            resource_id=TRACE["resource_id"],
            ranking="dense",
            scope=case["scope"],
            top_k=case["top_k"],
            message_range=(case["before"], case["after"]),
            **overrides,
        )

    recalled = recall(threshold=case["threshold"], exclude_ids=case["history"])
    assert [m.message.id for m in recalled.same_thread] == case["same_thread"]
    assert [m.message.id for m in recalled.cross_thread] == case["cross_thread"]
    nearest = [(hit.message.id, hit.score) for hit in recall().hits]
    assert [id for id, _ in nearest] == [hit["id"] for hit in case["hits"]]
    assert [score for _, score in nearest] == pytest.approx([hit["score"] for hit in case["hits"]])
