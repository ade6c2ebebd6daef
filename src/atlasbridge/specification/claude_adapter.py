"""The names of the Claude adapter document."""

from __future__ import annotations

import os
from pathlib import Path

from atlasbridge.adapters.claude_code import ClaudeAdapter
from atlasbridge.channels.registry import ChannelRegistry, channel_settings
from atlasbridge.config.load import Configuration
from atlasbridge.config.load import load_config as load_config_of
from atlasbridge.core.constants import INJECT_BYTES
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.specification.document_classes import PromptDetector, PTYSupervisor

decide_prompt = Ledger.decide_prompt

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


def load_config(path: str | os.PathLike[str] | None = None) -> Configuration:
    """Load the configuration from this file, or from this user's home folder. Raises ConfigError."""
    place = Path(path) if path is not None else Home.find(os.environ).config
    return load_config_of(place, os.environ, channel_settings, ChannelRegistry.names())
