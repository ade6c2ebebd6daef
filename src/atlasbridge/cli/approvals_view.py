"""What `approvals` shows and what its keys mean.  Pure: prompts and keys in, text and intentions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atlasbridge.cli.printing import ago
from atlasbridge.core.values import frozen, replace
from atlasbridge.core.visible import visible

if TYPE_CHECKING:
    from rich.console import Group

ARMING_S = 0.8  # a key pressed for the prompt before must not answer the one that took its place

KEYS = "↑ ↓ choose   y n   1-9 choice   Enter   d default   t text   c cancel   q quit"


@frozen
class Board:
    """The open prompts and which of them keys go to: by its id, never by its place in the list."""

    prompts: tuple[dict[str, Any], ...] = ()
    selected: str = ""
    selected_at: float = 0.0
    message: str = ""

    def refreshed(self, prompts: list[dict[str, Any]], now: float) -> Board:
        ids = [prompt["prompt_id"] for prompt in prompts]
        if self.selected in ids:
            return replace(self, prompts=tuple(prompts))
        return replace(self, prompts=tuple(prompts), selected=ids[0] if ids else "", selected_at=now)

    def moved(self, by: int, now: float) -> Board:
        ids = [prompt["prompt_id"] for prompt in self.prompts]
        if not ids:
            return self
        place = (ids.index(self.selected) + by) % len(ids) if self.selected in ids else 0
        return replace(self, selected=ids[place], selected_at=now if by == 0 else 0.0)

    @property
    def current(self) -> dict[str, Any] | None:
        return next((prompt for prompt in self.prompts if prompt["prompt_id"] == self.selected), None)

    def armed(self, now: float) -> bool:
        return now - self.selected_at >= ARMING_S


@frozen
class Intention:
    """`do` is "quit", "up", "down", "text", "answer" (with `value`) or "" for a key that means nothing here."""

    do: str
    value: str = ""


def decide_key(key: str, prompt: dict[str, Any] | None) -> Intention:
    """A letter that this prompt cannot take means nothing; it is never passed on to see what happens."""
    always = {"q": "quit", "\x03": "quit", "\x1b[A": "up", "k": "up", "\x1b[B": "down", "j": "down"}
    if key in always:
        return Intention(always[key])
    if prompt is None:
        return Intention("")
    if key == "t":
        return Intention("text")
    if key == "c":
        return Intention("answer", "cancel")
    if key == "d" and prompt["safe_default"]:
        return Intention("answer", "default")
    return _decide_answer(key, prompt)


def _decide_answer(key: str, prompt: dict[str, Any]) -> Intention:
    kind = prompt["type"]
    if kind == "multiple_choice" and any(choice["value"] == key for choice in prompt["choices"]):
        return Intention("answer", key)
    if kind == "yes_no" and key in ("y", "n"):
        return Intention("answer", key)
    if kind in ("confirm_enter", "unknown") and key in ("\r", "\n"):
        return Intention("answer", "enter")
    return Intention("")


def render_board(board: Board) -> Group:
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = []
    for prompt in board.prompts:
        parts.extend(_render_prompt(prompt, prompt["prompt_id"] == board.selected))
    if not parts:
        parts.append(Text("nothing is waiting for you", style="dim"))
    if board.message:
        parts.append(Text(board.message, style="bold"))
    parts.append(Text(KEYS, style="dim"))
    return Group(*parts)


def _render_prompt(prompt: dict[str, Any], chosen: bool) -> list[Any]:
    from rich.text import Text

    head = f"{'▶' if chosen else ' '} {prompt['prompt_id'][:8]}  {prompt['tool']}  {prompt['type']}"
    head += f"  ({prompt['confidence']})  {ago(prompt['created_at'])}"
    lines = [Text(visible(head, keep_lines=False), style="bold" if chosen else "")]
    lines += [Text(f"    │ {line}") for line in visible(prompt["excerpt"]).splitlines()]
    if chosen:
        for choice in prompt["choices"]:
            lines.append(Text(visible(f"      {choice['value']}  {choice['label']}", keep_lines=False), style="cyan"))
        if prompt["constraints"].get("secret"):
            lines.append(Text("      a secret: press t and type it; it is shown nowhere", style="yellow"))
    return lines
