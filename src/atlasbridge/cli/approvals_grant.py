"""Allowing something for a while from `approvals`: what would be allowed, as lines, and which key means what.  Pure."""

from __future__ import annotations

from typing import Any

from atlasbridge.core.policy.grant import SPANS, Span
from atlasbridge.core.values import frozen

KEYS = "  ".join(f"{number} {span.label.lower()}" for number, span in enumerate(SPANS, 1)) + "  any other key: back"


@frozen
class Offer:
    """What stands in the place of the question while it is offered."""

    prompt_id: str
    text: str


def read_offer(prompt_id: str, made: dict[str, Any]) -> Offer:
    lines = [f"Without asking, this would be allowed: {made['shape']}.", ""]
    lines += [f"  allows        {text}" for text in made["would"]]
    lines += [f"  does not      {text}" for text in made["would_not"]]
    lines += ["", "In this session unless it says folder; twelve hours at most. What a rule denies or asks stays so."]
    return Offer(prompt_id, "\n".join(lines))


def meant_span(key: str) -> Span | None:
    return SPANS[int(key) - 1] if key.isdecimal() and key.isascii() and 1 <= int(key) <= len(SPANS) else None
