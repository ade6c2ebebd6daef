"""The adapter registered as `openai`, where the documents name it; it lives in the tool's own folder."""

from __future__ import annotations

from atlasbridge.adapters.openai.adapter import OpenAIAdapter

__all__ = ["OpenAIAdapter"]
