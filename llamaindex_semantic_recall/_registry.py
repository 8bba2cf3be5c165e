"""Which opened memory a serialised chat memory belongs to.

A workflow's `Context` writes its memory down and reads it back for every further run, also in
another process. What is written are ids: messages stay in the store, and no path or password
leaves the process.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError, StoreClosedError

if TYPE_CHECKING:
    from llamaindex_semantic_recall.memory import SemanticRecallMemory

_opened: weakref.WeakSet[SemanticRecall] = weakref.WeakSet()
_memories: weakref.WeakValueDictionary[str, SemanticRecallMemory] = weakref.WeakValueDictionary()


def connect(recall: SemanticRecall) -> None:
    """Let chat memories that were serialised by another process be read back onto `recall`.

    Call it before `Context.from_dict`; making a `SemanticRecallMemory` does the same.
    """
    _opened.add(recall)


def add(recall: SemanticRecall, instance_id: str, memory: SemanticRecallMemory) -> None:
    """Make a memory known."""
    connect(recall)
    _memories[instance_id] = memory


def find(instance_id: str) -> SemanticRecallMemory | None:
    """Return the living memory of this process, if there is one."""
    return _memories.get(instance_id)


def serves(recall: SemanticRecall, wanted: str) -> bool:
    """Tell whether `recall` is open and is the memory with this id."""
    try:
        return recall.memory_id == wanted
    except StoreClosedError:
        return False


def opened(wanted: str) -> SemanticRecall:
    """Return the opened memory with this id.

    Raises:
        ConfigurationError: It is not open in this process.
    """
    for recall in list(_opened):
        if serves(recall, wanted):
            return recall
    raise ConfigurationError(
        "a serialised SemanticRecallMemory belongs to a memory that is not open in this process; "
        "call llamaindex_semantic_recall.connect(SemanticRecall.open(...)) before reading it"
    )
