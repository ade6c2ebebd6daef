"""What a key of `approvals` means for a prompt.  Pure; bytes become keys in `terminal_keys`."""

from __future__ import annotations

from typing import Any, Final

from atlasbridge.core.values import frozen

MANY_CHOICES: Final = 9  # beyond, a digit may be the beginning of a number

_ALWAYS: Final = {
    "q": "quit",
    "\x03": "quit",
    "\x1a": "suspend",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "k": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "j": "down",
    "\x1b[5~": "page_up",
    "\x1b[6~": "page_down",
    "/": "search",
    "\x1b": "escape",
    "\x0c": "redraw",
}

_OF_ONE: Final = {  # for the selected prompt, where it has no such letter of its own
    "t": "text",
    " ": "mark",
    "a": "attach",
    "v": "view",
    "i": "queue",
    "g": "offer",
    "z": "put_off",
    "r": "again",
}


@frozen
class Intention:
    """`do` names what is meant ("quit", "up", "text", "answer" with its `value`, …); "": the key means nothing."""

    do: str
    value: str = ""


def decide_key(key: str, prompt: dict[str, Any] | None) -> Intention:
    """A letter that this prompt cannot take means nothing; it is never passed on to see what happens."""
    if key in _ALWAYS:
        return Intention(_ALWAYS[key])
    if prompt is None:
        return Intention({"r": "again", "i": "queue"}.get(key, ""))
    choice = _decide_choice(key, prompt) if prompt["type"] == "multiple_choice" else Intention("")
    if choice.do:
        return choice  # a menu's own letters come first: what stands beside them is what they do
    if key in _OF_ONE:
        return Intention(_OF_ONE[key])
    if key == "c":
        return Intention("answer", "cancel")
    if key == "d" and prompt["safe_default"]:
        return Intention("answer", "default")
    return _decide_answer(key, prompt)


def _decide_answer(key: str, prompt: dict[str, Any]) -> Intention:
    kind = prompt["type"]
    if kind == "yes_no" and key in ("y", "n"):
        return Intention("answer", key)
    if kind in ("confirm_enter", "unknown") and key in ("\r", "\n"):
        return Intention("answer", "enter")
    return Intention("")


def _decide_choice(key: str, prompt: dict[str, Any]) -> Intention:
    """A digit chooses, unless more could follow it: then it begins a line that Enter ends."""
    if key in ("\r", "\n"):
        return Intention("choose")
    if not any(choice["value"] == key for choice in prompt["choices"]):
        return Intention("")
    several = prompt["constraints"].get("multi_select") or len(prompt["choices"]) > MANY_CHOICES
    return Intention("choose" if several else "answer", key)
