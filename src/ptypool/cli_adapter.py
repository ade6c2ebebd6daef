"""The adapters for AI CLIs under the module and function names of the specification's examples."""

from __future__ import annotations

from ptypool.sync import CliAdapter, CliType, adapter_for

__all__ = ["CliAdapter", "CliType", "adapter_for"]
