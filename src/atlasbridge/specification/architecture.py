"""The names of the architecture document."""

from __future__ import annotations

from atlasbridge.adapters.base import BaseAdapter
from atlasbridge.adapters.claude_code import ClaudeAdapter
from atlasbridge.adapters.openai_cli import OpenAIAdapter
from atlasbridge.adapters.pty import PtyAdapter as GenericPTYAdapter
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.local import LocalChannel, NullChannel
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.core.audit import AuditWriter, verify_chain
from atlasbridge.core.prompt import Confidence, PromptEvent, PromptType
from atlasbridge.core.routing import PromptRouter
from atlasbridge.core.session import Session
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.os.tty.base import BasePTY
from atlasbridge.specification.document_classes import PromptDetector

decide_prompt = Ledger.decide_prompt

__all__ = [
    "AdapterRegistry",
    "AtlasBridgeConfig",
    "AuditWriter",
    "BaseAdapter",
    "BaseChannel",
    "BasePTY",
    "ClaudeAdapter",
    "Confidence",
    "GenericPTYAdapter",
    "LocalChannel",
    "NullChannel",
    "OpenAIAdapter",
    "PromptDetector",
    "PromptEvent",
    "PromptRouter",
    "PromptType",
    "Session",
    "decide_prompt",
    "verify_chain",
]
