"""Prompts and notices as Telegram shows them: plain text with entities (UTF-16 offsets) and inline keyboards.  Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.telegram import picking
from atlasbridge.channels.telegram.callbacks import ANSWER, SHOW, encode_callback
from atlasbridge.channels.wording import Button, Role
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

TEXT_LIMIT = 4096
INLINE_LIMIT = 3500  # longer output goes out as a file
PAIRED_LABEL = 16  # buttons at most this long share a row


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

    def params(self, keyboard: list[list[dict[str, str]]] | None = None) -> dict[str, Any]:
        """As Telegram takes it; the text is stripped at its end because the server does so too."""
        out: dict[str, Any] = {"text": self.text.rstrip("\n"), "link_preview_options": {"is_disabled": True}}
        if self.entities:
            out["entities"] = self.entities
        if keyboard:
            out["reply_markup"] = {"inline_keyboard": keyboard}
        return out


def render_prompt(
    record: PromptRecord, session: SessionRecord, now: float, host: str, marks: int | None = None
) -> dict[str, Any]:
    """The message that asks, with its keyboard."""
    body = _question(record, session, host)
    prompt = record.prompt
    if prompt.choices and (prompt.constraints.get("multi_select") or _labels_are_cut(prompt.choices)):
        body.line()
        for choice in prompt.choices:
            body.line(f"{choice.value}. {visible(choice.label, keep_lines=False)[:200]}")
    if hint := wording.render_hint(prompt, record.prompt_id):
        body.line().line(hint)
    body.line().line(wording.render_deadline(record, now))
    return body.params([*picking.render_rows(record, marks), *render_keyboard(record)])


def render_outcome(
    record: PromptRecord, session: SessionRecord, receipt: Receipt, who: str, host: str
) -> dict[str, Any]:
    """The same message after something became of the prompt; the keyboard is gone."""
    body = _question(record, session, host)
    body.line().line(wording.render_receipt(receipt, who), "bold")
    return body.params()


def render_keyboard(record: PromptRecord) -> list[list[dict[str, str]]]:
    """Short answers share a row; refusing, default, cancel and show stand in rows of their own, in that order."""
    rows: list[list[Button]] = []
    for button in wording.render_buttons(record.prompt):
        if rows and _may_share(button, rows[-1]):
            rows[-1].append(button)
        else:
            rows.append([button])
    return [[{"text": shown.label, "callback_data": _data(record, shown)} for shown in row] for row in rows]


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    body = Body()
    if session is not None:
        body.line(f"{wording.tool_name(session)} · {short_id(session.session_id)} · {host}", "italic")
    return body.line(cut_text(visible(message), INLINE_LIMIT)).params()


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of a doubtful prompt, with the same buttons once more."""
    text = visible(record.prompt.screen or record.prompt.excerpt).rstrip()[-wording.LAST_OUTPUT :]
    return Body().line("Last output:").line(text or "(empty)", "pre").params(render_keyboard(record))


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """A screen inside a message, or None when it is too long for one (then it goes out as a file)."""
    text = visible(screen).rstrip()
    if utf16_units(text) > INLINE_LIMIT:
        return None
    return Body().line(title).line(text or "(empty)", "pre").params()


def cut_text(text: str, limit: int) -> str:
    """At most `limit` UTF-16 units, never through a surrogate pair."""
    if utf16_units(text) <= limit:
        return text
    return text.encode("utf-16-le")[: 2 * (limit - 1)].decode("utf-16-le", "ignore") + "…"


def _question(record: PromptRecord, session: SessionRecord, host: str) -> Body:
    body = Body().line(wording.render_title(record.prompt, session), "bold")
    body.line(wording.render_kind(record.prompt), "italic")
    body.line(wording.render_header(record.prompt, session, host)).line()
    return body.line(cut_text(wording.render_question(record.prompt), 1000), "pre")


def _labels_are_cut(choices: tuple[Any, ...]) -> bool:
    return any(len(choice.label) > wording.LABEL_LIMIT - 4 for choice in choices)


def _data(record: PromptRecord, button: Button) -> str:
    verb = SHOW if button.role is Role.SHOW else ANSWER
    return encode_callback(record, button.value, verb)


def _may_share(button: Button, row: list[Button]) -> bool:
    """Two short plain answers side by side; a refusing or lasting one never stands beside another."""
    return len(row) == 1 and all(
        shown.role is Role.ANSWER and len(shown.label) <= PAIRED_LABEL for shown in [*row, button]
    )
