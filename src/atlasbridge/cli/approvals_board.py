"""What `approvals` knows: the open prompts, which of them is meant, and whether a key may answer it now.  Pure.

What is on the screen decides: a prompt that was not shown whole, or appeared a moment ago, is not answered.
"""

from __future__ import annotations

from typing import Any, Final

from atlasbridge.cli.approvals_grant import Offer
from atlasbridge.core.values import field, frozen, replace

ARMING_S: Final = 0.5  # a key pressed for the prompt before must not answer the one that took its place
MOVED_S: Final = 0.2  # after one's own step the next question must have been drawn, no more


@frozen
class Editing:
    """A line that is being typed.  `prompt_id`: whom it is for, whatever stands in its place by then."""

    purpose: str  # "search", "text" or "choose"
    text: str = ""
    prompt_id: str = ""
    secret: bool = False


@frozen
class OnScreen:
    """What the last drawing showed of what is asked: `total` lines, `height` of them at a time."""

    total: int = 0
    height: int = 0
    cols: int = 0


@frozen
class Board:
    """The open prompts and which of them keys go to: by its id, never by its place in the list."""

    prompts: tuple[dict[str, Any], ...] = ()
    selected: str = ""
    armed_at: float = 0.0
    marked: tuple[str, ...] = ()
    search: str = ""
    message: str = ""
    editing: Editing | None = None
    offer: Offer | None = None  # what would be allowed for a while, in the place of the question
    reviewing: str = ""  # the answer that is about to be given to all that are marked
    pending: tuple[str, ...] = ()  # on their way to the hub
    left: tuple[str, ...] = ()  # their time is over, and the tool still asks
    queue: tuple[dict[str, Any], ...] = ()  # instructions for tools that are not done yet
    aside: str = ""  # what stands in the place of the question: "screen" or "queue"
    away: bool = False  # the hub is not there
    scroll: int = 0
    read: int = 0  # how many lines of what is asked were on the screen, from the first on
    shown: OnScreen = field(default_factory=OnScreen)

    @property
    def listed(self) -> tuple[dict[str, Any], ...]:
        """The prompts that the search leaves."""
        words = self.search.lower().split()
        return tuple(item for item in self.prompts if all(word in _searched(item) for word in words))

    @property
    def current(self) -> dict[str, Any] | None:
        return next((item for item in self.listed if item["prompt_id"] == self.selected), None)

    @property
    def reviewed(self) -> tuple[dict[str, Any], ...]:
        return tuple(item for item in self.prompts if item["prompt_id"] in self.marked)

    def refreshed(self, prompts: list[dict[str, Any]], now: float) -> Board:
        """What is open now.  A prompt that takes another's place is not ready for keys at once."""
        ids = {item["prompt_id"] for item in prompts}
        marked = tuple(name for name in self.marked if name in ids)
        board = replace(
            self, prompts=tuple(prompts), marked=marked, pending=tuple(name for name in self.pending if name in ids)
        )
        if marked != self.marked and self.reviewing:
            board = replace(board, reviewing="", message="one of the marked questions is gone: look again")._unread(now)
        if self.editing is not None and self.editing.prompt_id not in ids | {""}:
            board = replace(board, editing=None, message="the question is gone; nothing was sent")
        if self.offer is not None and self.offer.prompt_id not in ids:
            board = replace(board, offer=None, message="the question is gone; nothing was granted")._unread(
                now + ARMING_S
            )
        return board.settled(now, _place_of(self.listed, self.selected))

    def settled(self, now: float, place: int = 0) -> Board:
        """With a selection that is in the list; where it has left, what stands at its place now."""
        listed = self.listed
        if any(item["prompt_id"] == self.selected for item in listed):
            return self
        near = listed[min(place, len(listed) - 1)]["prompt_id"] if listed else ""
        return replace(self, selected=near, aside="")._unread(now + ARMING_S)

    def moved(self, by: int, now: float) -> Board:
        listed = self.listed
        if not listed:
            return self
        place = _place_of(listed, self.selected) + by
        chosen = listed[max(0, min(place, len(listed) - 1))]["prompt_id"]
        if chosen == self.selected:
            return self
        return replace(self, selected=chosen, aside="")._unread(now + MOVED_S)

    def _unread(self, armed_at: float) -> Board:
        return replace(self, armed_at=armed_at, scroll=0, read=0)

    def scrolled(self, pages: int) -> Board:
        last = max(0, self.shown.total - self.shown.height)
        step = max(1, self.shown.height - 1) if self.shown.height > 1 else 1
        return replace(self, scroll=max(0, min(self.scroll + pages * step, last)))

    def drawn(self, shown: OnScreen) -> Board:
        """This much was on the screen.  Other lines, or lines of another width, have to be read again."""
        same = (shown.total, shown.cols) == (self.shown.total, self.shown.cols)
        read = self.read if same else 0
        if self.scroll <= read and not self.aside:
            read = max(read, self.scroll + shown.height)
        return replace(self, shown=shown, read=read)

    def turned(self, aside: str) -> Board:
        """Something else than the question, or the question again."""
        return replace(self, aside="" if self.aside == aside else aside, scroll=0)

    def marking(self) -> Board:
        """The selected prompt is marked, or not any more."""
        current = self.current
        if current is None or current["constraints"].get("secret"):
            return replace(self, message="a secret is answered by itself" if current else "")
        name = current["prompt_id"]
        without = tuple(item for item in self.marked if item != name)
        return replace(self, marked=without if name in self.marked else (*self.marked, name))

    def review(self, value: str, now: float) -> Board:
        """Before several are answered at once, all of them are shown."""
        return replace(self, reviewing=value)._unread(now + MOVED_S)

    def offering(self, offer: Offer, now: float) -> Board:
        return replace(self, offer=offer, aside="", message="")._unread(now + MOVED_S)

    def leave_offer(self, now: float, message: str) -> Board:
        return replace(self, offer=None, message=message)._unread(now + MOVED_S)

    def leave_review(self, now: float, message: str = "") -> Board:
        return replace(self, reviewing="", message=message)._unread(now + ARMING_S)

    def hindrance(self, now: float) -> str:
        """Why a key cannot answer now; "" when it can."""
        if self.away:
            return "the hub is away: nothing can be answered until it is back"
        if self.selected in self.pending and not self.reviewing:
            return "it is being answered"
        if self.shown.height < 1:
            return "the window is too small to show what is asked; nothing was answered"
        if self.aside:
            key = "v" if self.aside == "screen" else "i"
            return f"press {key} to see the question, then answer; nothing was answered"
        if now < self.armed_at:
            return "too early: this question had just appeared. Nothing was answered; press the key again"
        if self.read < self.shown.total:
            return f"there is more to read ({self.shown.total - self.read} lines): PgDn. Nothing was answered"
        return ""


def _place_of(prompts: tuple[dict[str, Any], ...], prompt_id: str) -> int:
    return next((place for place, item in enumerate(prompts) if item["prompt_id"] == prompt_id), 0)


def name_of(prompt: dict[str, Any]) -> str:
    return str(prompt.get("label") or prompt["tool"])


def _searched(prompt: dict[str, Any]) -> str:
    subject = prompt.get("subject") or {}
    words = (name_of(prompt), prompt["tool"], prompt.get("cwd", ""), prompt.get("question") or prompt["excerpt"])
    return " ".join((*words, str(subject.get("text", "")), prompt["prompt_id"])).lower()


def same_meaning(prompts: tuple[dict[str, Any], ...], value: str) -> bool:
    """Whether an answer means the same to all of them: a digit is another word in another menu."""
    return len({_meaning(item, value) for item in prompts}) == 1


def _meaning(prompt: dict[str, Any], value: str) -> tuple[str, str]:
    label = next((choice["label"] for choice in prompt["choices"] if choice["value"] == value), value)
    return ("choice" if prompt["type"] == "multiple_choice" else prompt["type"], str(label))
