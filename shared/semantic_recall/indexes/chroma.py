"""A vector index in Chroma: embedded in a folder (the default), on a server, or in Chroma Cloud.

The vectors of a space lie in `shards` collections; a resource (or a thread without one) is whole
in one of them, chosen by a hash. A filtered search costs as much as the whole collection is large:
with shards that much less. The metadata of a vector is its resource and thread; Chroma has no text.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Collection as Container
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from chromadb.api import ClientAPI
from chromadb.api.client import Client
from chromadb.api.models.Collection import Collection
from typing_extensions import Self

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes import _chroma_names as names
from semantic_recall.indexes._chroma_client import (
    cloud_client,
    embedded_client,
    mended_client,
    server_client,
    shut,
    survive_fork,
)
from semantic_recall.indexes._chroma_collections import (
    PAGE,
    Collections,
    Delete,
    Upsert,
    all_ids,
    chroma_errors,
    exact,
    nearest,
)
from semantic_recall.indexes._chroma_folder import Folder, Gate
from semantic_recall.types import Hit, Scope, Vector, VectorRecord, VectorSpace

BATCH_BYTES = 8 * 2**20
"""Vectors per write; a server refuses bodies over 40 MiB."""
CLOUD_BATCH = 300
"""Chroma Cloud's quota of records per call."""


class ChromaVectorIndex:
    """A `VectorIndex` in Chroma.

    Ids are unique in a space. A vector of only zeros can be written (it is similar to nothing);
    a query of zeros, NaN or infinity is refused with `VectorIndexError`, because Chroma would
    answer it with arbitrary vectors. So is any vector with NaN, infinity or another length.

    Args:
        client: A Chroma client of any tenant and database; the caller closes it. `embedded`,
            `server` and `cloud` make one that is closed with the index.
        shards: Collections per vector space; fixed when the space is first written.
        batch: The most records per call; what the client says when None.
        prefix: Begins the names of the collections; 1 to 400 letters, digits, ".", "_" or "-".

    Raises:
        VectorIndexError: From every method: Chroma failed, the index is closed, or it is used in
            a forked child, where an inherited client would hang for ever.
    """

    def __init__(
        self,
        client: ClientAPI,
        *,
        shards: int = 16,
        batch: int | None = None,
        prefix: str = "memory",
    ) -> None:
        self._collections = Collections(client, prefix, shards)
        self._batch = batch
        self._folder: Folder | None = None
        self._process = os.getpid()
        self._closed = False
        self._gate = Gate()
        # Chroma's writes hold the GIL, so one at a time loses nothing and keeps shards whole.
        self._write = threading.Lock()
        self._release: weakref.finalize[..., ChromaVectorIndex] | None = None
        survive_fork(client)

    @classmethod
    def embedded(
        cls,
        path: str | Path,
        *,
        shards: int = 16,
        prefix: str = "memory",
        keep: Container[VectorSpace] | None = None,
    ) -> Self:
        """Open or create an index in a folder, which this process then owns.

        A folder with missing, torn or damaged files is emptied, with a warning. If `keep` is
        given, what an index has written there for any other space is removed.

        Raises:
            IndexLockedError: Another process owns it (or the parent did when this process was
                forked); raised at once.
            VectorIndexError: The folder cannot be made, what is in it cannot be read, or this
                process was forked from one that had used Chroma.
        """
        folder = Folder(Path(path))
        index = None
        try:
            with chroma_errors(f"open the folder {folder.path}"):
                client = mended_client(folder)
                index = cls(client, shards=shards, prefix=prefix)
                index._folder = folder
                index._own(client)
                index._collections.finish_copies()
                if keep is not None and index._collections.keep(keep):
                    folder.remove_leftovers()
        except BaseException:
            (folder.release if index is None else index.close)()
            raise
        return index

    @classmethod
    def server(
        cls,
        host: str,
        port: int = 8000,
        *,
        ssl: bool = False,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        shards: int = 16,
        prefix: str = "memory",
    ) -> ChromaVectorIndex:
        """Use a Chroma server (`chroma run`), with any number of processes.

        Args:
            host: Name or address.
            port: Port.
            ssl: Use HTTPS.
            headers: Sent with every request, for a proxy that checks who calls.
            timeout: Seconds until a server that does not answer raises.
            shards: As in the class.
            prefix: As in the class.

        Raises:
            VectorIndexError: The server cannot be reached or does not answer in time.
        """
        with chroma_errors(f"reach the server {host}:{port}"):
            client = server_client(host, port, ssl=ssl, headers=headers, timeout=timeout)
            index = cls(client, shards=shards, prefix=prefix)
        index._own(client)
        return index

    @classmethod
    def cloud(cls, *, tenant: str, database: str, api_key: str) -> ChromaVectorIndex:
        """Use Chroma Cloud.

        Raises:
            VectorIndexError: The service cannot be reached or refuses the key.
        """
        with chroma_errors("reach Chroma Cloud"):
            client = cloud_client(tenant, database, api_key)
            index = cls(client, batch=CLOUD_BATCH)
        index._own(client)
        return index

    # -- the protocol -------------------------------------------------------------------------
    def upsert(self, space: VectorSpace, records: Sequence[VectorRecord], /) -> None:
        """Write vectors; of the same id twice the last wins."""
        with self._using("write vectors", writes=True) as collections:
            last = {record.id: record for record in records}
            rows = {
                id: names.checked(space, last[id].vector, f"the vector of {id!r}") for id in last
            }
            shards = collections.shards(space)
            size = min(self._batch_size(), max(1, BATCH_BYTES // (4 * space.dimensions)))
            for shard, ids in names.grouped(
                (names.shard_of(last[id].scope, shards), id) for id in last
            ):
                for batch in names.batches(ids, size):
                    metadata = [names.metadata(last[id].scope) for id in batch]
                    write = Upsert(batch, np.stack([rows[id] for id in batch]), metadata)
                    collections.call(space, shard, write, create=True)
            if self._folder is not None and collections.made_some():
                self._folder.blank()

    def delete(self, space: VectorSpace, ids: Mapping[str, Scope], /) -> None:
        """Delete vectors by id; a missing id is fine."""
        with self._using("delete vectors", writes=True) as collections:
            shards = collections.shards(space)
            size = min(self._batch_size(), PAGE)
            for shard, group in names.grouped((names.shard_of(ids[id], shards), id) for id in ids):
                for batch in names.batches(group, size):
                    collections.call(space, shard, Delete(batch))

    def search(
        self, space: VectorSpace, vector: Vector, scope: Scope, /, *, top_k: int
    ) -> list[Hit]:
        """Return the nearest vectors of the scope, best first; [] when there are none."""
        with self._using("search") as collections:
            query = names.checked(space, vector, "the query vector")
            if not query.any():
                raise VectorIndexError("the query vector has only zeros, so it has no direction")
            if top_k <= 0:
                return []
            where = names.where(scope)

            def find(collection: Collection) -> list[Hit]:
                found = nearest(collection, query, where, min(top_k, self._batch or top_k))
                if len(found) >= top_k:
                    return found
                # Many equal vectors can hide one of the scope from Chroma's graph.
                ids = collection.get(where=where, include=[])["ids"]  # type: ignore[arg-type]
                return exact(collection, query, ids, top_k) if len(ids) > len(found) else found

            shard = names.shard_of(scope, collections.shards(space))
            return collections.call(space, shard, find) or []

    def ids(self, space: VectorSpace, /) -> Iterator[str]:
        """Yield every id of the space, one shard after the other."""
        with self._using("list ids") as collections:
            shards = collections.shards(space)
        for shard in range(shards):
            with self._using("list ids", writes=True) as collections:
                found = collections.call(space, shard, all_ids)
            yield from found or ()

    def drop(self, space: VectorSpace, /) -> None:
        """Remove everything of the space; works when its collections cannot be read."""
        with self._using(f"drop the space {space.name}", writes=True) as collections:
            collections.drop(space)
            if self._folder is not None:
                self._folder.remove_leftovers()

    def scrub(self) -> None:
        """Copy what lost vectors and rewrite Chroma's database; searches wait meanwhile.

        Raises:
            VectorIndexError: The index is not embedded: only its operator can rewrite a server's
                files. Or a damaged collection could not be copied: drop its space.
        """
        self._check_process()
        with self._gate.alone(), chroma_errors("scrub the index"):
            if self._closed:
                raise VectorIndexError("the vector index is closed")
            folder = self._folder
            if folder is None:
                raise VectorIndexError(
                    "deleted vectors can still be in the server's files; see `chroma vacuum` there"
                )
            self._collections.copy_changed(folder.overwritten())
            self._owned.close()
            try:
                folder.vacuum()
                folder.remove_leftovers()
                folder.blank()
            finally:
                client = embedded_client(folder.path)
                self._collections.reopen(client)
                self._own(client)

    def close(self) -> None:
        """Release the index; closing twice is fine. A client of the caller stays open."""
        if os.getpid() != self._process:
            return
        with self._gate.alone(), chroma_errors("close"):
            self._closed = True
            if self._release is not None:
                self._release()

    # -- inside ---------------------------------------------------------------------------------
    def _own(self, client: Client) -> None:
        """Close the client with the index, also when the index is forgotten or Python ends."""
        if self._release is not None:
            self._release.detach()
        survive_fork(client)
        self._owned = client
        self._release = weakref.finalize(self, shut, client, self._folder, self._process)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise VectorIndexError("the vector index belongs to the process this was forked from")

    @contextmanager
    def _using(self, action: str, *, writes: bool = False) -> Iterator[Collections]:
        self._check_process()
        one_writer = self._write if writes else nullcontext()
        with self._gate.shared(), one_writer, chroma_errors(action):
            if self._closed:
                raise VectorIndexError("the vector index is closed")
            yield self._collections

    def _batch_size(self) -> int:
        return min(self._collections.client.get_max_batch_size(), self._batch or sys.maxsize)
