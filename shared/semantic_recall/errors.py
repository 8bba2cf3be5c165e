"""Every error of this library, in one tree.

    SemanticRecallError
    ├── ConfigurationError (ValueError)   the call or the set-up is wrong; nothing was written
    │   ├── InvalidScopeError             an id that the scope needs is missing
    │   ├── InvalidIdError                an id is empty, too long or not a string
    │   ├── InvalidOptionError            an option has a value that it cannot have
    │   └── MissingDependencyError        an optional package is not installed
    ├── StoreError                        the message store (SQL) failed
    │   └── StoreClosedError              the memory was used after close()
    ├── VectorIndexError                  the vector index failed; recall goes on without it
    │   └── IndexLockedError              another process owns the embedded vector index
    ├── EmbedderError                     the embedder failed; the messages stay stored and pending
    │   └── InvalidVectorError            the embedder gave a vector that cannot be used
    ├── RerankerError                 the reranker failed, or its scores cannot be used
    ├── VectorSpaceMismatchError          the memory was embedded by another embedder
    ├── ImportFormatError                 a file to import is not in a known format
    └── AbortTurn                         raised by a hook to stop the turn

Each message names the thing that failed and the remedy; causes are chained.
"""


class SemanticRecallError(Exception):
    """Base of every error that this library raises on purpose."""


class ConfigurationError(SemanticRecallError, ValueError):
    """The call or the set-up is wrong; nothing was written."""


class InvalidScopeError(ConfigurationError):
    """An id that the scope needs is missing; a scope is never widened instead."""


class InvalidIdError(ConfigurationError):
    """An id is empty, longer than 1,024 characters or not a string."""


class InvalidOptionError(ConfigurationError):
    """An option has a value that it cannot have."""


class MissingDependencyError(ConfigurationError):
    """An optional package is not installed; the message has the pip command."""


class StoreError(SemanticRecallError):
    """The message store (SQL) failed."""


class StoreClosedError(StoreError):
    """The memory was used after `close()`."""


class VectorIndexError(SemanticRecallError):
    """The vector index failed; it can be rebuilt from the store at any time."""


class IndexLockedError(VectorIndexError):
    """Another process owns the embedded vector index; it indexes for this one too."""


class EmbedderError(SemanticRecallError):
    """The embedder failed or timed out; the messages stay stored and pending."""


class InvalidVectorError(EmbedderError):
    """The embedder gave a vector with NaN or infinity, only zeros, or another length."""


class RerankerError(SemanticRecallError):
    """The reranker failed, or its scores cannot be used; in front of a model the order stays."""


class VectorSpaceMismatchError(SemanticRecallError):
    """The memory was embedded by another embedder; `semantic-recall reindex` re-embeds it."""


class ImportFormatError(SemanticRecallError):
    """A file to import is not in a known format."""


class AbortTurn(SemanticRecallError):
    """Raised by a hook to stop the turn; it reaches the caller.

    Args:
        reason: What the caller is told.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
