"""Semantic recall for LlamaIndex: chat memory, memory block, retriever, tool, adapters."""

from semantic_recall.errors import MissingDependencyError

try:
    from llamaindex_semantic_recall._registry import connect
    from llamaindex_semantic_recall.block import IndexingMemory, SemanticRecallMemoryBlock
    from llamaindex_semantic_recall.embeddings import LlamaIndexEmbedder
    from llamaindex_semantic_recall.memory import SemanticRecallMemory
    from llamaindex_semantic_recall.retriever import SemanticRecallRetriever
    from llamaindex_semantic_recall.tool import create_recall_tool
    from llamaindex_semantic_recall.vector_store import LlamaIndexVectorIndex, collection_name
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "llama_index":
        raise
    raise MissingDependencyError(
        "llamaindex_semantic_recall needs llama-index-core; "
        'pip install "chat-semantic-recall[llamaindex]"'
    ) from error

__all__ = [
    "IndexingMemory",
    "LlamaIndexEmbedder",
    "LlamaIndexVectorIndex",
    "SemanticRecallMemory",
    "SemanticRecallMemoryBlock",
    "SemanticRecallRetriever",
    "collection_name",
    "connect",
    "create_recall_tool",
]
