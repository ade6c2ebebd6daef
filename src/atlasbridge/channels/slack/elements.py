"""The pieces a Slack message is built of: texts, quotations, buttons, menus, lists to mark.  Pure."""

from __future__ import annotations

from typing import Any

from atlasbridge.channels import wording
from atlasbridge.channels.slack.actions import ANSWER, GRANT, LATER, PICK, SHOW, WRITE, encode_action, encode_place
from atlasbridge.channels.wording import Button, Role
from atlasbridge.channels.words import needs_words, takes_words
from atlasbridge.core.prompt.model import Prompt, PromptRecord
from atlasbridge.core.visible import visible

CONTEXT_LIMIT, BUTTON_LIMIT, SECTION_LIMIT = 2000, 75, 2900
MOST_BUTTONS = 10  # more answers are a menu to choose from
ROW_LIMIT, CHECKBOX_LIMIT, SELECT_LIMIT, MOST_SELECTS = 25, 10, 100, 10
Block = dict[str, Any]


def takes_text(prompt: Prompt) -> bool:
    return takes_words(prompt) or (bool(prompt.constraints.get("multi_select")) and not prompt.secret)


def marking(record: PromptRecord) -> list[Block]:
    """A list to mark, and the button that sends it; Slack keeps the marks in between."""
    choices = wording.pickable(record.prompt)
    if not 0 < len(choices) <= SELECT_LIMIT:
        return []
    options = [{"text": plain(_cut(text)), "value": str(place)} for place, text in choices]
    boxes = len(options) <= CHECKBOX_LIMIT
    element: Block = {"type": "checkboxes" if boxes else "multi_static_select", "action_id": PICK, "options": options}
    if marked := set(map(str, wording.premarked(record.prompt))):
        element["initial_options"] = [option for option in options if option["value"] in marked]
    block: Block = {"type": "actions", "block_id": PICK, "elements": [element]}
    if not boxes:  # a menu of many stands beside a text
        block = {"type": "section", "block_id": PICK, "text": plain("Mark what you want:"), "accessory": element}
    send = button("✅ Send what is marked", encode_action(record, "", PICK), "send")
    return [block, {"type": "actions", "elements": [send]}]


def button_rows(record: PromptRecord) -> list[Block]:
    """Answers in one row or a menu; the refusing ones in a row of their own; then default, cancel, write and show."""
    buttons = wording.render_buttons(record.prompt)
    answers = [shown for shown in buttons if shown.role in (Role.ANSWER, Role.ALWAYS)]
    refusing = [shown for shown in buttons if shown.role is Role.REFUSE][:ROW_LIMIT]
    roles = (Role.DEFAULT, Role.CANCEL, Role.LATER, Role.GRANT, Role.SHOW)
    others = [shown for shown in buttons if shown.role in roles]
    blocks = _menus(record) if len(answers) > MOST_BUTTONS else [_actions(record, answers, 0)] if answers else []
    blocks += [_actions(record, row, number) for number, row in ((1, refusing), (2, others)) if row]
    if takes_text(record.prompt):
        write = button("✍ Write an answer", encode_action(record, "", WRITE), "write")
        blocks.append({"type": "actions", "elements": [write]})
    return blocks


def _menus(record: PromptRecord) -> list[Block]:
    """Every choice that does not refuse, a hundred to a menu."""
    wanted = [(place, choice) for place, choice in enumerate(record.prompt.choices) if not choice.refuses]
    menus = []
    for number in range(min(MOST_SELECTS, -(-len(wanted) // SELECT_LIMIT))):
        some = wanted[number * SELECT_LIMIT : (number + 1) * SELECT_LIMIT]
        options = [
            {"text": plain(_cut(_marked(record, place))), "value": encode_place(record, place)} for place, _ in some
        ]
        menu = {
            "type": "static_select",
            "action_id": f"choose.{number}",
            "placeholder": plain("Choose one"),
            "options": options,
        }
        menus.append({"type": "actions", "elements": [menu]})
    return menus


def _marked(record: PromptRecord, place: int) -> str:
    choice = record.prompt.choices[place]
    mark = "♾ always: " if choice.always else "✍ " if needs_words(record.prompt, choice.value) else ""
    return mark + visible(wording.numbered(choice), keep_lines=False)


def _actions(record: PromptRecord, row: list[Button], number: int) -> Block:
    return {"type": "actions", "elements": [_shown(record, b, f"{number}.{place}") for place, b in enumerate(row)]}


def _shown(record: PromptRecord, shown: Button, action_id: str) -> Block:
    verb = {Role.SHOW: SHOW, Role.GRANT: GRANT, Role.LATER: LATER}.get(shown.role, ANSWER)
    element = button(shown.label, encode_action(record, shown.value, verb), action_id)
    if shown.role is Role.ALWAYS:
        element["confirm"] = {
            "title": plain("Always?"),
            "text": plain("This choice also decides what is not asked yet."),
            "confirm": plain("Yes, always"),
            "deny": plain("Back"),
        }
    return element


def button(label: str, value: str, action_id: str) -> Block:
    return {"type": "button", "text": plain(_cut(label)), "value": value, "action_id": action_id}


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def context(text: str) -> Block:
    return {"type": "context", "elements": [plain(text[:CONTEXT_LIMIT] or "…")]}


def section(text: str) -> Block:
    return {"type": "section", "text": plain(text[:SECTION_LIMIT] or "…")}


def quoted(text: str) -> Block:
    leaf = {"type": "text", "text": text or "(blank)"}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [leaf]}]}


def _cut(label: str) -> str:
    return label if len(label) <= BUTTON_LIMIT else label[: BUTTON_LIMIT - 1] + "…"


def count_text(node: object) -> int:
    """Every character that is shown, wherever in the blocks it stands: what Slack's limit of a message counts."""
    if isinstance(node, list):
        return sum(map(count_text, node))
    if not isinstance(node, dict):
        return 0
    own = len(node["text"]) if isinstance(node.get("text"), str) else 0
    return own + sum(map(count_text, node.values()))
