"""What comes from a terminal among the keys of its person: its own answers to what the tool asked it (where the cursor
is, what it can), and what the mouse and the focus did."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy

FOCUS_GAINED, FOCUS_LOST = b"\x1b[I", b"\x1b[O"
# no key has a private mark (`?`, `>`, `=`) before its numbers: whatever has is an answer, and a tool can have it sent
# as often as it likes
_ANSWERS = lazy(
    rb"\x1b\[[?>=][\d;:]*[ -/]*[@-~]|\x1b\[[\d;]*(?:\$y|[cRntx])|\x1b[\]P_X^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b/Z"
)
_GESTURES = lazy(rb"\x1b\[<[\d;]*[mM]|\x1b\[M...|\x1b\[[\d;]*&w|\x1b\[[IO]", re.DOTALL)


def part_answers(data: bytes) -> tuple[bytes, bytes]:
    """What the person did, and the terminal's answers among it."""
    if b"\x1b" not in data:
        return data, b""
    return _ANSWERS.sub(b"", data), b"".join(_ANSWERS.findall(data))


def keys_of(data: bytes) -> bytes:
    """Only what was typed on the keyboard."""
    return _GESTURES.sub(b"", part_answers(data)[0])
