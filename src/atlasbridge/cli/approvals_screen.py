"""The full screen of `approvals`: the open prompts, the selected one, its drawing, and what each key does.

A prompt that was not shown completely, or that has only just appeared, cannot be answered."""

from __future__ import annotations

import os
import select
import subprocess
import threading
import time
from queue import SimpleQueue
from typing import Any, Final

from atlasbridge.cli.columns import cells, clip, fold, pad
from atlasbridge.cli.full_screen import FullScreen, Key, KeyReader
from atlasbridge.cli.overview import asking_line, is_idle
from atlasbridge.cli.printing import ago, hub_client
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.policy.rule import SPANS, Span
from atlasbridge.core.process import own_environ, own_python
from atlasbridge.core.session.model import INTEGRATIONS
from atlasbridge.core.values import field, frozen, replace

# Grants in `approvals`: what would be allowed, as lines, and the keys for it. Pure.

KEYS = "  ".join(f"{number} {span.label.lower()}" for number, span in enumerate(SPANS, 1)) + "  else: back"


@frozen
class Offer:
    """The offer that replaces the question while it is shown."""

    prompt_id: str
    text: str


def read_offer(prompt_id: str, made: dict[str, Any]) -> Offer:
    lines = [f"AtlasBridge would allow this without asking: {made['shape']}.", ""]
    lines += [f"  allows        {text}" for text in made["would"]]
    for text, why in zip(made["would_not"], made.get("why_not") or [], strict=False):
        lines += [f"  does not      {text}", f"                {why}"]
    lines += ["", "In this session unless it says folder; twelve hours at most. What a rule denies or asks stays so."]
    return Offer(prompt_id, "\n".join(lines))


def span_for_key(key: str) -> Span | None:
    return SPANS[int(key) - 1] if key.isdecimal() and key.isascii() and 1 <= int(key) <= len(SPANS) else None


ARMING_S: Final = 0.5  # a key that was meant for the previous prompt must not answer the new one
MOVED_S: Final = 0.2  # after a move, the next question only has to be drawn


@frozen
class Editing:
    """A line that is being typed. `prompt_id` is the prompt it is for, even if another one is selected by then."""

    purpose: str  # "search", "text" or "choose"
    text: str = ""
    prompt_id: str = ""
    secret: bool = False
    gone: bool = False  # the prompt has ended: the line can still be read, but not sent
    dropping: bool = False  # Esc was pressed once


@frozen
class OnScreen:
    """The visible part of the question: `height` of `total` lines, starting at `first`.

    The first `context` lines are output above the question; the person does not have to read them.
    """

    total: int = 0
    height: int = 0
    cols: int = 0
    context: int = 0
    first: int = 0


@frozen
class ViewState:
    """The open prompts and the selected one, stored by id and not by position."""

    prompts: tuple[dict[str, Any], ...] = ()
    selected: str = ""
    armed_at: float = 0.0
    marked: tuple[str, ...] = ()
    search: str = ""
    message: str = ""
    editing: Editing | None = None
    offer: Offer | None = None  # the grant that is shown instead of the question
    reviewing: str = ""  # the answer that will be sent to all marked prompts
    confirming: str = ""  # an action that runs when its key is pressed a second time
    pending: tuple[str, ...] = ()  # being sent to the hub
    left: tuple[str, ...] = ()  # skipped or expired, but the tool still asks
    queue: tuple[dict[str, Any], ...] = ()  # instructions for tools that are still busy
    aside: str = ""  # shown instead of the question: "screen" or "queue"
    away: bool = False  # the hub is not reachable
    scroll: int | None = None  # None: at the line of the question
    read: int = 0  # how many lines of the question were on the screen so far, counted from the first
    shown: OnScreen = field(default_factory=OnScreen)

    @property
    def listed(self) -> tuple[dict[str, Any], ...]:
        """The prompts that match the search."""
        words = self.search.lower().split()
        return tuple(item for item in self.prompts if all(word in _searched(item) for word in words))

    @property
    def current(self) -> dict[str, Any] | None:
        return next((item for item in self.listed if item["prompt_id"] == self.selected), None)

    @property
    def reviewed(self) -> tuple[dict[str, Any], ...]:
        return tuple(item for item in self.prompts if item["prompt_id"] in self.marked)

    def refreshed(self, prompts: list[dict[str, Any]], now: float) -> ViewState:
        """Take over the current prompts. A prompt that replaces the selected one ignores keys for a moment."""
        ids = {item["prompt_id"] for item in prompts}
        marked = tuple(name for name in self.marked if name in ids)
        state = replace(
            self, prompts=tuple(prompts), marked=marked, pending=tuple(name for name in self.pending if name in ids)
        )
        if marked != self.marked and self.reviewing:
            state = replace(state, reviewing="", message="one of the marked questions is gone: look again")._unread(now)
        if self.editing is not None and self.editing.prompt_id not in ids | {""}:
            state = replace(state, editing=replace(self.editing, gone=True))
        if self.offer is not None and self.offer.prompt_id not in ids:
            state = replace(state, offer=None, message="the question is gone; nothing was granted")._unread(
                now + ARMING_S
            )
        return state.settled(now, _place_of(self.listed, self.selected))

    def settled(self, now: float, place: int = 0) -> ViewState:
        """If the selected prompt has left the list, select the prompt at its position."""
        listed = self.listed
        if any(item["prompt_id"] == self.selected for item in listed):
            return self
        last = sum(not is_idle(item) for item in listed) or len(listed)  # questions come before idle tools
        near = listed[min(place, last - 1)]["prompt_id"] if listed else ""
        return replace(self, selected=near, aside="", confirming="")._unread(now + ARMING_S)

    def moved(self, by: int, now: float) -> ViewState:
        listed = self.listed
        if not listed:
            return self
        place = _place_of(listed, self.selected) + by
        chosen = listed[max(0, min(place, len(listed) - 1))]["prompt_id"]
        if chosen == self.selected:
            return self
        return replace(self, selected=chosen, aside="", confirming="")._unread(now + MOVED_S)

    def _unread(self, armed_at: float) -> ViewState:
        return replace(self, armed_at=armed_at, scroll=None, read=0)

    def scrolled(self, pages: int) -> ViewState:
        last = max(0, self.shown.total - self.shown.height)
        step = max(1, self.shown.height - 1) if self.shown.height > 1 else 1
        return replace(self, scroll=max(0, min(self.shown.first + pages * step, last)))

    def drawn(self, shown: OnScreen) -> ViewState:
        """Record which lines were shown. If the number of lines or the width changes, they must be read again."""
        same = (shown.total, shown.cols) == (self.shown.total, self.shown.cols)
        read = self.read if same else 0
        if shown.first <= max(read, shown.context) and not self.aside:
            read = max(read, shown.first + shown.height)
        return replace(self, shown=shown, read=read)

    def toggled(self, aside: str) -> ViewState:
        """Switch between the question and another view."""
        return replace(self, aside="" if self.aside == aside else aside, scroll=None)

    def marking(self) -> ViewState:
        """Toggle the mark of the selected prompt."""
        current = self.current
        if current is None or current["constraints"].get("secret"):
            return replace(self, message="answer a secret separately: it cannot be marked" if current else "")
        name = current["prompt_id"]
        without = tuple(item for item in self.marked if item != name)
        return replace(self, marked=without if name in self.marked else (*self.marked, name))

    def review(self, value: str, now: float) -> ViewState:
        """Show all marked prompts before they are answered together."""
        return replace(self, reviewing=value)._unread(now + MOVED_S)

    def offering(self, offer: Offer, now: float) -> ViewState:
        return replace(self, offer=offer, aside="", message="")._unread(now + MOVED_S)

    def leave_offer(self, now: float, message: str) -> ViewState:
        return replace(self, offer=None, message=message)._unread(now + MOVED_S)

    def leave_review(self, now: float, message: str = "") -> ViewState:
        return replace(self, reviewing="", message=message)._unread(now + ARMING_S)

    def hindrance(self, now: float) -> str:
        """Return why a key cannot answer now, or "" if it can."""
        if self.away:
            return "the hub is away: nothing can be answered until it is back"
        if self.selected in self.pending and not self.reviewing:
            return "it is being answered"
        if self.shown.height < 1:
            return "the window is too small to show what is asked; nothing was answered"
        if self.aside:
            key = "v" if self.aside == "screen" else "i"
            key = {"v": "Ctrl-V", "i": "Ctrl-E"}[key] if wants_words(self.current) else key
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
    """Whether an answer means the same for all prompts: the same digit can be a different choice in another menu."""
    return len({_meaning(item, value) for item in prompts}) == 1


def _meaning(prompt: dict[str, Any], value: str) -> tuple[str, str]:
    label = next((choice["label"] for choice in prompt["choices"] if choice["value"] == value), value)
    return ("choice" if prompt["type"] == "multiple_choice" else prompt["type"], str(label))


# The layout of `approvals`: a list, the selected prompt, and the keys. Pure: it returns text. Text is cut and wrapped
# here by columns, so that every line that counts as shown is really visible.

APPROVALS_VIEW_KEYS: Final = (
    "y n 1-9 Enter answer  ↑↓ choose  q quit  a attach  t text  x leave alone  v screen  z later  d default"
    "  g allow for a while  Space mark  / search  i queue"
)
WORDS_KEYS: Final = (
    "type the answer, Enter sends it  ↑↓ choose  ^C quit  ^A attach  ^X leave alone  ^V screen  ^T later  ^F search"
    "  ^E queue"
)
CONFIRMING: Final = {
    "leave": "Leave this question alone? Nothing is typed; it stays listed, and you can ask it again. {key} again: yes",
    "put_off": "Ask again in 15 minutes, and not before? {key} again: yes",
}
NAME_COLS: Final = 18
REVIEW_CONTEXT: Final = 3  # lines above each question when several are answered together
SMALL: Final = 12  # rows; a smaller window has one line for messages and keys
STYLES: Final = {"": "", "bold": "1", "asks": "1", "dim": "2", "chosen": "7", "warn": "33", "choice": "36", "said": "1"}
KINDS: Final = {
    "yes_no": "yes or no",
    "confirm_enter": "press Enter",
    "multiple_choice": "choose one",
    "free_text": "words",
    "unknown": "not recognised",
}


@frozen
class Line:
    text: str
    style: str = ""


@frozen
class Drawing:
    lines: tuple[Line, ...]
    shown: OnScreen


def render_frame(state: ViewState, rows: int, cols: int) -> Drawing:
    """Exactly `rows` lines, none wider than `cols`."""
    rows, cols = max(rows, 1), max(cols, 2)
    foot = _foot(state, rows, cols)
    head = [_head(state, cols)] if rows > 4 else []
    room = rows - len(head) - len(foot)
    asked, context = _asked(state, cols)
    listed = [] if state.reviewing else _list(state, cols, _list_rows(len(state.listed), room))
    title = [_title(state, cols)] if asked and room - len(listed) > 1 else []
    # a question is useless without the name of the session
    named = bool(listed or state.reviewing or not state.prompts)
    height = max(0, room - len(listed) - len(title)) if asked and named else 0
    first = max(0, min(context, len(asked) - height)) if state.scroll is None else state.scroll
    part = asked[first : first + height]
    blank = [Line("")] * (room - len(listed) - len(title) - len(part))
    shown = OnScreen(len(asked), height, cols, context, first)
    return Drawing((*head, *listed, *title, *part, *blank, *foot)[:rows], shown)


def _list_rows(count: int, room: int) -> int:
    """A third of the rows for the list; the question needs the rest."""
    return max(min(count, max(room // 3, 1)), 1) if room > 1 else 0


def _head(state: ViewState, cols: int) -> Line:
    if state.away:
        return Line(clip("the hub is away; waiting for it …", cols), "warn")
    idle = sum(is_idle(item) for item in state.prompts)
    count = len(state.prompts) - idle
    words = ["nothing is waiting for you" if not count else "1 waiting" if count == 1 else f"{count} waiting"]
    if idle:
        words.append(f"{idle} at {'its' if idle == 1 else 'their'} prompt")
    if state.search:
        words.append(f"{len(state.listed)} match “{escape_controls(state.search, keep_lines=False)}” (Esc: all)")
    if state.marked:
        words.append(f"{len(state.marked)} marked")
    if state.left:
        key = "^R" if wants_words(state.current) else "r"
        words.append(f"{len(state.left)} left alone or late ({key}: ask again)")
    if state.queue:
        key = "^E" if wants_words(state.current) else "i"
        words.append(f"{len(state.queue)} queued" + (f" ({key})" if state.prompts else ""))
    return Line(clip(" · ".join(words), cols), "bold")


def _list(state: ViewState, cols: int, height: int) -> list[Line]:
    """The part of the list with the selected prompt in it."""
    listed = state.listed
    place = next((number for number, item in enumerate(listed) if item["prompt_id"] == state.selected), 0)
    first = max(0, min(place - height // 2, len(listed) - height))
    lines = []
    for item in listed[first : first + height]:
        chosen = item["prompt_id"] == state.selected
        mark = "●" if item["prompt_id"] in state.marked else " "
        busy = "…" if item["prompt_id"] in state.pending else " "
        age = "" if cols < 50 else f" {ago(item['created_at']):>6}"
        name = pad(
            clip(escape_controls(name_of(item), keep_lines=False), min(NAME_COLS, cols // 3)), min(NAME_COLS, cols // 3)
        )
        text = f"{'▶' if chosen else ' '}{mark}{busy}{name} {asking_line(item)}"
        body = cols - len(age)
        lines.append(Line(pad(clip(text, body), body) + age, "chosen" if chosen else "dim" if state.away else ""))
    return lines


def _title(state: ViewState, cols: int) -> Line:
    if state.reviewing:
        return Line(clip(f"answer {state.reviewing!r} to all {len(state.marked)} of these?", cols), "bold")
    prompt = state.current
    if state.aside == "queue" or prompt is None:
        return Line(clip("── typed at a tool's next idle input box, one at each " + "─" * cols, cols, end=""), "bold")
    place = next(number for number, item in enumerate(state.listed, 1) if item is prompt)
    tool = INTEGRATIONS.get(prompt["tool"], prompt["tool"]) if prompt.get("label") else ""
    folder, short = _folder(prompt.get("cwd", "")), prompt["prompt_id"][:8]
    keys = "PgUp, PgDn"
    words = [name_of(prompt), tool, folder, _kind(prompt), short, _kept(prompt), f"{place}/{len(state.listed)}"]
    if state.shown.total > state.shown.height > 0:
        first = state.shown.first
        last = min(first + state.shown.height, state.shown.total)
        words += [f"lines {first + 1}-{last} of {state.shown.total}", keys]
    text = _rule(words)
    for less in (folder, short, tool, keys):  # a narrow window leaves these out
        if cells(text) > cols:
            words = [word for word in words if word != less]
            text = _rule(words)
    return Line(clip(text, cols) if cells(text) > cols else text + "─" * (cols - cells(text)), "bold")


def _rule(words: list[str]) -> str:
    return f"── {escape_controls(' · '.join(word for word in words if word), keep_lines=False)} "


def _kind(prompt: dict[str, Any]) -> str:
    return "at its prompt" if is_idle(prompt) else KINDS.get(prompt["type"], prompt["type"])


def _kept(prompt: dict[str, Any]) -> str:
    """The answer that a person scheduled for later."""
    kept = prompt.get("later") or []
    return "; ".join(f"{item['what']} at {item['when']}" for item in kept)


def _folder(path: str) -> str:
    own = os.path.expanduser("~")
    return "~" + path[len(own) :] if path == own or path.startswith(own + os.sep) else path


def _asked(state: ViewState, cols: int) -> tuple[list[Line], int]:
    """Return all lines, and how many of the first ones are only output above the question."""
    if state.reviewing:
        lines: list[Line] = []
        for item in state.reviewed:
            whole, context = _whole(item, cols)
            lines += [
                Line(clip(f"● {escape_controls(name_of(item), keep_lines=False)}", cols), "bold"),
                *whole[max(0, context - REVIEW_CONTEXT) :],
            ]
        return lines, 0
    prompt = state.current
    if state.aside == "queue" or prompt is None:
        return _queue(state, cols), 0
    if state.offer is not None:
        return _wrapped(state.offer.text, cols, ""), 0
    if state.aside == "screen":
        return _wrapped(prompt["screen"] or "(its screen is not known)", cols, ""), 0
    return _whole(prompt, cols)


def _queue(state: ViewState, cols: int) -> list[Line]:
    """The instructions that wait for busy tools, with their authors; they are typed without asking again."""
    if not state.queue:
        return [Line(clip("nothing is queued", cols), "dim")] if state.aside else []
    lines: list[Line] = []
    for item in state.queue:
        words = f"{item['name']} · {item['by_name']} · {ago(item['created_at'])} · {item['queue_id'][:8]}"
        lines += [
            Line(clip(escape_controls(words, keep_lines=False), cols), "choice"),
            *_wrapped(item["text"], cols, ""),
        ]
    return [*lines, Line(""), *_wrapped("remove one: atlasbridge queue remove ID", cols, "dim")]


def _whole(prompt: dict[str, Any], cols: int) -> tuple[list[Line], int]:
    """The question line by line, and how many of the first lines are only output above it."""
    rows = (prompt.get("question") or prompt["excerpt"]).split("\n")
    above = min(prompt.get("context_rows", 0), len(rows) - 1)
    question, subject = "\n".join(rows[above:]), prompt.get("subject") or {}
    lines = [line for row in rows[:above] for line in _wrapped(row, cols, "dim")]
    if above and not prompt.get("whole", True):
        lines[:0] = _wrapped("(there is more above this: attach to read all of it)", cols, "dim")
    context = len(lines)
    if subject.get("text") and subject["text"] not in "\n".join(rows):
        lines += _wrapped(f"{subject['kind']} {subject.get('target', '')}".strip() + ":", cols, "dim")
        lines += [*_wrapped(subject["text"], cols, ""), Line("")]
    if not above and not prompt.get("whole", True):
        key = "Ctrl-A" if wants_words(prompt) else "a"
        lines += _wrapped(f"part of this has left the tool's screen: attach ({key}) to read all of it", cols, "warn")
    lines += _wrapped(question, cols, "asks" if above else "")
    for choice in prompt["choices"]:
        text = f"  {choice['value']}  {choice['label']}" + (f": {choice['detail']}" if choice.get("detail") else "")
        lines += _wrapped(text, cols, "warn" if choice.get("always") else "choice")
    if prompt["type"] == "unknown" and not prompt["constraints"].get("idle"):
        hint = "not recognised: Enter sends Enter, x leaves it alone, v shows the screen"
        lines += _wrapped(hint, cols, "dim")
    if prompt["type"] == "free_text" and not prompt["constraints"].get("secret"):
        lines += _wrapped("the words enter, esc and ctrl-c press that key", cols, "dim")
    if prompt["constraints"].get("secret"):
        lines += _wrapped("a secret: type it and press Enter; it is shown nowhere", cols, "warn")
    if prompt.get("says"):
        lines += _wrapped(f"the tool says: {prompt['says']}", cols, "dim")
    return lines, context


def _foot(state: ViewState, rows: int, cols: int) -> list[Line]:
    if state.editing is not None:
        return _line_edited(state, state.editing, rows, cols)
    keys = WORDS_KEYS if wants_words(state.current) else APPROVALS_VIEW_KEYS
    if state.reviewing:
        keys = "the same key again answers all of them; any other key: back"
    elif state.offer is not None:
        keys = KEYS
    elif state.confirming:
        key = {"leave": "Ctrl-X", "put_off": "Ctrl-T"} if wants_words(state.current) else {"leave": "x", "put_off": "z"}
        keys = CONFIRMING[state.confirming].format(key=key[state.confirming]) + "  any other key: no"
    elif not state.prompts:
        keys = "PgDn PgUp read on  q quit" if state.shown.total > state.shown.height else "q quit"
    if rows <= SMALL:
        return [Line(clip(state.message or keys, cols), "said" if state.message else "dim")]
    said = _wrapped(state.message, cols, "said")[:3] if state.message else [Line("")]
    return [*said, *(Line(text, "dim") for text in _packed(keys, cols))]


def _line_edited(state: ViewState, edit: Editing, rows: int, cols: int) -> list[Line]:
    text = "•" * len(edit.text) if edit.secret else escape_controls(edit.text).replace("\n", "⏎")
    label = {"search": "/", "text": "secret: " if edit.secret else "text: ", "choose": "choice: "}[edit.purpose]
    hint = "Enter keeps it, Esc ends the search" if edit.purpose == "search" else "Enter sends it, Esc does not"
    if edit.gone:
        hint = "the question is gone: nothing is sent. Enter or Esc closes this line"
    elif edit.dropping:
        hint = "Esc again drops these words; any other key keeps them"
    elif edit.purpose == "text" and not edit.text:
        hint = "an empty line: Enter sends it, Esc does not"
    line = Line(_tail(f"{label}{text}▏", cols), "said")
    if rows <= SMALL:
        return [Line(clip(state.message or hint, cols), "said"), line] if state.message or edit.gone else [line]
    said = _wrapped(state.message, cols, "said")[:3] if state.message else []
    return [*said, Line(clip(hint, cols), "dim"), line]


def _packed(keys: str, cols: int) -> list[str]:
    """The keys on as many lines as needed, at most three."""
    lines = [""]
    for word in keys.split("  "):
        joined = f"{lines[-1]}  {word}" if lines[-1] else word
        if cells(joined) <= cols:
            lines[-1] = joined
        else:
            lines += fold(word, cols)
    return [line.rstrip() for line in lines if line][:3]


def _tail(text: str, cols: int) -> str:
    """The end of the line that is being typed."""
    while cells(text) > cols:
        text = text[1:]
    return text


def _wrapped(text: str, cols: int, style: str) -> list[Line]:
    """Wrap the text without losing a character."""
    rows = escape_controls(text).expandtabs(8).split("\n")
    return [Line(part, style) for row in rows for part in fold(row, cols)]


def paint(frame: Drawing, coloured: bool = True) -> str:
    """The frame as terminal output, drawn over the previous one."""
    out = ["\x1b[?2026h\x1b[H"]
    for number, line in enumerate(frame.lines):
        code = STYLES[line.style]
        if not coloured and code in ("33", "36"):
            code = ""
        text = f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text
        ends = "\r\n" if number < len(frame.lines) - 1 else ""
        out.append(f"\x1b[K{text}{ends}")  # clear first: after a full line, clearing would erase its last column
    out.append("\x1b[?2026l")
    return "".join(out)


# The live view: draws the state, reads keys and sends answers. The state that was drawn decides what a key can do.
# Other threads listen and send; they wake the drawing thread, which alone changes the state.

RETRY_S = 0.3
LOOK_S = 1.0
SNOOZE_S = 900.0
_PAGES = {"\x1b[5~": -1, "\x1b[6~": 1}
# These actions take effect at once, so their key must not come together with other input.
_DECIDING = ("answer", "leave", "put_off", "again", "attach")
_NOT_ALONE = "this came together with other input, as a terminal's own replies do: nothing was answered; press it again"


def _one_line(text: str) -> str:
    """Remove the trailing line break of a pasted text."""
    return text.rstrip("\r\n")


class Watch:
    def __init__(self, rings: bool = False) -> None:
        self._rings = rings
        self._hub: HubClient | None = None
        self._clock = SystemClock()
        self._wakeup = Wakeup()
        self._state = ViewState()
        self._keys = KeyReader()
        self._told: SimpleQueue[tuple[str, str, str]] = SimpleQueue()
        self._goes_on = True
        self._screen = FullScreen(self._wakeup.write_fd)

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True, name="approvals-events").start()
        with self._screen:
            while self._goes_on:
                self._refresh()
                self._draw()
                for key in self._wait():
                    self._press(key)
                    self._draw()

    def _listen(self) -> None:
        """Wake the drawing thread at every event, also after the hub was restarted."""
        while True:
            try:
                with hub_client() as events:
                    self._wakeup.set()
                    for _ in events.stream("events", follow=True):
                        self._wakeup.set()
            except HubUnavailable:
                pass  # the drawing thread reports it
            self._wakeup.set()
            time.sleep(RETRY_S)

    def _wait(self) -> list[Key]:
        """Return keys, or none after an event or a timeout (displayed ages change)."""
        wait_s = self._keys.wait_s(self._clock.now())
        ready, _, _ = select.select(
            [0, self._wakeup.fileno()], [], [], LOOK_S if wait_s is None else min(wait_s, LOOK_S)
        )
        self._wakeup.clear()
        if 0 not in ready:
            return self._keys.due(self._clock.now())
        data = os.read(0, 4096)
        self._goes_on &= bool(data)  # the terminal is gone
        return self._keys.feed(data, self._clock.now())

    def _refresh(self) -> None:
        while not self._told.empty():
            prompt_id, text, words = self._told.get()
            pending = tuple(item for item in self._state.pending if item != prompt_id)
            self._state = replace(self._state, message=text, pending=pending)
            if words and self._state.editing is None and self._state.selected == prompt_id:
                self._state = replace(self._state, editing=Editing("text", words, prompt_id))
        try:
            self._hub = self._hub or hub_client()
            found = self._hub.ask("prompts")
            queue = self._hub.request("queue").get("queue", ())  # empty if the hub is older than this command
        except HubUnavailable:
            self._hang_up()
            return
        if self._state.away:
            self._state = replace(self._state, message="the hub is back")
        self._ring_for(found["prompts"])
        left = tuple(item["prompt_id"] for item in found["still_waiting"])
        state = replace(self._state, away=False, left=left, queue=tuple(queue))
        asked = sorted(found["prompts"], key=is_idle)  # questions before idle tools
        self._state = state.refreshed(asked, self._clock.now())

    def _ring_for(self, prompts: list[dict[str, Any]]) -> None:
        """Ring once for prompts that are new since the last refresh."""
        known = {item["prompt_id"] for item in self._state.prompts}
        if self._rings and any(item["prompt_id"] not in known for item in prompts):
            self._screen.write("\a")

    def _hang_up(self) -> None:
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        self._state = replace(self._state, away=True)

    def _draw(self) -> None:
        cols, rows = self._screen.size
        frame = render_frame(self._state, rows, cols)
        self._screen.write(paint(frame, "NO_COLOR" not in os.environ))
        self._state = self._state.drawn(frame.shown)

    def _press(self, key: Key) -> None:
        state = self._state
        if state.editing is not None:
            self._edit(state.editing, key)
        elif state.reviewing:
            self._confirm(state.reviewing, key)
        elif state.offer is not None:
            self._grant(state.offer, key)
        elif key.pasted and not wants_words(state.current):
            self._say("pasted text answers nothing: press t first")
        else:
            intention = Intention("text", key.text) if key.pasted else decide_key(key.text, state.current)
            if intention.do in _DECIDING and not key.alone:
                self._say(_NOT_ALONE)
            else:
                self._obey(intention)

    def _say(self, text: str) -> None:
        self._state = replace(self._state, message=text)

    def _obey(self, intention: Intention) -> None:
        now = self._clock.now()
        confirmed = self._state.confirming == intention.do
        if self._state.confirming and not confirmed:
            intention = Intention("no")  # any other key cancels
        self._state = state = replace(self._state, message="", confirming="")
        match intention.do:
            case "no":
                self._say("nothing was done")
            case "quit":
                self._goes_on = False
            case "suspend":
                self._screen.suspend()
            case "up" | "down":
                self._state = state.moved(-1 if intention.do == "up" else 1, now)
            case "page_up" | "page_down":
                self._state = state.scrolled(-1 if intention.do == "page_up" else 1)
            case "search":
                self._state = replace(state, editing=Editing("search", state.search))
            case "escape":
                self._state = replace(state, search="", marked=(), aside="").settled(now)
            case "mark":
                self._state = state.marking()
            case "view":
                self._state = state.toggled("screen")
            case "queue":
                self._state = state.toggled("queue")
            case "attach":
                self._attach()
            case "put_off" | "leave":
                if not confirmed:
                    self._state = replace(state, confirming=intention.do if state.current else "")
                elif intention.do == "put_off":
                    self._put_off()
                else:
                    self._answer("leave")
            case "again":
                for prompt_id in state.left:
                    self._request(prompt_id, "ask_again")
            case "text" | "choose":
                self._begin(intention)
            case "offer":
                self._offer()
            case "answer":
                self._answer(intention.value)

    def _put_off(self) -> None:
        """Snooze the selected prompt; this decides nothing."""
        if self._state.current is not None:
            self._request(self._state.current["prompt_id"], "snooze", for_s=SNOOZE_S)

    def _begin(self, intention: Intention) -> None:
        """Start a line for the selected prompt. Enter sends it, with the same checks as any answer, so a prompt that
        has just appeared cannot take the first letter of a word as its answer."""
        current = self._state.current
        if current is None:
            return
        secret = bool(current["constraints"].get("secret")) and intention.do == "text"
        line = Editing(intention.do, _one_line(intention.value), current["prompt_id"], secret)
        self._state = replace(self._state, editing=line, message="")

    def _offer(self) -> None:
        """Show what the hub would grant instead of the question, until a key decides."""
        state, now = self._state, self._clock.now()
        hindrance = state.hindrance(now)
        if state.current is None or hindrance:
            self._say(hindrance)
            return
        prompt_id = state.current["prompt_id"]
        made = self._ask_grant(prompt_id, preview=True)
        if made["ok"]:
            self._state = state.offering(read_offer(prompt_id, made), now)
        else:
            self._say(escape_controls(made["message"], keep_lines=False))

    def _ask_grant(self, prompt_id: str, **wanted: Any) -> dict[str, Any]:
        try:
            self._hub = self._hub or hub_client()
            return self._hub.request("grant.add", prompt_id=prompt_id, **wanted)
        except HubUnavailable:
            self._hang_up()
            return {"ok": False, "message": "the hub is away: nothing was granted"}

    def _grant(self, offer: Offer, key: Key) -> None:
        now = self._clock.now()
        intention, span = decide_key(key.text, None), span_for_key(key.text)
        if intention.do in ("page_up", "page_down"):
            self._state = self._state.scrolled(-1 if intention.do == "page_up" else 1)
        elif span is None:
            self._state = self._state.leave_offer(now, "nothing was granted")
        elif hindrance := self._state.hindrance(now) or ("" if key.alone else _NOT_ALONE):
            self._say(hindrance.replace("answered", "granted"))
        else:
            made = self._ask_grant(offer.prompt_id, for_s=span.for_s, times=span.times, folder=span.folder)
            said = f"granted: {made['words']}" if made["ok"] else made["message"]
            self._state = self._state.leave_offer(now, escape_controls(said, keep_lines=False))

    def _edit(self, line: Editing, key: Key) -> None:
        now = self._clock.now()
        before, line = line, replace(line, dropping=False)
        if key.pasted or key.text.isprintable():
            line = replace(line, text=line.text + (_one_line(key.text) if key.pasted else key.text))
        elif key.text in ("\x7f", "\x08"):
            line = replace(line, text=line.text[:-1])
        elif key.text == "\x15":
            line = replace(line, text="")
        elif key.text == "\x17":
            line = replace(line, text=line.text.rstrip().rpartition(" ")[0])
        elif key.text in _PAGES:
            self._state = replace(self._state, message="").scrolled(_PAGES[key.text])
        elif key.text in ("\x1b", "\x03"):
            if line.purpose == "text" and line.text and not (before.dropping or line.gone):
                line = replace(line, dropping=True)
            else:
                cleared = replace(self._state, editing=None, message="")
                self._state = replace(cleared, search="").settled(now) if line.purpose == "search" else cleared
                return
        elif key.text in ("\r", "\n"):
            self._end_line(line, key)
            return
        state = replace(self._state, editing=line)
        self._state = replace(state, search=line.text).settled(now) if line.purpose == "search" else state

    def _end_line(self, line: Editing, key: Key) -> None:
        """Handle Enter. A line that cannot be sent now stays on the screen."""
        sends = line.purpose != "search" and not line.gone
        hindrance = (self._state.hindrance(self._clock.now()) or ("" if key.alone else _NOT_ALONE)) if sends else ""
        if hindrance:
            self._state = replace(self._state, editing=line, message=hindrance.replace("answered", "sent"))
            return
        self._state = replace(self._state, editing=None, message="")
        if sends:
            key_meant = line.text.strip().lower() in ("enter", "esc", "escape", "ctrl-c") and not line.secret
            as_text = line.purpose == "text" and not key_meant
            self._send(line.prompt_id, line.text, as_text=as_text, secret=line.secret)

    def _answer(self, value: str) -> None:
        state = self._state
        if state.current is None:
            return
        if not state.marked:
            hindrance = state.hindrance(self._clock.now())
            if hindrance:
                self._say(hindrance)
            else:
                self._send(state.current["prompt_id"], value)
        elif len(state.reviewed) != len(state.marked) or not same_meaning(state.reviewed, value):
            self._say(f"{value!r} does not mean the same to all that are marked; nothing was answered")
        else:
            self._state = state.review(value, self._clock.now())

    def _confirm(self, value: str, key: Key) -> None:
        """After all marked prompts were shown, the same key again answers each of them."""
        intention = decide_key(key.text, self._state.reviewed[0])
        if intention.do in ("page_up", "page_down"):
            self._state = replace(self._state, message="").scrolled(-1 if intention.do == "page_up" else 1)
            return
        if intention != Intention("answer", value):
            self._state = self._state.leave_review(self._clock.now(), "nothing was answered")
            return
        hindrance = self._state.hindrance(self._clock.now()) or ("" if key.alone else _NOT_ALONE)
        if hindrance:
            self._say(hindrance)
            return
        chosen, self._state = self._state.marked, replace(self._state.leave_review(self._clock.now()), marked=())
        for prompt_id in chosen:
            self._send(prompt_id, value)

    def _send(self, prompt_id: str, value: str, as_text: bool = False, secret: bool = False) -> None:
        self._request(prompt_id, "reply", value if as_text and not secret else "", value=value, as_text=as_text)

    def _request(self, prompt_id: str, op: str, words: str = "", **fields: Any) -> None:
        """Send in a separate thread, because typing can take long. If `words` are refused, they can be edited again."""
        self._state = replace(self._state, pending=(*self._state.pending, prompt_id), message="answering …")

        def send() -> None:
            refused = False
            try:
                with hub_client() as hub:
                    answer = hub.request(op, prompt_id=prompt_id, **fields)
                refused = not answer.get("ok")
                text = answer["message"] if answer.get("ok") else f"Refused: {answer['message']}"
            except HubUnavailable as error:
                text = f"whether the answer was taken is not known ({error}): look at the session"
            self._told.put((prompt_id, escape_controls(str(text), keep_lines=False), words if refused else ""))
            self._wakeup.set()

        threading.Thread(target=send, daemon=True, name="approvals-answer").start()

    def _attach(self) -> None:
        current: dict[str, Any] | None = self._state.current
        if current is None:
            return
        words = own_python("atlasbridge", "attach", current["session_id"])
        done: list[subprocess.CompletedProcess[bytes]] = []
        environ = own_environ(os.environ)
        self._screen.without(lambda: done.append(subprocess.run(words, env=environ, stderr=subprocess.PIPE)))
        said = done[0].stderr.decode(errors="replace").strip().removeprefix("atlasbridge: ")
        self._say(escape_controls(said, keep_lines=False))


# The meaning of each key in `approvals`. Pure; `full_screen` turns bytes into keys. If a prompt wants text or a secret,
# every printable key starts the answer, and commands use Ctrl. Otherwise a letter is a command, or an answer that the
# prompt offers.


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
