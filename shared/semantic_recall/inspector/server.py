"""Serving the inspector on this machine, and opening it in a browser."""

from __future__ import annotations

import html
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn
from typing_extensions import Self

from semantic_recall import SemanticRecall
from semantic_recall.errors import ConfigurationError
from semantic_recall.inspector.app import inspector_app

ADDRESS = "127.0.0.1"
"""The one address that is served: nobody on another machine can reach it."""

_BACKLOG = 128
_PATIENCE = 2  # seconds that requests get to end in


class Inspector:
    """The inspector of one memory on a port of this machine; a context manager.

    It listens from the beginning, so that its address can be opened, and answers in `run`.

    Args:
        memory: What is inspected; it stays open.
        port: 0 takes a free one.
        name: What the page calls the memory.

    Raises:
        ConfigurationError: The port cannot be had.
    """

    def __init__(self, memory: SemanticRecall, *, port: int = 0, name: str = "memory") -> None:
        self._socket = _listening(port)
        self.port: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(32)
        self.url = f"http://{ADDRESS}:{self.port}/{token}/"
        """Where the page is; whoever knows it can read the memory and delete from it."""
        hosts = [f"{ADDRESS}:{self.port}", f"localhost:{self.port}"]
        app = inspector_app(memory, token=token, hosts=hosts, name=name)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                access_log=False,  # it would have the token
                log_config=None,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_PATIENCE,
            )
        )

    def run(self) -> None:
        """Answer until `stop`, Ctrl-C or SIGTERM; either ends as if it were done."""
        with suppress(KeyboardInterrupt), _interruptible():
            self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Make `run` return soon; may be called from another thread."""
        self._server.should_exit = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it lets two programs have one port
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((ADDRESS, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise ConfigurationError(
            f"port {port} of {ADDRESS} cannot be had ({error.strerror}); "
            "take another, or 0 for a free one"
        ) from error
    return made


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does, so that the memory is closed.

    The server catches both, ends, and then sends itself the signal again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def open_in_browser(url: str) -> Iterator[None]:
    """Open an address in the user's browser; what opens it is removed at the end.

    The browser is given a file that only this user can read, which leads on to the address: the
    address itself would stand in the browser's command line, which every user of this machine can
    list. Nothing is opened where there is no screen.
    """
    if not _has_screen():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="semantic-recall-") as folder:
        file = Path(folder, "inspect.html")
        file.touch(mode=0o600)
        file.write_text(
            "<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>"
            f'<meta http-equiv=refresh content="0; url={html.escape(url)}"><title>inspect</title>',
            encoding="utf-8",
        )
        # In a thread: some browsers return when they are closed.
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield


def _has_screen() -> bool:
    """Tell whether a browser has where to show itself: one in the terminal would be in the way."""
    known = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform in ("win32", "darwin") or any(os.environ.get(name) for name in known)
