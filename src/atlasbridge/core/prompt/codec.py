"""Encodes a whole `Prompt` as JSON and decodes it: the format between host and hub, and in the store.

`Prompt.to_json` is the public format. This one also contains what typing needs (digest, steps, line mode) and stays on
this machine; a fleet server gets the public format and `encode_keys`. A field that is missing in data of an older
version gets its default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from atlasbridge.core.prompt.keys import Step, decode_until, encode_until
from atlasbridge.core.prompt.model import (
    Choice,
    Evidence,
    FormField,
    Prompt,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.values import as_dict, replace

_STEPS = ("text_steps", "end_steps", "words_end")
_FLAGS = ("refuses", "always", "default")
_FIELD_STEPS = ("lead", "below", "clear")


def encode_prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        **as_dict(prompt),
        "type": prompt.type.value,
        "choices": [{**as_dict(choice), "steps": _encode_steps(choice.steps)} for choice in prompt.choices],
        "constraints": dict(prompt.constraints),
        "evidence": [[item.signal, item.score, item.detail] for item in prompt.evidence],
        **{name: _encode_steps(getattr(prompt, name)) for name in _STEPS},
        "fields": [
            {**as_dict(one), **{name: _encode_steps(getattr(one, name)) for name in _FIELD_STEPS}}
            for one in prompt.fields
        ],
        "raw": prompt.raw.decode("latin-1"),
        "subject": None if prompt.subject is None else as_dict(prompt.subject),
    }


def encode_keys(prompt: Prompt) -> dict[str, Any]:
    """How the prompt takes an answer. With it a fleet server, which never types, offers the same answers as this
    machine and understands them alike."""
    return {
        "line_mode": prompt.line_mode,
        "multiline": prompt.multiline,
        **{name: _plain_keys(getattr(prompt, name)) for name in _STEPS},
        "choices": [_plain_keys(choice.steps) for choice in prompt.choices],
        "fields": [one.label for one in prompt.fields],
    }


def with_keys(prompt: Prompt, told: Mapping[str, Any] | None) -> Prompt:
    """The inverse, for a prompt in the public format. Earlier versions tell nothing. An invalid value raises KeyError,
    TypeError or ValueError."""
    if told is None:
        return prompt
    of_choices = zip(prompt.choices, told["choices"], strict=True)
    return replace(
        prompt,
        line_mode=bool(told["line_mode"]),
        multiline=bool(told["multiline"]),
        **{name: _plain_steps(told[name]) for name in _STEPS},
        choices=tuple(replace(choice, steps=_plain_steps(keys)) for choice, keys in of_choices),
        fields=tuple(FormField(str(label)) for label in told["fields"]),
    )


def _plain_keys(steps: tuple[Step, ...]) -> list[str]:
    return [step.keys.decode("latin-1") for step in steps]


def _plain_steps(keys: Iterable[str]) -> tuple[Step, ...]:
    return tuple(Step(one.encode("latin-1", "replace")) for one in keys)  # PostgreSQL stores no NUL


def for_storage(prompt: Prompt) -> Prompt:
    """The prompt as it is stored: without raw bytes, and with a digest and the displayable text of its subject."""
    return replace(prompt, raw=b"", subject=prompt.subject and prompt.subject.for_storage())


def decode_prompt(data: Mapping[str, Any]) -> Prompt:
    """The inverse of `encode_prompt`. A missing or invalid field raises KeyError, TypeError or ValueError."""
    return Prompt(
        type=PromptType(data["type"]),
        score=float(data["score"]),
        excerpt=str(data["excerpt"]),
        screen=str(data.get("screen", "")),
        choices=tuple(_decode_choice(item) for item in data.get("choices", ())),
        constraints=dict(data.get("constraints", {})),
        evidence=tuple(_decode_evidence(item) for item in data.get("evidence", ())),
        safe_default=str(data.get("safe_default", "")),
        digest=str(data.get("digest", "")),
        line_mode=bool(data.get("line_mode", True)),
        **{name: _decode_steps(data.get(name, ())) for name in _STEPS},
        fields=tuple(_decode_field(item) for item in data.get("fields", ())),
        multiline=bool(data.get("multiline", False)),
        raw=str(data.get("raw", "")).encode("latin-1"),
        subject=_decode_subject(data.get("subject")),
        question=str(data.get("question", "")),
        whole=bool(data.get("whole", True)),
        says=str(data.get("says", "")),
        context_rows=int(data.get("context_rows", 0)),
    )


def _encode_steps(steps: tuple[Step, ...]) -> list[list[str]]:
    return [[step.keys.decode("latin-1"), encode_until(step.until)] for step in steps]


def _decode_steps(data: Iterable[Any]) -> tuple[Step, ...]:
    return tuple(_decode_step(item) for item in data)


def _decode_field(data: Mapping[str, Any]) -> FormField:
    steps = {name: _decode_steps(data[name]) for name in _FIELD_STEPS}
    return FormField(str(data["label"]), before=str(data["before"]), **steps)


def _decode_step(data: Any) -> Step:
    keys, until = (data["keys"], data["until"]) if isinstance(data, Mapping) else data  # version 0.1.0 stored names
    return Step(keys.encode("latin-1"), decode_until(until))


def _decode_evidence(data: Any) -> Evidence:
    signal, score, why = (data["signal"], data["score"], data["detail"]) if isinstance(data, Mapping) else data
    return Evidence(str(signal), float(score), str(why))


def _decode_choice(data: Mapping[str, Any]) -> Choice:
    flags = {name: bool(data.get(name, False)) for name in _FLAGS}
    return Choice(
        str(data["value"]),
        str(data["label"]),
        _decode_steps(data.get("steps", ())),
        **flags,
        detail=str(data.get("detail", "")),
    )


def _decode_subject(data: Mapping[str, Any] | None) -> Subject | None:
    if data is None:
        return None
    return Subject(
        kind=SubjectKind(data["kind"]),
        text=str(data["text"]),
        folder=str(data["folder"]),
        source=SubjectSource(data["source"]),
        complete=bool(data["complete"]),
        shown=str(data["shown"]),
        target=str(data["target"]),
        digest=str(data["digest"]),
    )
