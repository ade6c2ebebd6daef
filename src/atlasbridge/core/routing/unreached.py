"""Channels that could not show a prompt: counted for `status`, and told to the others once for each outage."""

from __future__ import annotations

from typing import Any

from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.visible import visible

TOLD_AFTER = 3  # attempts: a short hiccup is nobody's news
LONGEST_WHY = 120


class Unreached:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, str]] = {}  # channel -> prompt -> why
        self._told: set[str] = set()

    def failed(self, channel: str, record: PromptRecord, attempts: int, why: str) -> str:
        """What the other channels are told now, or ""."""
        shown = visible(why, keep_lines=False)[:LONGEST_WHY]
        self._waiting.setdefault(channel, {})[record.prompt_id] = shown
        if attempts < TOLD_AFTER or channel in self._told:
            return ""
        self._told.add(channel)
        return f"A question could not be shown in {channel}: {shown}. It is tried again, and it waits for you here."

    def reached(self, channel: str, prompt_id: str) -> None:
        """It works again: the next outage is news again."""
        self._waiting.pop(channel, None)
        self._told.discard(channel)

    def gave_up(self, channel: str, prompt_id: str) -> None:
        """It ended before it could be shown."""
        self._waiting.get(channel, {}).pop(prompt_id, None)

    def report(self, channel: str) -> dict[str, Any]:
        waiting = self._waiting.get(channel)
        return {"unreached": len(waiting), "why": next(reversed(waiting.values()))} if waiting else {}
