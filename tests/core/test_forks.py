"""A forked child meets no lock that a thread of its parent holds."""

import os
import threading
import time

import numpy as np
import pytest

from semantic_recall.forks import IMPORTING
from semantic_recall.vector_cache import Key, VectorCache

KEY: Key = ("space", "query", b"digest")

# Python 3.12 and newer warn of a fork beside threads, which is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_lock_that_was_held_is_free_and_the_cache_empty_in_the_child() -> None:
    cache = VectorCache(10)
    cache.put(KEY, np.ones((1, 4), np.float32))
    with cache._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if cache.get(KEY) is None and len(cache) == 0 else 1)
    assert exit_code(child) == 0
    assert cache.get(KEY) is not None


def test_a_fork_waits_for_an_import_in_another_thread() -> None:
    importing = threading.Event()

    def work() -> None:
        with IMPORTING:
            importing.set()
            time.sleep(0.5)

    thread = threading.Thread(target=work)
    thread.start()
    importing.wait()
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0 if IMPORTING.acquire(timeout=1) else 1)
    waited = time.monotonic() - began
    thread.join()
    assert exit_code(child) == 0
    assert waited > 0.3
