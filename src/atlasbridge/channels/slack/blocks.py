"""Prompts and notices as Slack shows them: Block Kit.  Pure.

Text that a tool printed stands only in plain or preformatted elements, where Slack reads no markup.  Every message is
within the limits by construction: what the tool says gets the room that our words leave.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.outcome import Outcome
from atlasbridge.channels.quoting import (
    LAST_OUTPUT,
    count_missing,
    cut_to,
    fit_quotes,
    quotes_of,
    warn_incomplete,
)
from atlasbridge.channels.slack.actions import AGAIN, GRANT, LATER, THIS, encode_action
from atlasbridge.channels.slack.elements import (
    Block,
    button,
    button_rows,
    context,
    count_text,
    marking,
    plain,
    quoted,
    section,
    takes_text,
)
from atlasbridge.channels.words import takes_words
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

__all__ = ["takes_text"]

HEADER_LIMIT, FALLBACK_LIMIT, MODAL_TITLE = 150, 1000, 24
QUOTE_LIMIT = 2900  # characters of one quotation
QUOTES_ROOM, LISTED_ROOM = 8000, 2500  # of all that the tool has written, and of its choices
MESSAGE_ROOM = 12_000  # Slack takes about 13,000 in all blocks of a message; titles and captions need some
IDLE_WORDS, WORDS = 3000, 1000  # Slack's own limit of a text field, and ours
CALLBACK, FIELD = "atlasbridge_text", "answer"
REST = "🔎 Show all, or atlasbridge approvals"


def render_prompt(record: PromptRecord, session: SessionRecord, host: str) -> dict[str, Any]:
    """The message that asks: header by us, the question quoted, buttons, time left."""
    prompt = record.prompt
    title = wording.render_headline(prompt, session)
    below = []
    if listed := wording.listed_choices(prompt, prompt.choices, LISTED_ROOM):
        below.append(quoted(cut_to("\n".join(listed), QUOTE_LIMIT, len)))
    if hint := _hint(record):
        below.append(context(hint))
    below += marking(record) + button_rows(record)
    below.append(context(wording.render_deadline(record)))
    return _message(title, _question(record, session, host, title, room=MESSAGE_ROOM - count_text(below)) + below)


def render_short(record: PromptRecord, session: SessionRecord) -> dict[str, Any]:
    """What is shown when Slack would not take the whole: that something waits, and where it can be read."""
    told = "It could not be shown here. Read and answer it on the page, or with: atlasbridge approvals"
    return _message(told, [section(f"❗ {wording.session_name(session)} asks something. {told}")])


def render_outcome(
    record: PromptRecord, session: SessionRecord, outcome: Outcome, host: str, again: bool = False
) -> dict[str, Any]:
    """The same message after something became of the prompt: the title says what; its buttons are gone."""
    blocks = _question(record, session, host, outcome.title, ended=True)
    if outcome.detail:
        blocks.append(context(outcome.detail))
    if again:
        ask = button("🔁 Ask again", encode_action(record, "", AGAIN), "again")
        blocks.append({"type": "actions", "elements": [ask]})
    return _message(outcome.title, blocks)


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    blocks = [section(visible(message))]
    if session is not None:
        name = wording.session_name(session)
        parts = (name, wording.tool_name(session), short_id(session.session_id), wording.host_name(session, host))
        blocks.insert(0, context(" · ".join(part for part in parts if part)))
    return _message(visible(message), blocks)


def render_snooze(record: PromptRecord) -> Block:
    """Below a reminder: to be asked again in a while."""
    spans = (("💤 In 15 minutes", "15"), ("💤 In an hour", "60"))
    row = [button(label, encode_action(record, minutes, LATER), f"snooze.{minutes}") for label, minutes in spans]
    return {"type": "actions", "elements": row}


def render_granting(record: PromptRecord, text: str, shown: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """What would be, or is, allowed for a while, with its buttons."""
    buttons = [
        button(label, encode_action(record, value, GRANT), f"grant.{place}")
        for place, (label, value) in enumerate(shown)
    ]
    rows = [{"type": "actions", "elements": buttons}] if buttons else []
    return _message(text, [section(text), *rows])


def render_which(
    sentence: str, offered: Iterable[tuple[PromptRecord, SessionRecord]], message_ts: str
) -> dict[str, Any]:
    """The question back: one button for every prompt that a text may have meant."""
    buttons = [
        button(
            wording.render_brief(record.prompt, session),
            encode_action(record, message_ts, THIS),
            f"which.{place}",
        )
        for place, (record, session) in enumerate(offered)
    ]
    return _message(sentence, [section(sentence), {"type": "actions", "elements": buttons}])


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of a doubtful prompt, with the same buttons once more."""
    text = visible(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:]
    shown = [context("Last output:"), quoted(text or "(empty)"), *button_rows(record)]
    return _message("Last output:", shown)


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """None when it is too long for a message: then it goes out as a file."""
    text = visible(screen).rstrip()
    return None if len(text) > QUOTE_LIMIT else _message(title, [context(title), quoted(text or "(empty)")])


def render_modal(record: PromptRecord, session: SessionRecord, label: str = "") -> dict[str, Any]:
    """A text field for an answer in words; which prompt it answers travels in the private metadata."""
    prompt = record.prompt
    limit = prompt.constraints.get("max_length")
    most = IDLE_WORDS if prompt.idle else WORDS
    field: dict[str, Any] = {"type": "plain_text_input", "action_id": FIELD, "min_length": 1}
    field["max_length"] = min(int(limit), most) if limit else most
    field["multiline"] = prompt.multiline
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": encode_action(record, "words" if label else ""),
        "title": plain(wording.session_name(session)[:MODAL_TITLE]),
        "submit": plain("Send"),
        "close": plain("Cancel"),
        "blocks": [
            *(quoted(quote.text) for quote in fit_quotes(quotes_of(prompt), QUOTE_LIMIT, len)),
            {"type": "input", "block_id": FIELD, "label": plain(label or "Your answer"), "element": field},
        ],
    }


def _hint(record: PromptRecord) -> str:
    hint = wording.render_hint(record.prompt, record.prompt_id)
    if takes_words(record.prompt) and record.prompt.choices:
        hint = "Choose, press ✍ Write an answer, or reply to this message with your own words."
    return hint.replace("reply to this message", "reply in this thread").replace(
        "Reply to this message", "Reply in this thread"
    )


def _question(
    record: PromptRecord, session: SessionRecord, host: str, title: str, ended: bool = False, room: int = QUOTES_ROOM
) -> list[Block]:
    """`room`: the characters that are left for what the tool has written."""
    prompt = record.prompt
    kind = "" if ended else wording.render_kind(prompt, session)
    header = wording.render_header(prompt, session, host)
    blocks = [
        {"type": "header", "text": plain(cut_to(title, HEADER_LIMIT, len))},
        context(f"{kind} · {header}" if kind else header),
    ]
    quotes = fit_quotes(quotes_of(prompt), min(room, QUOTES_ROOM), len)
    for quote in quotes:
        if quote.caption:
            blocks.append(context(f"{quote.caption}:"))
        blocks += [quoted(piece) for piece in _pieces(quote.text)]
    notes = [note for note in (count_missing(quotes, REST), warn_incomplete(prompt)) if note]
    return blocks + ([section("\n".join(notes))] if notes else [])


def _pieces(text: str) -> list[str]:
    """Split where one quotation cannot hold it, at the end of a line where there is one near."""
    pieces = []
    while len(text) > QUOTE_LIMIT:
        at = text.rfind("\n", QUOTE_LIMIT // 2, QUOTE_LIMIT) + 1 or QUOTE_LIMIT
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text] if text else pieces


def _message(fallback: str, blocks: list[Block]) -> dict[str, Any]:
    """`text` is what notifications and screen readers show; Slack reads & < > in it, so they are escaped."""
    escaped = fallback[:FALLBACK_LIMIT].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped or "…", "blocks": blocks}
