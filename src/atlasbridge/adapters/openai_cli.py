"""The adapter of the `openai` command, at the place that the specification names. Its dialect is in `openai/`."""

from __future__ import annotations

from atlasbridge.adapters.registry import AdapterRegistry

OpenAIAdapter = AdapterRegistry.of_dialect("openai")

__all__ = ["OpenAIAdapter"]
