"""Codex is started with a hook of ours for this run, which tells in full what is asked.

It could answer, too; but Codex draws no dialog before its hooks have ended, so whoever sits at the terminal would see
nothing to answer.  It ends at once, and the keys answer.
"""

from __future__ import annotations

import os

from atlasbridge.adapters.codex.vouched_hook import with_hook
from atlasbridge.adapters.installed import installed_version
from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

# Versions whose digest of a hook is known.  Any other would ask at its start whether the hook may be trusted.
TELLING = ("0.166.0",)


def prepare(start: ToolStart) -> ToolStart:
    if os.name == "nt" or installed_version(start.command[0], start.environ.get("PATH", "")) not in TELLING:
        return start  # of Windows it is not known how it runs its hooks
    return replace(start, command=with_hook(start.command, start.attach_socket))
