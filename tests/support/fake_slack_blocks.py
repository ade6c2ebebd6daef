"""What Slack refuses in Block Kit: sizes, unknown elements, double ids.  Pure; the words name the broken rule."""

from __future__ import annotations

from typing import Any

TEXT_SIZES = {
    "section": 3000,
    "header": 150,
    "button": 75,
    "modal_title": 24,
    "modal_button": 24,
    "label": 2000,
    "option": 75,
}
ELEMENT_LIMITS = {"actions": 25, "context": 10}
MAX_MESSAGE_BLOCKS, MAX_VIEW_BLOCKS = 50, 100
OPTION_LIMITS = {"checkboxes": 10, "multi_static_select": 100, "static_select": 100}
MAX_MESSAGE_TEXT = 13_200  # characters in all blocks
RICH_ELEMENTS = {"rich_text_section", "rich_text_preformatted", "rich_text_quote", "rich_text_list"}


class BadBlocks(Exception):
    """invalid_blocks, with the sentence that stands in response_metadata.messages."""


def check_blocks(blocks: object, limit: int = MAX_MESSAGE_BLOCKS) -> list[dict[str, Any]]:
    if not isinstance(blocks, list) or not blocks or any(not isinstance(block, dict) for block in blocks):
        raise BadBlocks("must be a non-empty array of blocks")
    if len(blocks) > limit:
        raise BadBlocks(f"no more than {limit} items allowed")
    block_ids = [block["block_id"] for block in blocks if "block_id" in block]
    _check_ids(block_ids, "block_id")
    for block in blocks:
        _check_block(block)
    if sum(_all_text(block) for block in blocks) > MAX_MESSAGE_TEXT:
        raise BadBlocks("msg_blocks_too_long")
    return blocks


def _all_text(node: object) -> int:
    """Every character that is shown, wherever it stands."""
    if isinstance(node, dict):
        own = node["text"] if isinstance(node.get("text"), str) else ""
        return len(own) + sum(_all_text(value) for value in node.values())
    return sum(_all_text(value) for value in node) if isinstance(node, list) else 0


def _check_block(block: dict[str, Any]) -> None:
    match block.get("type"):
        case "header":
            _check_text(block.get("text"), "header", kinds=("plain_text",))
        case "section":
            if "text" not in block and not block.get("fields"):
                raise BadBlocks("section needs text or fields")
            if "text" in block:
                _check_text(block["text"], "section")
            if "accessory" in block:
                _check_options(block["accessory"])
        case "context":
            _check_context(block)
        case "actions":
            _check_actions(block)
        case "rich_text":
            _check_rich_text(block)
        case "input":
            _check_input(block)
        case "divider":
            pass
        case other:
            raise BadBlocks(f"unsupported type: {other}")


def _check_text(text: object, place: str, kinds: tuple[str, ...] = ("plain_text", "mrkdwn")) -> None:
    if not isinstance(text, dict) or text.get("type") not in kinds:
        raise BadBlocks(f"{place}: text must be one of {kinds}")
    size = len(str(text.get("text") or ""))
    if not 1 <= size <= TEXT_SIZES[place]:
        raise BadBlocks(f"{place}: must be 1 to {TEXT_SIZES[place]} characters, has {size}")


def _check_elements(block: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    elements = block.get("elements")
    if not isinstance(elements, list) or not 1 <= len(elements) <= ELEMENT_LIMITS[kind]:
        raise BadBlocks(f"{kind}: 1 to {ELEMENT_LIMITS[kind]} elements")
    return elements


def _check_context(block: dict[str, Any]) -> None:
    for element in _check_elements(block, "context"):
        _check_text(element, "section")


def _check_actions(block: dict[str, Any]) -> None:
    elements = _check_elements(block, "actions")
    _check_ids([element.get("action_id", "") for element in elements], "action_id")
    for element in elements:
        if element.get("type") in ("checkboxes", "static_select"):
            _check_options(element)
            continue
        if element.get("type") != "button":
            raise BadBlocks(f"actions: this fake knows no {element.get('type')}")
        _check_text(element.get("text"), "button", kinds=("plain_text",))
        if len(str(element.get("value", ""))) > 2000:
            raise BadBlocks("button: value is longer than 2000 characters")
        if element.get("style", "primary") not in ("primary", "danger"):
            raise BadBlocks("button: style must be primary or danger")


def _check_options(element: dict[str, Any]) -> None:
    if element.get("type") not in OPTION_LIMITS:
        raise BadBlocks(f"this fake knows no {element.get('type')} here")
    options, limit = element.get("options"), OPTION_LIMITS[element["type"]]
    if not isinstance(options, list) or not 1 <= len(options) <= limit:
        raise BadBlocks(f"{element['type']}: 1 to {limit} options")
    for option in options:
        _check_text(option.get("text"), "option")
    initial = element.get("initial_options", options[:1])
    if not initial or any(option not in options for option in initial):
        raise BadBlocks(f"{element['type']}: initial_options must be some of the options")
    _check_ids([str(option.get("value", "")) for option in options], "option value", 150)


def _check_ids(ids: list[str], what: str, limit: int = 255) -> None:
    if any(not 1 <= len(one) <= limit for one in ids) or len(set(ids)) != len(ids):
        raise BadBlocks(f"{what} must be 1 to {limit} characters and unique")


def _check_rich_text(block: dict[str, Any]) -> None:
    elements = block.get("elements")
    if not isinstance(elements, list) or not elements:
        raise BadBlocks("rich_text: needs elements")
    for element in elements:
        if element.get("type") not in RICH_ELEMENTS or not element.get("elements"):
            raise BadBlocks(f"rich_text: bad element {element.get('type')}")
        for leaf in element["elements"]:
            if leaf.get("type") not in ("text", "link", "emoji", "user") or not leaf.get("text", "x"):
                raise BadBlocks("rich_text: bad leaf")


def _check_input(block: dict[str, Any]) -> None:
    _check_text(block.get("label"), "label", kinds=("plain_text",))
    element = block.get("element") or {}
    if element.get("type") != "plain_text_input":
        raise BadBlocks("input: this fake knows plain_text_input only")
    if not 0 <= element.get("min_length", 0) <= 3000 or not 1 <= element.get("max_length", 1) <= 3000:
        raise BadBlocks("input: lengths are 0 to 3000")


def check_view(view: object) -> dict[str, Any]:
    if not isinstance(view, dict) or view.get("type") != "modal":
        raise BadBlocks("view must be a modal")
    _check_text(view.get("title"), "modal_title", kinds=("plain_text",))
    for button in ("submit", "close"):
        if button in view:
            _check_text(view[button], "modal_button", kinds=("plain_text",))
    blocks = check_blocks(view.get("blocks"), MAX_VIEW_BLOCKS)
    if any(block["type"] == "input" for block in blocks) and "submit" not in view:
        raise BadBlocks("a view with an input needs a submit button")
    if len(str(view.get("private_metadata", ""))) > 3000 or len(str(view.get("callback_id", ""))) > 255:
        raise BadBlocks("private_metadata or callback_id is too long")
    return view
