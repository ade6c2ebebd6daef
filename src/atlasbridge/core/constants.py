"""The bytes that the specification's supervisor types for common one-line replies.

For other prompts the dialect decides which keys answer; this table is for adapters that answer by lines.
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
