"""OpenCode is told in its environment whom to tell what it asks."""

from __future__ import annotations

from atlasbridge.adapters.opencode.events import with_events
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace


def prepare(start: ToolStart) -> ToolStart:
    return replace(start, environ=with_events(start.environ, start.door))
