"""What each channel shows of a prompt: the one place that knows how they are rendered."""

from __future__ import annotations

import json
from collections.abc import Iterator

from atlasbridge.channels import wording
from atlasbridge.channels.telegram.templates import render_prompt
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptState
from atlasbridge.core.session.model import SessionRecord

SESSION = SessionRecord("5e55", "claude", ("claude",), "/home/me", 1, 1, "")


def shown_by_each(prompt: Prompt) -> Iterator[tuple[str, str]]:
    record = PromptRecord("a1b2c3d4e5f6", "5e55", prompt, PromptState.AWAITING_REPLY, "ab" * 16, "", "", 600.0)
    yield "words", wording.render_question(prompt)
    yield "telegram", render_prompt(record, SESSION, 0.0, "host")["text"]
    yield "machine", json.loads(json.dumps(record.to_json()))["question"]
