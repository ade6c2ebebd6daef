"""A prompt as the architecture document writes it, for channels that are written from it alone.

Filled from a record by `channels.specified`; everything else of ours uses `model`.
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
    timestamp: Any  # a datetime in UTC, as `expires_at` is
    safe_default: bytes
    expires_at: Any
    nonce: str
