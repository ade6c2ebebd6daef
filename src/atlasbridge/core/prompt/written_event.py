"""A prompt in the form of the specification, for channels that are written from it alone.

`channels/registry.py` creates it from a record; all other code uses `model`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atlasbridge.core.prompt.model import Confidence, PromptType


@dataclass
class PromptEvent:
    prompt_id: str
    session_id: str
    type: PromptType
    confidence: Confidence
    excerpt: str
    choices: list[tuple[str, str]]
    constraints: dict[str, Any]
    idempotency_key: str
    timestamp: Any  # a datetime in UTC, like `expires_at`
    safe_default: bytes
    expires_at: Any
    nonce: str
