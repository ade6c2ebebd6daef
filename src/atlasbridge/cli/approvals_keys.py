"""The meaning of each key in `approvals`. Pure; `terminal_keys` turns bytes into keys.

If a prompt wants text or a secret, every printable key starts the answer, and commands use Ctrl. Otherwise a letter is
a command, or an answer that the prompt offers.
"""

from __future__ import annotations

from typing import Any, Final

from atlasbridge.core.values import frozen

MANY_CHOICES: Final = 9  # above this, a digit can be the start of a longer number

_ALWAYS: Final = {
    "\x03": "quit",
    "\x1a": "suspend",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page_up",
    "\x1b[6~": "page_down",
    "\x1b": "escape",
    "\x0c": "redraw",
}

_CONTROL: Final = {  # Ctrl variants of the letter commands
    "\x01": "attach",  # Ctrl-A
    "\x05": "queue",  # Ctrl-E
    "\x06": "search",  # Ctrl-F
    "\x07": "offer",  # Ctrl-G
    "\x0e": "down",  # Ctrl-N
    "\x10": "up",  # Ctrl-P
    "\x12": "again",  # Ctrl-R
    "\x14": "put_off",  # Ctrl-T
    "\x16": "view",  # Ctrl-V
    "\x18": "leave",  # Ctrl-X
}

_LETTERS: Final = {"q": "quit", "k": "up", "j": "down", "/": "search"}

_OF_ONE: Final = {  # for the selected prompt, unless it uses the letter itself
    "t": "text",
    " ": "mark",
    "a": "attach",
    "v": "view",
    "i": "queue",
    "g": "offer",
    "z": "put_off",
    "r": "again",
    "x": "leave",
}


@frozen
class Intention:
    """`do` names the action ("quit", "up", "text", "answer" with its `value`, …); "" means none."""

    do: str
    value: str = ""


def wants_words(prompt: dict[str, Any] | None) -> bool:
    return prompt is not None and (prompt["type"] == "free_text" or bool(prompt["constraints"].get("secret")))


def decide_key(key: str, prompt: dict[str, Any] | None) -> Intention:
    """A letter that this prompt does not accept does nothing; it is never sent to the tool."""
    if key in _ALWAYS or key in _CONTROL:
        return Intention(_ALWAYS.get(key) or _CONTROL[key])
    if wants_words(prompt):
        return Intention("text", "" if key in ("\r", "\n") else key) if key in "\r\n" or key.isprintable() else _NOTHING
    if key in _LETTERS:
        return Intention(_LETTERS[key])
    if prompt is None:
        return Intention({"r": "again", "i": "queue"}.get(key, ""))
    choice = _decide_choice(key, prompt) if prompt["type"] == "multiple_choice" else _NOTHING
    if choice.do:
        return choice  # a menu's own letters come first, because they are shown next to the choices
    if key in _OF_ONE:
        return Intention(_OF_ONE[key])
    if key == "d" and prompt["safe_default"]:
        return Intention("answer", "default")
    return _decide_answer(key, prompt)


_NOTHING: Final = Intention("")


def _decide_answer(key: str, prompt: dict[str, Any]) -> Intention:
    kind = prompt["type"]
    if kind == "yes_no" and key in ("y", "n"):
        return Intention("answer", key)
    if kind in ("confirm_enter", "unknown") and key in ("\r", "\n"):
        return Intention("answer", "enter")
    return _NOTHING


def _decide_choice(key: str, prompt: dict[str, Any]) -> Intention:
    """A digit answers at once. If more digits could follow, it starts a line that Enter ends."""
    if key in ("\r", "\n"):
        return Intention("choose")
    if not any(choice["value"] == key for choice in prompt["choices"]):
        return _NOTHING
    several = prompt["constraints"].get("multi_select") or len(prompt["choices"]) > MANY_CHOICES
    return Intention("choose" if several else "answer", key)
