"""A whole `Prompt` as JSON and back: what the host sends to the hub and what the store keeps.

`Prompt.to_json` is the public face; this form also holds what typing needs (digest, steps, line mode) and stays on
this machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.model import Choice, Evidence, Prompt, PromptType, Step


def encode_prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        "type": prompt.type.value,
        "score": prompt.score,
        "excerpt": prompt.excerpt,
        "screen": prompt.screen,
        "choices": [_encode_choice(choice) for choice in prompt.choices],
        "constraints": dict(prompt.constraints),
        "evidence": [[item.signal, item.score, item.detail] for item in prompt.evidence],
        "safe_default": prompt.safe_default,
        "digest": prompt.digest,
        "line_mode": prompt.line_mode,
        "text_steps": [_encode_step(step) for step in prompt.text_steps],
        "end_steps": [_encode_step(step) for step in prompt.end_steps],
        "words_end": [_encode_step(step) for step in prompt.words_end],
        "multiline": prompt.multiline,
        "raw": prompt.raw.decode("latin-1"),
    }


def decode_prompt(data: Mapping[str, Any]) -> Prompt:
    """The inverse of `encode_prompt`; a missing or wrong field raises (KeyError, TypeError or ValueError)."""
    return Prompt(
        type=PromptType(data["type"]),
        score=float(data["score"]),
        excerpt=str(data["excerpt"]),
        screen=str(data["screen"]),
        choices=tuple(_decode_choice(item) for item in data["choices"]),
        constraints=dict(data["constraints"]),
        evidence=tuple(Evidence(str(signal), float(score), str(why)) for signal, score, why in data["evidence"]),
        safe_default=str(data["safe_default"]),
        digest=str(data["digest"]),
        line_mode=bool(data["line_mode"]),
        text_steps=tuple(_decode_step(item) for item in data["text_steps"]),
        end_steps=tuple(_decode_step(item) for item in data["end_steps"]),
        words_end=tuple(_decode_step(item) for item in data.get("words_end", ())),
        multiline=bool(data["multiline"]),
        raw=str(data["raw"]).encode("latin-1"),
    )


def _encode_step(step: Step) -> list[str]:
    return [step.keys.decode("latin-1"), step.until]


def _decode_step(data: list[str]) -> Step:
    keys, until = data
    return Step(keys.encode("latin-1"), until)


def _encode_choice(choice: Choice) -> dict[str, Any]:
    return {**choice.to_json(), "steps": [_encode_step(step) for step in choice.steps]}


def _decode_choice(data: Mapping[str, Any]) -> Choice:
    return Choice(
        value=str(data["value"]),
        label=str(data["label"]),
        steps=tuple(_decode_step(item) for item in data["steps"]),
        refuses=bool(data.get("refuses", False)),
        always=bool(data.get("always", False)),
        default=bool(data.get("default", False)),
    )
