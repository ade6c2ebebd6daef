"""The adapters for AI CLIs where the specification's examples have them, with the calls that they make."""

from __future__ import annotations

from ptypool.sync import CliAdapter, CliType, adapter_for

__all__ = ["CliAdapter", "CliType", "adapter_for"]
