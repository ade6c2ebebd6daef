"""The names of the Adapter Interface Specification."""

from __future__ import annotations

from atlasbridge.adapters.base import (
    INJECT_BYTES,
    AdapterInjectionError,
    AdapterStartError,
    BaseAdapter,
    Confidence,
    PromptEvent,
    PromptType,
    ReplayAttackError,
    Reply,
    make_idempotency_key,
)
from atlasbridge.adapters.claude_code import ClaudeCodeAdapter
from atlasbridge.adapters.openai_cli import OpenAIAdapter
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.specification.document_classes import PromptDetector, SupervisorState

__all__ = [
    "INJECT_BYTES",
    "AdapterInjectionError",
    "AdapterRegistry",
    "AdapterStartError",
    "BaseAdapter",
    "ClaudeCodeAdapter",
    "Confidence",
    "OpenAIAdapter",
    "PromptDetector",
    "PromptEvent",
    "PromptType",
    "ReplayAttackError",
    "Reply",
    "SupervisorState",
    "make_idempotency_key",
]
