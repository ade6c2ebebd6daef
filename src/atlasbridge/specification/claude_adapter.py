"""The names of the Claude adapter document."""

from __future__ import annotations

from atlasbridge.adapters.claude_code import ClaudeAdapter
from atlasbridge.config.load import load_config
from atlasbridge.core.constants import INJECT_BYTES
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.host.supervisor import Supervisor as PTYSupervisor
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.store.moves import accept as decide_prompt
from atlasbridge.specification.text_detector import PromptDetector

__all__ = [
    "INJECT_BYTES",
    "ClaudeAdapter",
    "ConfigError",
    "PTYSupervisor",
    "PromptDetector",
    "PromptType",
    "decide_prompt",
    "load_config",
]
