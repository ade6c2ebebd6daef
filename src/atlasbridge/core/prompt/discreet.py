"""What a session knows to be secret, and a prompt, a command or typed keys without it.

A session's secrets are kept in its host's memory only: those of the tool's environment, and what was typed as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.hidden import is_looked_for
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.redact import leaves, redact
from atlasbridge.core.values import replace

MOST_SECRETS = 64  # the oldest is forgotten: each one is looked for in all that leaves
_SEQUENCE = lazy(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)")
_ERASE, _CLEAR, _WORD_AWAY = b"\x7f\x08", 0x15, 0x17


def remembered(secrets: tuple[str, ...], value: str) -> tuple[str, ...]:
    """With one more, unless it is so short or plain that hiding it would hide anything."""
    value = value.strip()
    if value in secrets or not is_looked_for(value):
        return secrets
    return (*secrets, value)[-MOST_SECRETS:]


def typed_text(keys: bytes) -> str:
    """The text that these keys leave in a line, as far as erasing goes."""
    out = bytearray()
    for key in _SEQUENCE.sub(b"", keys):
        if key in _ERASE:
            while out and out.pop() & 0xC0 == 0x80:
                pass
        elif key == _CLEAR:
            out.clear()
        elif key == _WORD_AWAY:
            del out[out.rstrip().rfind(b" ") + 1 :]
        elif key >= 0x20:
            out.append(key)
    return out.decode("utf-8", "replace")


def discreet_prompt(prompt: Prompt, secrets: tuple[str, ...] = ()) -> Prompt:
    """As it may be told to others; the text of its subject stays whole for those who decide on this machine."""

    def safe(text: str) -> str:
        return leaves(text, secrets)

    subject = prompt.subject
    return replace(
        prompt,
        excerpt=safe(prompt.excerpt),
        screen=safe(prompt.screen),
        choices=tuple(replace(choice, label=safe(choice.label)) for choice in prompt.choices),
        constraints={
            name: safe(value) if isinstance(value, str) else value for name, value in prompt.constraints.items()
        },
        evidence=tuple(replace(item, detail=safe(item.detail)) for item in prompt.evidence),
        raw=redact(prompt.raw.decode("utf-8", "surrogateescape"), secrets).encode("utf-8", "surrogateescape"),
        subject=subject and replace(subject, shown=safe(subject.shown), target=safe(subject.target)),
    )


def discreet_data(data: Any, secrets: tuple[str, ...] = ()) -> Any:
    """Every text in it, at any depth, as it may leave."""
    if isinstance(data, str):
        return leaves(data, secrets)
    if isinstance(data, Mapping):
        return {name: discreet_data(value, secrets) for name, value in data.items()}
    return [discreet_data(item, secrets) for item in data] if isinstance(data, list | tuple) else data


def discreet_words(words: tuple[str, ...], secrets: tuple[str, ...] = ()) -> tuple[str, ...]:
    """A command's words; the value behind a flag such as `--token` is known by the flag."""
    out: list[str] = []
    for at, word in enumerate(words):
        shown = redact(word, secrets)
        flag = f"{words[at - 1]} " if at and words[at - 1].startswith("-") else ""
        behind = redact(flag + word, secrets)
        out.append(behind[len(flag) :] if shown == word and behind.startswith(flag) else shown)
    return tuple(out)
