"""Semantic recall for LangChain: middleware, retriever, tool, chat history, chains, embeddings.

Needs langchain-core. `SemanticRecallMiddleware` needs langchain too and is imported when it is
asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from langchain_semantic_recall.chat_history import SemanticRecallChatMessageHistory
from langchain_semantic_recall.embeddings import LangChainEmbedder
from langchain_semantic_recall.messages import from_langchain, to_langchain
from langchain_semantic_recall.retriever import SemanticRecallRetriever
from langchain_semantic_recall.runnable import RunnableWithSemanticRecall
from langchain_semantic_recall.tool import create_recall_tool
from semantic_recall.errors import MissingDependencyError

if TYPE_CHECKING:
    from langchain_semantic_recall.middleware import SemanticRecallMiddleware

__all__ = [
    "LangChainEmbedder",
    "RunnableWithSemanticRecall",
    "SemanticRecallChatMessageHistory",
    "SemanticRecallMiddleware",
    "SemanticRecallRetriever",
    "create_recall_tool",
    "from_langchain",
    "to_langchain",
]

_MIDDLEWARE = "SemanticRecallMiddleware"


def __getattr__(name: str) -> object:
    if name != _MIDDLEWARE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module("langchain_semantic_recall.middleware")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("langchain", "langgraph"):
            raise
        raise MissingDependencyError(
            f"{_MIDDLEWARE} needs langchain, which is not installed: "
            'pip install "chat-semantic-recall[langchain]"'
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return __all__
