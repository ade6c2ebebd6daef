"""Gives Gemini CLI a tall window while no terminal is attached.

Gemini hides the lines of a command or a change that do not fit into its window, and nothing else tells them: its hooks
see them, but it takes hooks for one run only from files that belong to root.
"""

from __future__ import annotations

from atlasbridge.adapters.tool_start import ToolStart
from atlasbridge.core.values import replace

ROWS = 240  # a command of 200 lines, with the dialog around it


def prepare(start: ToolStart) -> ToolStart:
    return replace(start, rows_alone=ROWS)
