"""Converts between the prompts of the core and the frozen interface's `PromptEvent`, within the frozen limits.

A `PromptEvent` contains less than a `Prompt` (no keys, no digest), so an adapter keeps the prompt beside the event.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from atlasbridge.adapters.base import Confidence, PromptEvent, make_idempotency_key
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Evidence, Prompt, PromptType
from atlasbridge.core.recognition.finding import typed_line

EXCERPT_CHARACTERS = 200
MAX_CHOICES, CHOICE_CHARACTERS = 9, 60
TEXT_CHARACTERS = 200
_SCORES = {"high": 0.9, "med": 0.7, "medium": 0.7, "low": 0.6}


def event_of(prompt: Prompt, session_id: str, clock: Clock) -> PromptEvent:
    """The prompt as a frozen event, with a new id and nonce."""
    excerpt = shorten(prompt.excerpt)
    choices = [choice for choice in prompt.choices if choice.value != "cancel"][:MAX_CHOICES]
    constraints: dict[str, Any] = {"max_length": TEXT_CHARACTERS, **prompt.constraints, "nonce": secrets.token_hex(16)}
    if prompt.type is PromptType.TYPE_MULTIPLE_CHOICE:
        constraints |= {"min_choice": 1, "max_choice": len(choices)}
    return PromptEvent(
        prompt_id=new_id(),
        session_id=session_id,
        prompt_type=prompt.type,
        confidence=Confidence(prompt.confidence.value),
        excerpt=excerpt,
        choices=[choice.label[:CHOICE_CHARACTERS] for choice in choices],
        constraints=constraints,
        idempotency_key=make_idempotency_key(session_id, excerpt, wall=clock.wall()),
        timestamp=iso(clock.wall()),
        raw_bytes=prompt.raw,
    )


def prompt_of_event(event: dict[str, Any]) -> Prompt:
    """A prompt that a foreign adapter has detected. The answer goes to that adapter as one line."""
    kind = PromptType(event["prompt_type"])
    asked = str(event["excerpt"])
    excerpt = shorten(asked)
    digest = hashlib.blake2s(f"{event['prompt_id']}\0{asked}".encode(), digest_size=16).hexdigest()
    score = _SCORES.get(str(event["confidence"]), 0.6)
    return Prompt(
        type=kind,
        score=score,
        excerpt=excerpt,
        screen=asked,
        choices=_choices(kind, [str(label) for label in event.get("choices", ())]),
        constraints={**(event.get("constraints") or {}), "adapter_prompt": str(event["prompt_id"])},
        evidence=(Evidence("structured", score, "its adapter detected it"),),
        safe_default="n" if kind is PromptType.TYPE_YES_NO else "",
        digest=digest,
        end_steps=(Step(b"\r"),),
    )


def _choices(kind: PromptType, labels: list[str]) -> tuple[Choice, ...]:
    if kind is PromptType.TYPE_YES_NO:
        yes, no = labels if len(labels) == 2 else ("Yes", "No")
        return Choice("y", yes, typed_line("y")), Choice("n", no, typed_line("n"), refuses=True)
    return tuple(Choice(str(at), label, typed_line(str(at))) for at, label in enumerate(labels[:MAX_CHOICES], 1))


def shorten(text: str, limit: int = EXCERPT_CHARACTERS) -> str:
    """At most `limit` characters, with `…` for omitted text. The last line is kept, because it
    contains the question."""
    if len(text) <= limit:
        return text
    above, _, asks = text.rstrip().rpartition("\n")
    room = limit - len(asks) - 2
    return f"{above[:room]}…\n{asks}" if above and room > 0 else f"{asks[: limit - 1]}…"
