"""Checked weight files."""

from __future__ import annotations

import hashlib
from pathlib import Path

from semantic_recall.errors import EmbedderError


def check_file(path: Path, sha256: str, *, remedy: str) -> None:
    """Check that a weight file is the very file expected.

    Args:
        path: The file.
        sha256: Its digest in hexadecimal.
        remedy: What the user can do, for the error message.

    Raises:
        EmbedderError: The file cannot be read or is another one.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise EmbedderError(f"cannot read the model file {path}: {error}; {remedy}") from error
    if digest.hexdigest() != sha256:
        raise EmbedderError(
            f"the model file {path} is not the one expected: its sha256 is "
            f"{digest.hexdigest()}, not {sha256}; {remedy}"
        )
