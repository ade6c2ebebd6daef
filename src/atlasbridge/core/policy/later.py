"""A scheduled answer or a snooze. Pure."""

from __future__ import annotations

from typing import Any

from atlasbridge.core.values import frozen

ANSWER, SNOOZE = "answer", "snooze"


@frozen
class Later:
    """`value` is the reply as given, interpreted when it is due; `due_at` and the other times are wall times."""

    later_id: str
    prompt_id: str
    kind: str
    due_at: str
    channel: str
    identity: str
    value: str = ""
    as_text: bool = False
    place: str = ""
    created_at: str = ""
    ended_at: str = ""
    outcome: str = ""

    def to_json(self) -> dict[str, Any]:
        names = ("later_id", "prompt_id", "kind", "due_at", "value", "place", "created_at")
        return {**{name: getattr(self, name) for name in names}, "by": self.identity}
