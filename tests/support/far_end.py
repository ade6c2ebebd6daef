"""What each channel shows of a prompt: the one place that knows how they are rendered."""

from __future__ import annotations

import json
from collections.abc import Iterator

from atlasbridge.channels.slack import blocks
from atlasbridge.channels.telegram import templates
from atlasbridge.core.clock import iso
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptState
from atlasbridge.core.session.model import SessionRecord

MOMENT = iso(1_800_000_000.0)
SESSION = SessionRecord("5e55", "claude", ("claude",), "/home/me", 1, 1, "")


def shown_by_each(prompt: Prompt) -> Iterator[tuple[str, str]]:
    record = PromptRecord("a1b2c3d4e5f6", "5e55", prompt, PromptState.AWAITING_REPLY, "ab" * 16, MOMENT, MOMENT, 600.0)
    yield "telegram", templates.render_prompt(record, SESSION, "host")["text"]
    yield "slack", "\n".join(_texts(blocks.render_prompt(record, SESSION, "host")))
    page = json.loads(json.dumps(record.to_json()))
    yield "page", page["question"] if page["whole"] else "⚠" + page["question"]


def _texts(value: object) -> Iterator[str]:
    """Every text in Slack's blocks, in reading order, as Slack shows it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
