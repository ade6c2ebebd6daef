"""The JSON form of prompts, sessions and screens for a page. Every text is escaped again."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from atlasbridge.channels.excerpt import last_words, more_said, warn_incomplete
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.approval import may_be_granted
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord

_PICTURES = "[\u2190-\u2bff\U0001f000-\U0001faff]"
_JOINED = re.compile(f"(?<={_PICTURES})\u200d(?={_PICTURES})")


def render_session(session: SessionRecord) -> dict[str, Any]:
    out = session.to_json()
    for name in ("tool", "cwd", "label"):
        out[name] = escape_controls(out[name], keep_lines=False)
    out["command"] = [escape_controls(word, keep_lines=False) for word in out["command"]]
    out["open_prompt"] = out["open_prompt"] or ""
    return out


def render_prompt(record: PromptRecord, session: SessionRecord | None) -> dict[str, Any]:
    out: dict[str, Any] = render_plain(record.to_json())
    out["asked"] = escape_controls(record.prompt.asked)
    prompt = record.prompt
    out["digest"] = prompt.digest
    out["warning"] = warn_incomplete(prompt)
    out["says"] = more_said(prompt, prompt.question or prompt.excerpt)
    rests = prompt.idle and not prompt.secret and not prompt.constraints.get("commands")
    out["last_words"] = last_words(escape_controls(prompt.screen).rstrip()) if rests and prompt.screen else ""
    out["decided_at"] = record.decided_at
    out["free_text"] = takes_text(record)
    out["multiline"] = record.prompt.multiline
    out["grantable"] = may_be_granted(record.prompt)
    for shown, choice in zip(out["choices"], record.prompt.choices, strict=True):
        shown["words"] = bool(record.prompt.text_steps) and not choice.steps  # chosen by typing a text
    out["session"] = render_session(session) if session else None
    return out


def render_plain(value: Any, show: Callable[[str], str] = escape_controls) -> Any:
    """Escape every text in a value from the hub."""
    if isinstance(value, str):
        return show(value)
    if isinstance(value, dict):
        return {name: render_plain(item, show) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [render_plain(item, show) for item in value]
    return value


def render_answer(record: PromptRecord, answer: dict[str, Any]) -> dict[str, Any]:
    """The given answer with its choice's label, by whom and when. The text of a secret is never included."""
    value = answer["value"]
    labels = {choice.value: choice.label for choice in record.prompt.choices}
    words = {"yes": "Yes", "no": "No", "enter": "Enter"}.get(answer["kind"], "")
    if value is None:
        label = "a secret"
    elif answer["kind"] in ("choice", "choices"):
        label = ", ".join(labels.get(part, part) for part in value.split(",")) or "none of them"
    else:
        label = words or value
    shown: dict[str, Any] = render_plain({**answer, "label": label})
    return shown


def takes_text(record: PromptRecord) -> bool:
    """Whether to show a text field: the tool accepts text, or it is unknown what it accepts."""
    prompt = record.prompt
    asked = prompt.type.value in ("free_text", "unknown")
    return asked or bool(prompt.text_steps) or bool(prompt.constraints.get("allows_other"))


def render_screen(frame: dict[str, Any]) -> dict[str, Any]:
    """The host's format of a screen with its texts escaped. `why` is only for `lab explain`."""
    shown = {name: value for name, value in frame.items() if name != "why"}
    cleaned: dict[str, Any] = render_plain(shown, _visible_cells)
    return cleaned


def _visible_cells(text: str) -> str:
    """Joined emoji stay joined: on a screen they are one character, not a trick."""
    parts = _JOINED.split(text.replace("\ufe0f", ""))
    return "\u200d".join(escape_controls(part) for part in parts)


def diff_screen(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Only the changed rows by number; the whole screen if there was none or its size changed."""
    rows, old = now.get("styled"), before.get("styled") if before else None
    if not isinstance(rows, list) or not isinstance(old, list) or len(rows) != len(old):
        return now
    changed = {str(at): row for at, row in enumerate(rows) if row != old[at]}
    return {**{name: value for name, value in now.items() if name != "styled"}, "changed": changed}
