"""The pool under the module and function names of the specification's examples."""

from __future__ import annotations

from ptypool.sync import PtyError, PtyHandle, PtyPool

__all__ = ["PtyError", "PtyHandle", "PtyPool"]
