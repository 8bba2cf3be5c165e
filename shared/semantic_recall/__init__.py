"""Semantic recall for chat: find the past messages that matter and put them into the prompt."""

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
