"""The pool where the specification's examples have it, with the calls that they make."""

from __future__ import annotations

from ptypool.sync import PtyError, PtyHandle, PtyPool

__all__ = ["PtyError", "PtyHandle", "PtyPool"]
