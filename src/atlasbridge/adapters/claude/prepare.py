"""Claude Code is started with a hook of ours for this run: it tells in full what is asked, and may take the answer."""

from __future__ import annotations

from atlasbridge.adapters.claude.hook import with_hook
from atlasbridge.adapters.installed import installed_version
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

HOOK_S = 0.4
# Versions where it was tried that the dialog stands there, and can be answered, while a hook still waits; in others the
# hook only tells.
ANSWERING = ("2.1.325",)


def prepare(start: ToolStart) -> ToolStart:
    answers = installed_version(start.command[0], start.environ.get("PATH", "")) in ANSWERING
    return replace(start, command=with_hook(start.command, start.attach_socket, answers), hook_s=HOOK_S)
