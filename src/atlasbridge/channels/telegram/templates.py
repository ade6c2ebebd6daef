"""Prompts and notices as Telegram shows them: plain text with entities (UTF-16 offsets) and inline keyboards.  Pure.

Every message is within the server's limits by construction: what the tool says gets the room that our words leave.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.outcome import Outcome
from atlasbridge.channels.quoting import (
    LAST_OUTPUT,
    Quote,
    count_missing,
    cut_to,
    fit_quotes,
    quotes_of,
    warn_incomplete,
)
from atlasbridge.channels.telegram import picking
from atlasbridge.channels.telegram.keyboard import Keyboard, listed_on, render_keyboard
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

TEXT_LIMIT = 4096
INLINE_LIMIT = 3500  # longer output goes out as a file
LISTED_ROOM = 1500
NOTES_ROOM = 300  # for what is said about quotations: captions, counts, warnings
PLACEHOLDER_LIMIT = 64
REST = "🔎 Show all, or atlasbridge approvals"


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(slots=True)
class Body:
    """A message under construction: text, and its entities at the right offsets."""

    text: str = ""
    entities: list[dict[str, Any]] = field(default_factory=list)

    def add(self, text: str, style: str = "") -> Body:
        if style and text:
            at = utf16_units(self.text)
            self.entities.append({"type": style, "offset": at, "length": utf16_units(text)})
        self.text += text
        return self

    def line(self, text: str = "", style: str = "") -> Body:
        return self.add(text, style).add("\n")

    def some(self, text: str, style: str = "") -> Body:
        """A line, unless it is empty."""
        return self.line(text, style) if text else self

    def params(self, keyboard: Keyboard | None = None) -> dict[str, Any]:
        """As Telegram takes it; the text is stripped at its end because the server does so too."""
        out: dict[str, Any] = {"text": self.text.rstrip("\n"), "link_preview_options": {"is_disabled": True}}
        if self.entities:
            out["entities"] = self.entities
        if keyboard:
            out["reply_markup"] = {"inline_keyboard": keyboard}
        return out


def render_prompt(
    record: PromptRecord, session: SessionRecord, host: str, marks: int | None = None, page: int = 0
) -> dict[str, Any]:
    """The message that asks, with its keyboard."""
    prompt = record.prompt
    foot = Body()
    if listed := wording.listed_choices(prompt, listed_on(record, page), LISTED_ROOM):
        foot.line().line(cut_text("\n".join(listed), LISTED_ROOM + 100))
    if hint := wording.render_hint(prompt, record.prompt_id):
        foot.line().line(hint)
    foot.line().line(wording.render_deadline(record))
    body = _quoted(record, session, host, wording.render_headline(prompt, session), utf16_units(foot.text))
    keyboard = [*picking.render_rows(record, marks), *render_keyboard(record, page)]
    return body.add(foot.text).params(keyboard)


def render_short(record: PromptRecord, session: SessionRecord) -> dict[str, Any]:
    """What is shown when the server would not take the whole: that something waits, and where it can be read."""
    told = "It could not be shown here. Read and answer it on the page, or with: atlasbridge approvals"
    title = f"❗ {wording.session_name(session)} asks something"
    return Body().line(cut_text(title, 200), "bold").line(told).line(short_id(record.prompt_id)).params()


def render_outcome(
    record: PromptRecord, session: SessionRecord, outcome: Outcome, host: str, keyboard: Keyboard | None = None
) -> dict[str, Any]:
    """The same message after something became of the prompt: the title says what; its buttons are gone."""
    foot = Body().line().line(outcome.detail, "italic") if outcome.detail else Body()
    body = _quoted(record, session, host, cut_text(outcome.title, 300), utf16_units(foot.text), ended=True)
    if outcome.detail:
        body.line().line(outcome.detail, "italic")
    return body.params(keyboard)


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    body = Body()
    if session is not None:
        name = wording.session_name(session)
        parts = (name, wording.tool_name(session), short_id(session.session_id), wording.host_name(session, host))
        body.line(" · ".join(part for part in parts if part), "italic")
    return body.line(cut_text(visible(message), INLINE_LIMIT) or "…").params()


def render_words_wanted(record: PromptRecord, label: str) -> dict[str, Any]:
    """Asks for the words that a choice needs; the answer comes as a reply to this very message."""
    asked = Body().line(f"✍ Write your words for “{wording.short_label(label)}” as a reply to this message.")
    held = cut_text(wording.short_label(label), PLACEHOLDER_LIMIT)
    return asked.params() | {"reply_markup": {"force_reply": True, "selective": True, "input_field_placeholder": held}}


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of a doubtful prompt, with the same buttons once more."""
    text = cut_text(visible(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:], INLINE_LIMIT)
    return Body().line("Last output:").line(text or "(empty)", "pre").params(render_keyboard(record))


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """A screen inside a message, or None when it is too long for one (then it goes out as a file)."""
    text = visible(screen).rstrip()
    if utf16_units(text) > INLINE_LIMIT:
        return None
    return Body().line(cut_text(title, 200)).line(text or "(empty)", "pre").params()


def cut_text(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units, never through a surrogate pair."""
    return cut_to(text, limit, utf16_units)


def _quoted(
    record: PromptRecord, session: SessionRecord, host: str, title: str, taken: int, ended: bool = False
) -> Body:
    """Title, origin, and the tool's own words in the room that is left."""
    prompt = record.prompt
    body = Body().line(title, "bold").some("" if ended else wording.render_kind(prompt, session), "italic")
    body.line(cut_text(wording.render_header(prompt, session, host), 300)).line()
    room = TEXT_LIMIT - utf16_units(body.text) - taken - NOTES_ROOM
    quotes = fit_quotes(quotes_of(prompt), room, utf16_units)
    for quote in quotes:
        _add_quote(body, quote)
    return body.some(count_missing(quotes, REST), "bold").some(warn_incomplete(prompt), "bold")


def _add_quote(body: Body, quote: Quote) -> None:
    if quote.caption:
        body.line(cut_text(f"{quote.caption}:", 140), "italic")
    body.line(quote.text if quote.text.strip() else "(blank)", "pre")
