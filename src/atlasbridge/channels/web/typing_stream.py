"""Keys from a page, in one order: each piece has a number, and is typed once, after the one before it."""

from __future__ import annotations

from atlasbridge.core.values import mutable

MAX_STREAMS = 256


@mutable
class TypingStream:
    stream: str
    next_number: int = 0


class PageTyping:
    """Who has switched typing on, and how far each stream has come."""

    def __init__(self) -> None:
        self._on: dict[tuple[str, str], TypingStream] = {}

    def switch(self, caller: str, session_id: str, on: bool) -> None:
        self._on.pop((caller, session_id), None)
        if on:
            while len(self._on) >= MAX_STREAMS:
                del self._on[next(iter(self._on))]
            self._on[caller, session_id] = TypingStream("")

    def stop(self, caller: str) -> None:
        self._on = {key: value for key, value in self._on.items() if key[0] != caller}

    def is_on(self, caller: str, session_id: str) -> bool:
        return (caller, session_id) in self._on

    def expected(self, caller: str, session_id: str, stream: str) -> int:
        """The number that comes next in this stream; a new stream begins with 0."""
        known = self._on[caller, session_id]
        if known.stream != stream:
            known.stream, known.next_number = stream, 0
        return known.next_number

    def took(self, caller: str, session_id: str) -> None:
        known = self._on.get((caller, session_id))
        if known is not None:
            known.next_number += 1
