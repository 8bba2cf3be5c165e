"""A tool with which an agent searches its past itself."""

from __future__ import annotations

from llama_index.core.tools import FunctionTool
from typing_extensions import Unpack

from llamaindex_semantic_recall._options import scoped
from semantic_recall import SemanticRecall
from semantic_recall.options import RecallOverrides
from semantic_recall.result import Recall

_DESCRIPTION = (
    "Search earlier conversations with this user. Use it when the answer may depend on something "
    "that was said before and is not in the present conversation."
)
_NOTHING = "Nothing was found in earlier conversations."


def create_recall_tool(
    recall: SemanticRecall,
    *,
    thread_id: str | None = None,
    resource_id: str | None = None,
    name: str = "search_memory",
    description: str = _DESCRIPTION,
    **wanted: Unpack[RecallOverrides],
) -> FunctionTool:
    """Return a tool that takes a `query` and returns matching messages as one record.

    Whose conversations it searches is fixed here; the model cannot choose it. A failing search
    finds nothing and is a warning in the log.

    Args:
        recall: The opened memory.
        thread_id: The present conversation.
        resource_id: Whose conversations; without one only the thread is searched.
        name: What the model calls.
        description: What tells the model when to call it.
        **wanted: Any option of `RecallOptions`.

    Raises:
        InvalidScopeError: Neither thread_id nor resource_id was given.
    """
    chosen = scoped(recall, thread_id, resource_id, wanted)

    def search(query: str) -> str:
        found = recall.recall_for_turn(
            query, thread_id=thread_id, resource_id=resource_id, **chosen
        )
        return _told(found)

    async def asearch(query: str) -> str:
        found = await recall.arecall_for_turn(
            query, thread_id=thread_id, resource_id=resource_id, **chosen
        )
        return _told(found)

    return FunctionTool.from_defaults(
        fn=search, async_fn=asearch, name=name, description=description
    )


def _told(found: Recall) -> str:
    return found.block("all") or _NOTHING
