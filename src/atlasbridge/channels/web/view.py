"""How prompts, sessions and screens look to a page: plain JSON, every text made visible once more on its way out."""

from __future__ import annotations

from typing import Any

from atlasbridge.channels.quoting import warn_incomplete
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible


def render_session(session: SessionRecord) -> dict[str, Any]:
    out = session.to_json()
    for name in ("tool", "cwd", "label"):
        out[name] = visible(out[name], keep_lines=False)
    out["command"] = [visible(word, keep_lines=False) for word in out["command"]]
    out["open_prompt"] = out["open_prompt"] or ""
    return out


def render_prompt(record: PromptRecord, session: SessionRecord | None) -> dict[str, Any]:
    out: dict[str, Any] = _clean(record.to_json())
    out["asked"] = visible(record.prompt.asked)
    out["warning"] = warn_incomplete(record.prompt)
    out["decided_at"] = record.decided_at
    out["free_text"] = takes_text(record)
    out["multiline"] = record.prompt.multiline
    for shown, choice in zip(out["choices"], record.prompt.choices, strict=True):
        shown["words"] = bool(record.prompt.text_steps) and not choice.steps  # chosen by saying something
    out["session"] = render_session(session) if session else None
    return out


def takes_text(record: PromptRecord) -> bool:
    """Whether a text field makes sense: the tool takes text here, or nobody knows what it takes."""
    prompt = record.prompt
    asked = prompt.type.value in ("free_text", "unknown")
    return asked or bool(prompt.text_steps) or bool(prompt.constraints.get("allows_other"))


def render_screen(frame: dict[str, Any]) -> dict[str, Any]:
    """The host's words for a screen are kept; texts inside are made visible."""
    cleaned: dict[str, Any] = _clean(frame)
    return cleaned


def diff_screen(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """Only the rows that changed, by number; the whole picture when there was none, or its size is another."""
    rows, old = now.get("styled"), before.get("styled") if before else None
    if not isinstance(rows, list) or not isinstance(old, list) or len(rows) != len(old):
        return now
    changed = {str(at): row for at, row in enumerate(rows) if row != old[at]}
    return {**{name: value for name, value in now.items() if name != "styled"}, "changed": changed}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: _clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value
