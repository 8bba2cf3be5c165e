"""The tables.

Texts and ids are stored through `_text.escape`; `resource_id` None is stored as ''. Times are
microseconds since 1970 in UTC. In `messages` the small columns stand before the long ones, so
that a scan of a scope does not read the pages that long texts overflow into.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

NO_RESOURCE = ""
_Big = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

settings = Table(
    "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

migrations = Table(
    "migrations",
    metadata,
    Column("name", Text, primary_key=True),
)

counters = Table(
    "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", _Big, nullable=False),
)
"""`message`: the last key given out; keys are never used twice, whatever is deleted."""

resources = Table(
    "resources",
    metadata,
    Column("key", _Big, primary_key=True),
    Column("version", _Big, nullable=False),
    Column("deleted_version", _Big, nullable=False),
    Column("recallable", _Big, nullable=False),
    Column("resource_id", Text, nullable=False, unique=True),
)
"""`version` grows by one in every transaction that changes anything of the resource."""

threads = Table(
    "threads",
    metadata,
    Column("key", _Big, primary_key=True),
    Column("resource_key", _Big, ForeignKey("resources.key"), nullable=False),
    Column("deleted_version", _Big, nullable=False),
    Column("recallable", _Big, nullable=False),
    Column("thread_id", Text, nullable=False),
    UniqueConstraint("resource_key", "thread_id"),
    sqlite_autoincrement=True,
)

messages = Table(
    "messages",
    metadata,
    Column("key", _Big, primary_key=True, autoincrement=False),
    Column("thread_key", _Big, ForeignKey("threads.key"), nullable=False),
    Column("resource_key", _Big, ForeignKey("resources.key"), nullable=False),
    Column("part", Integer, nullable=False),
    Column("version", _Big, nullable=False),
    Column("created_at", _Big, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("role", Text, nullable=False),
    Column("id", Text, nullable=False),
    Column("name", Text),
    Column("metadata", Text),
    Column("payload", Text),
    Column("text", Text, nullable=False),
    UniqueConstraint("thread_key", "id"),
    # `part` stands last and only saves the look at the row: history wants every part and windows
    # step over HIDDEN, both in the order of keys.
    Index("messages_order", "thread_key", "key", "part"),
    Index("messages_changes", "resource_key", "version"),
    Index("messages_digest", "digest"),
)
"""`version` is the resource's version at the last change of the message or its vectors."""

terms = Table(
    "terms",
    metadata,
    Column("key", _Big, primary_key=True, autoincrement=False),
    Column("terms", LargeBinary, nullable=False),
)
"""Hashed terms of a message, uint32 little endian, in text order."""

spaces = Table(
    "spaces",
    metadata,
    Column("key", _Big, primary_key=True),
    Column("name", Text, nullable=False),
    Column("dimensions", Integer, nullable=False),
    Column("active", Boolean, nullable=False),
    Column("vectors", _Big, nullable=False),
    UniqueConstraint("name", "dimensions"),
    sqlite_autoincrement=True,
)

vectors = Table(
    "vectors",
    metadata,
    Column("row", _Big, primary_key=True),
    Column("space_key", _Big, ForeignKey("spaces.key"), nullable=False),
    Column("key", _Big, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("key", "space_key"),
)
"""All chunks of a message in one row: float32 little endian, chunk after chunk. One row per
message halves the look-ups of a cold scope, and chunks are never wanted one by one."""

chunk_rows = Table(
    "vectors",
    MetaData(),
    Column("space_key", _Big, nullable=False),
    Column("key", _Big, nullable=False),
    Column("chunk", Integer, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("resource_key", _Big, nullable=False),
    Column("thread_key", _Big, nullable=False),
    Column("data", LargeBinary, nullable=False),
)
"""The same table on PostgreSQL, where each chunk has a row, since the database itself searches
for the nearest vectors of a scope there. `data` is a pgvector, read and written in its binary
form."""

pending = Table(
    "pending",
    metadata,
    Column("space_key", _Big, ForeignKey("spaces.key"), nullable=False),
    Column("key", _Big, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due_at", Float, nullable=False),
    PrimaryKeyConstraint("space_key", "key"),
    sqlite_with_rowid=False,
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", _Big, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("space_key", _Big, ForeignKey("spaces.key"), nullable=False),
    Column("key", _Big, nullable=False),
    Column("chunks", Integer, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("thread_id", Text, nullable=False),
    UniqueConstraint("key", "space_key"),
    sqlite_autoincrement=True,
)
"""One row per message and space: a newer operation replaces an older one. The ids are stored,
because a deletion outlives its thread."""

tombstones = Table(
    "tombstones",
    metadata,
    Column("scope", LargeBinary, primary_key=True),
    Column("version", _Big, nullable=False),
)
"""What is left of a deleted resource or thread: a hash of its ids and the version of the end."""
