"""What the supervisor of the specification types for a reply in a line: the common values, precomputed.

Which keys answer a prompt for real is the dialect's to say; this table is for adapters that answer by lines.
"""

from __future__ import annotations

INJECT_BYTES = {
    "y": b"y\r",
    "n": b"n\r",
    "enter": b"\r",
    "\n": b"\r",
    "": b"\r",
    **{digit: digit.encode() + b"\r" for digit in "123456789"},
}
