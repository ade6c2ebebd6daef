"""The names of the architecture document."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from atlasbridge.adapters.base import BaseAdapter
from atlasbridge.adapters.claude_code import ClaudeAdapter
from atlasbridge.adapters.generic.adapter import GenericAdapter as GenericPTYAdapter
from atlasbridge.adapters.openai_cli import OpenAIAdapter
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.specified import PromptEvent, Session
from atlasbridge.channels.stubs import LocalChannel, NullChannel
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.core.audit.chain import Fault, Head, check_chain
from atlasbridge.core.audit.log import AuditFile as AuditWriter
from atlasbridge.core.audit.log import read_lines
from atlasbridge.core.prompt.model import Confidence, PromptType
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.store.moves import accept as decide_prompt
from atlasbridge.os.tty.base import BasePTY
from atlasbridge.specification.text_detector import PromptDetector

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


def verify_chain(entries: Path | str | Iterable[str]) -> tuple[bool, int]:
    """Recompute the chain of a file or of lines: whether it is whole, and its length or the first entry that is bad."""
    lines = read_lines(Path(entries)) if isinstance(entries, Path | str) else entries
    verdict: Fault | Head = check_chain(lines)
    return (False, verdict.seq) if isinstance(verdict, Fault) else (True, verdict[0])
