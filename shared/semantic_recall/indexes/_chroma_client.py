"""Chroma's clients: how they are opened and closed, and what a fork does to them."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import weakref
from collections.abc import Mapping
from pathlib import Path

import chromadb
import httpx
from chromadb.api import ClientAPI
from chromadb.api.client import Client
from chromadb.api.fastapi import FastAPI
from chromadb.api.shared_system_client import SharedSystemClient
from chromadb.config import Settings

from semantic_recall.errors import VectorIndexError
from semantic_recall.indexes._chroma_folder import Folder

_logger = logging.getLogger("semantic_recall")


def embedded_client(path: Path) -> Client:
    """Open or create a folder."""
    return _client(chromadb.PersistentClient(path, settings=_settings()))


def mended_client(folder: Folder) -> Client:
    """Open a folder; if it is damaged, empty it first: everything in it is in the store too."""
    damage = folder.damage()
    if damage is None:
        try:
            return embedded_client(folder.path)
        # Whatever it is, the question is whether the file is to blame.
        except Exception:
            damage = folder.damage(thorough=True)
            if damage is None:
                raise
    _logger.warning("the vector index %s was damaged (%s) and is now empty", folder.path, damage)
    folder.empty()
    return embedded_client(folder.path)


def server_client(
    host: str, port: int, *, ssl: bool, headers: Mapping[str, str] | None, timeout: float
) -> Client:
    """Reach a server, within `timeout` seconds per request."""
    # Chroma's own client asks the server while it is made, and would wait for ever.
    url = f"{'https' if ssl else 'http'}://{host}:{port}/api/v2/heartbeat"
    httpx.get(url, headers=headers, timeout=timeout).raise_for_status()
    client = _client(
        chromadb.HttpClient(host, port, ssl=ssl, headers=dict(headers or {}), settings=_settings())
    )
    for session in _sessions(client):
        session.timeout = httpx.Timeout(timeout)
    return client


def cloud_client(tenant: str, database: str, api_key: str) -> Client:
    """Reach Chroma Cloud."""
    return _client(chromadb.CloudClient(tenant, database, api_key, _settings()))


def _settings() -> Settings:
    # A new one each time: Chroma's clients write into the settings that they are given.
    return Settings(anonymized_telemetry=False)


def _sessions(client: Client) -> list[httpx.Client]:
    """Return the HTTP sessions of a client: its admin client has one of its own."""
    servers = (client._server, client._admin_client._server)  # type: ignore[attr-defined]
    return [server._session for server in servers if isinstance(server, FastAPI)]


def _client(client: ClientAPI) -> Client:
    if not isinstance(client, Client):
        raise VectorIndexError(f"Chroma gave a client without close(): {type(client).__name__}")
    return client


def shut(client: Client, folder: Folder | None, process: int) -> None:
    """Close a client and give its folder free, unless they were inherited through a fork."""
    if os.getpid() != process:
        return
    clean = False
    try:
        client.close()
        for session in _sessions(client):
            session.close()  # Chroma leaves its connections open
        if folder is not None:
            folder.blank()  # it may just have written new segments
        clean = True
    finally:
        if folder is not None:
            folder.release(clean=clean)


# -- forks --------------------------------------------------------------------------------------
_live: weakref.WeakSet[ClientAPI] = weakref.WeakSet()


def survive_fork(client: ClientAPI) -> None:
    """See to it that a forked child can end like any process."""
    _live.add(client)


def _keep_for_ever(thing: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _after_fork_in_child() -> None:
    """Leave every inherited client alone for ever.

    Chroma's threads do not exist in the child. Using such a client hangs, and so does freeing
    it, be it by the garbage collector or when the child exits.
    """
    for client in list(_live):
        _keep_for_ever(client)
    systems = SharedSystemClient._identifier_to_system
    if systems:
        _keep_for_ever(systems)
        # Whoever opens the same folder in the child must not be given the inherited client.
        SharedSystemClient.clear_system_cache()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_in_child)
