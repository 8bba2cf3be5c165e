"""A JSON reader that takes a document apart without holding it whole."""

from __future__ import annotations

import codecs
import json
import re
from typing import BinaryIO, NoReturn

from semantic_recall.importers._records import MAX_RECORD_BYTES, RecordError

_CHUNK = 2**16
_SPACE = re.compile(r"[ \t\r\n]*")
_UNDECODED = re.compile("[\udc80-\udcff]")
# An error this near to the end of what was read may only mean that more is to come: the longest
# thing that can be cut is "-Infinity" or a pair of \uXXXX escapes.
_NEAR_END = 16


class JsonSyntaxError(RecordError):
    """The document is not JSON from here on, so nothing after it can be read."""


class JsonStream:
    """Reads tokens and whole values from bytes; holds one value at a time.

    Bytes that are not UTF-8 spoil only the value that they are in.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder(parse_constant=_refuse)
        self._text = ""
        self._at = 0
        self._ended = False
        self.line = 1
        """The line of the next token, after `peek`."""

    def peek(self) -> str:
        """Return the next character that is not white space, or "" at the end."""
        while True:
            self._advance(_end_of_space(self._text, self._at))
            if self._at < len(self._text) or not self._more():
                return self._text[self._at : self._at + 1]

    def take(self, expected: str) -> None:
        """Move past the character `expected`.

        Raises:
            JsonSyntaxError: Something else comes.
        """
        found = self.peek()
        if found != expected:
            raise JsonSyntaxError(
                f"not JSON: {expected!r} expected, {found!r} found"
                if found
                else f"the file ends where {expected!r} was expected"
            )
        self._advance(self._at + 1)

    def value(self) -> object:
        """Return the next whole value.

        Raises:
            JsonSyntaxError: What comes is no JSON value, or one larger than 64 MiB.
            RecordError: The value holds bytes that are not UTF-8; reading can go on after it.
        """
        self.peek()
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._is_final(error) or not self._more():
                    raise JsonSyntaxError(f"not JSON: {error.msg}") from error
                continue
            except RecursionError as error:
                raise JsonSyntaxError("nested too deeply") from error
            except ValueError as error:
                raise JsonSyntaxError(str(error)) from error
            # A number may go on in the next chunk.
            if end < len(self._text) or not self._more():
                break
        bad = _UNDECODED.search(self._text, self._at, end)
        self._advance(end)
        if bad:
            raise RecordError(f"not UTF-8 (byte 0x{ord(bad[0]) - 0xDC00:02x}); save it as UTF-8")
        return value

    def _is_final(self, error: json.JSONDecodeError) -> bool:
        """Tell whether reading on cannot mend the error."""
        if len(self._text) - self._at > MAX_RECORD_BYTES:
            return True
        cut = error.msg.startswith("Unterminated string")
        return not cut and error.pos < len(self._text) - _NEAR_END

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        if self._ended:
            return False
        rest = self._text[self._at :]
        # As much again as is left: a long value is tried a few times only.
        data = self._stream.read(max(_CHUNK, len(rest)))
        self._ended = not data
        self._text = rest + self._decoder.decode(data, final=self._ended)
        self._at = 0
        return len(self._text) > len(rest) or not self._ended

    def _advance(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end


def _end_of_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")
