"""OpenCode is told in its environment whom to tell what it asks."""

from __future__ import annotations

import os

from atlasbridge.adapters.opencode.events import with_events
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

EVENT_S = 0.4  # its plugin speaks when the dialog is drawn, and knows what that leaves out


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt":
        return start  # its plugin knows the way to a socket alone
    return replace(start, environ=with_events(start.environ, start.attach_socket), hook_s=EVENT_S)
