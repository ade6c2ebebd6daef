"""Prompts and notices as Slack shows them: Block Kit.  Pure.

Text that a tool printed stands only in plain or preformatted elements, where Slack reads no markup.
"""

from __future__ import annotations

from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.slack.actions import ANSWER, PICK, SHOW, WRITE, encode_action
from atlasbridge.channels.wording import Button, Role
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptType
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

HEADER_LIMIT, CONTEXT_LIMIT, BUTTON_LIMIT, QUOTE_LIMIT = 150, 2000, 75, 2900
ROW_LIMIT, CHECKBOX_LIMIT, SELECT_LIMIT = 25, 10, 100
CALLBACK, FIELD = "atlasbridge_text", "answer"
Block = dict[str, Any]


def render_prompt(record: PromptRecord, session: SessionRecord, now: float, host: str) -> dict[str, Any]:
    """The message that asks: header by us, the question quoted, buttons, time left."""
    prompt = record.prompt
    blocks = _question(record, session, host)
    if prompt.choices and (prompt.constraints.get("multi_select") or any(len(c.label) > 36 for c in prompt.choices)):
        listed = "\n".join(f"{c.value}. {visible(c.label, keep_lines=False)[:200]}" for c in prompt.choices)
        blocks.append(_quoted(listed))
    if hint := _hint(record):
        blocks.append(_context(hint))
    blocks += _marking(record) + _button_rows(record)
    blocks.append(_context(wording.render_deadline(record, now)))
    return _message(wording.render_title(prompt, session), blocks)


def render_outcome(
    record: PromptRecord, session: SessionRecord, receipt: Receipt, who: str, host: str
) -> dict[str, Any]:
    """The same message after something became of the prompt; the buttons are gone."""
    sentence = wording.render_receipt(receipt, who)
    return _message(sentence, [*_question(record, session, host), _section(sentence)])


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    blocks = [_section(visible(message))]
    if session is not None:
        blocks.insert(0, _context(f"{wording.tool_name(session)} · {short_id(session.session_id)} · {host}"))
    return _message(visible(message), blocks)


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of a doubtful prompt, with the same buttons once more."""
    text = visible(record.prompt.screen or record.prompt.excerpt).rstrip()[-wording.LAST_OUTPUT :]
    shown = [_context("Last output:"), _quoted(text or "(empty)"), *_button_rows(record)]
    return _message("Last output:", shown)


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """None when it is too long for a message: then it goes out as a file."""
    text = visible(screen).rstrip()
    return None if len(text) > QUOTE_LIMIT else _message(title, [_context(title), _quoted(text or "(empty)")])


def render_modal(record: PromptRecord, session: SessionRecord) -> dict[str, Any]:
    """A text field for an answer in words; which prompt it answers travels in the private metadata."""
    limit = record.prompt.constraints.get("max_length")
    field: dict[str, Any] = {"type": "plain_text_input", "action_id": FIELD, "min_length": 1}
    field["max_length"] = min(int(limit), 1000) if limit else 1000
    field["multiline"] = record.prompt.multiline
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": encode_action(record, ""),
        "title": _plain(wording.tool_name(session)[:24]),
        "submit": _plain("Send"),
        "close": _plain("Cancel"),
        "blocks": [
            _quoted(wording.render_question(record.prompt)),
            {"type": "input", "block_id": FIELD, "label": _plain("Your answer"), "element": field},
        ],
    }


def takes_text(prompt: Prompt) -> bool:
    free = prompt.type is PromptType.TYPE_FREE_TEXT
    other = prompt.constraints.get("allows_other") or prompt.constraints.get("multi_select")
    return bool(free or other) and not prompt.secret


def _hint(record: PromptRecord) -> str:
    hint = wording.render_hint(record.prompt, record.prompt_id)
    return hint.replace("reply to this message", "reply in this thread").replace(
        "Reply to this message", "Reply in this thread"
    )


def _question(record: PromptRecord, session: SessionRecord, host: str) -> list[Block]:
    prompt = record.prompt
    return [
        {"type": "header", "text": _plain(wording.render_title(prompt, session)[:HEADER_LIMIT])},
        _context(f"{wording.render_kind(prompt)} · {wording.render_header(prompt, session, host)}"),
        _quoted(wording.render_question(prompt)),
    ]


def _marking(record: PromptRecord) -> list[Block]:
    """A list to mark, and the button that sends it; Slack keeps the marks in between."""
    choices = wording.pickable(record.prompt)
    if not 0 < len(choices) <= SELECT_LIMIT:
        return []
    options = [{"text": _plain(text[:BUTTON_LIMIT]), "value": str(place)} for place, text in choices]
    boxes = len(options) <= CHECKBOX_LIMIT
    element: Block = {"type": "checkboxes" if boxes else "multi_static_select", "action_id": PICK, "options": options}
    if marked := set(map(str, wording.premarked(record.prompt))):
        element["initial_options"] = [option for option in options if option["value"] in marked]
    block: Block = {"type": "actions", "block_id": PICK, "elements": [element]}
    if not boxes:  # a menu of many stands beside a text
        block = {"type": "section", "block_id": PICK, "text": _plain("Mark what you want:"), "accessory": element}
    send = _button("✅ Send what is marked", encode_action(record, "", PICK), "send")
    return [block, {"type": "actions", "elements": [send]}]


def _button_rows(record: PromptRecord) -> list[Block]:
    """Answers in one row; the refusing ones in a row of their own; then default, cancel, write and show."""
    buttons = wording.render_buttons(record.prompt)
    rows: list[list[Button]] = [
        [button for button in buttons if button.role in (Role.ANSWER, Role.ALWAYS)],
        [button for button in buttons if button.role is Role.REFUSE],
        [button for button in buttons if button.role in (Role.DEFAULT, Role.CANCEL, Role.SHOW)],
    ]
    blocks = [_actions(record, row, number) for number, row in enumerate(rows) if row]
    if takes_text(record.prompt):
        write = _button("✍ Write an answer", encode_action(record, "", WRITE), "write")
        blocks.append({"type": "actions", "elements": [write]})
    return blocks


def _actions(record: PromptRecord, row: list[Button], number: int) -> Block:
    shown = row[:ROW_LIMIT]
    return {"type": "actions", "elements": [_shown(record, b, f"{number}.{place}") for place, b in enumerate(shown)]}


def _shown(record: PromptRecord, button: Button, action_id: str) -> Block:
    verb = SHOW if button.role is Role.SHOW else ANSWER
    element = _button(button.label, encode_action(record, button.value, verb), action_id)
    if button.role is Role.ALWAYS:
        element["confirm"] = {
            "title": _plain("Always?"),
            "text": _plain("This choice also decides what is not asked yet."),
            "confirm": _plain("Yes, always"),
            "deny": _plain("Back"),
        }
    return element


def _button(label: str, value: str, action_id: str) -> Block:
    return {"type": "button", "text": _plain(label[:BUTTON_LIMIT]), "value": value, "action_id": action_id}


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [_plain(text[:CONTEXT_LIMIT])]}


def _section(text: str) -> Block:
    return {"type": "section", "text": _plain(text[:QUOTE_LIMIT] or "…")}


def _quoted(text: str) -> Block:
    leaf = {"type": "text", "text": text[:QUOTE_LIMIT]}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [leaf]}]}


def _message(fallback: str, blocks: list[Block]) -> dict[str, Any]:
    """`text` is what notifications and screen readers show; Slack reads & < > in it, so they are escaped."""
    escaped = fallback[:1000].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped, "blocks": blocks}
