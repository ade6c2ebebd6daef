"""Claude Code is started with a hook of ours for this run, which tells in full what is asked."""

from __future__ import annotations

from atlasbridge.adapters.claude.hook import with_hook
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

HOOK_S = 0.4


def prepare(start: ToolStart) -> ToolStart:
    return replace(start, command=with_hook(start.command, start.door), hook_s=HOOK_S)
