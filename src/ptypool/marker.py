"""The marker protocol of shell sessions: what a shell prints around a command's output, and how it is found again.

Pure: bytes in, output and exit status out. Each command has a fresh random nonce, so that no output holds its markers
by chance, and a marker carries a byte (RS) that a shell which prints its own input or trace does not print.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RS = b"\x1e"


def begin_marker(nonce: str) -> bytes:
    return RS + b"B" + nonce.encode() + RS


def end_marker(nonce: str, status: int) -> bytes:
    return RS + b"E" + nonce.encode() + b" %d" % status + RS


@dataclass(frozen=True, slots=True)
class Scanned:
    """Output that is certain so far, and the exit status once the command is over."""

    output: bytes
    exit_status: int | None


class MarkerScanner:
    """Cuts the output of one command out of a stream that comes in chunks of any size."""

    def __init__(self, nonce: str) -> None:
        self._begin = begin_marker(nonce)
        self._end = re.compile(re.escape(RS + b"E" + nonce.encode()) + rb" (\d{1,3})" + RS)
        self._longest = len(end_marker(nonce, 255))
        self._held = b""
        self._begun = False

    @property
    def begun(self) -> bool:
        return self._begun

    def feed(self, chunk: bytes) -> Scanned:
        data = self._held + chunk
        self._held = b""
        if not self._begun:
            before, found, after = data.partition(self._begin)
            self._begun = bool(found)
            data = after if found else before
        match = self._end.search(data)
        if match is not None:
            return Scanned(data[: match.start()] if self._begun else b"", int(match[1]))
        certain = self._certain_length(data)
        self._held = data[certain:]
        return Scanned(data[:certain] if self._begun else b"", None)

    def rest(self) -> bytes:
        """What was held back as a possible marker: output after all, when the stream ends here."""
        held, self._held = self._held, b""
        return held if self._begun else b""

    def _certain_length(self, data: bytes) -> int:
        """Up to where the data cannot be the start of a marker."""
        start = data.find(RS, max(0, len(data) - self._longest + 1))
        return len(data) if start < 0 else start
