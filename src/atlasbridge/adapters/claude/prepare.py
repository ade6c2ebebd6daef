"""Starts Claude Code with our hook for this run. The hook reports the complete request, and can return the answer."""

from __future__ import annotations

from atlasbridge.adapters.claude.hook import with_hook
from atlasbridge.adapters.installed import installed_version
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

HOOK_S = 0.4
# Versions whose dialog was tested to stay visible and usable while a hook waits. In other versions the hook only
# reports.
ANSWERING = ("2.1.325",)


def prepare(start: ToolStart) -> ToolStart:
    answers = installed_version(start.command[0], start.environ.get("PATH", "")) in ANSWERING
    return replace(start, command=with_hook(start.command, start.attach_socket, answers), hook_s=HOOK_S)
