"""Semantic recall for chat: find the past messages that matter and put them into the prompt."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semantic_recall.erasure import ForgetReceipt
    from semantic_recall.errors import (
        AbortTurn,
        ConfigurationError,
        EmbedderError,
        ImportFormatError,
        IndexLockedError,
        InvalidIdError,
        InvalidOptionError,
        InvalidScopeError,
        InvalidVectorError,
        MissingDependencyError,
        RerankerError,
        SemanticRecallError,
        StoreClosedError,
        StoreError,
        VectorIndexError,
        VectorSpaceMismatchError,
    )
    from semantic_recall.maintenance import ReindexReport, Stats, VerifyReport
    from semantic_recall.options import RecallOptions, RecallOverrides
    from semantic_recall.recall import SemanticRecall
    from semantic_recall.result import Recall
    from semantic_recall.settings import Settings
    from semantic_recall.types import (
        Hit,
        Message,
        MessageRange,
        RecalledMessage,
        ResourceInfo,
        Scope,
        ThreadInfo,
        VectorRecord,
        VectorSpace,
    )

__all__ = [
    "AbortTurn",
    "ConfigurationError",
    "EmbedderError",
    "ForgetReceipt",
    "Hit",
    "ImportFormatError",
    "IndexLockedError",
    "InvalidIdError",
    "InvalidOptionError",
    "InvalidScopeError",
    "InvalidVectorError",
    "Message",
    "MessageRange",
    "MissingDependencyError",
    "Recall",
    "RecallOptions",
    "RecallOverrides",
    "RecalledMessage",
    "ReindexReport",
    "RerankerError",
    "ResourceInfo",
    "Scope",
    "SemanticRecall",
    "SemanticRecallError",
    "Settings",
    "Stats",
    "StoreClosedError",
    "StoreError",
    "ThreadInfo",
    "VectorIndexError",
    "VectorRecord",
    "VectorSpace",
    "VectorSpaceMismatchError",
    "VerifyReport",
]

_MODULES = {
    "AbortTurn": "errors",
    "ConfigurationError": "errors",
    "EmbedderError": "errors",
    "ForgetReceipt": "erasure",
    "Hit": "types",
    "ImportFormatError": "errors",
    "IndexLockedError": "errors",
    "InvalidIdError": "errors",
    "InvalidOptionError": "errors",
    "InvalidScopeError": "errors",
    "InvalidVectorError": "errors",
    "Message": "types",
    "MessageRange": "types",
    "MissingDependencyError": "errors",
    "Recall": "result",
    "RecallOptions": "options",
    "RecallOverrides": "options",
    "RecalledMessage": "types",
    "ReindexReport": "maintenance",
    "RerankerError": "errors",
    "ResourceInfo": "types",
    "Scope": "types",
    "SemanticRecall": "recall",
    "SemanticRecallError": "errors",
    "Settings": "settings",
    "Stats": "maintenance",
    "StoreClosedError": "errors",
    "StoreError": "errors",
    "ThreadInfo": "types",
    "VectorIndexError": "errors",
    "VectorRecord": "types",
    "VectorSpace": "types",
    "VectorSpaceMismatchError": "errors",
    "VerifyReport": "maintenance",
}
"""Where each name lives. It is imported on first use (PEP 562): whoever needs an error class or the
version of the package waits for no NumPy."""

if not TYPE_CHECKING:  # a type checker would take every name for known

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
