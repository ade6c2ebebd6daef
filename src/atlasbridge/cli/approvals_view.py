"""How `approvals` looks: a list, below it all that the selected prompt asks, below that keys.  Pure: text out.

Everything is cut and wrapped by columns here, so that what is counted as shown is shown.
"""

from __future__ import annotations

import os
from typing import Any, Final

from atlasbridge.cli import approvals_grant
from atlasbridge.cli.approvals_board import Board, OnScreen, name_of
from atlasbridge.cli.columns import cells, clip, fold, pad
from atlasbridge.cli.printing import ago
from atlasbridge.core.session.naming import DOORS
from atlasbridge.core.values import frozen
from atlasbridge.core.visible import visible

KEYS: Final = (
    "↑↓ choose  y n 1-9 Enter answer  t text  c leave  d default  g allow for a while  z later  Space mark  / search"
    "  a attach  v screen  i queue  q"
)
NAME_COLS: Final = 18
SMALL: Final = 12  # rows: below, one line for messages and keys must do
STYLES: Final = {"": "", "bold": "1", "dim": "2", "chosen": "7", "warn": "33", "choice": "36", "said": "1"}
KINDS: Final = {
    "yes_no": "yes or no",
    "confirm_enter": "press Enter",
    "multiple_choice": "choose one",
    "free_text": "words",
    "unknown": "cannot be told",
}


@frozen
class Line:
    text: str
    style: str = ""


@frozen
class Drawing:
    lines: tuple[Line, ...]
    shown: OnScreen


def render_frame(board: Board, rows: int, cols: int) -> Drawing:
    """Exactly `rows` lines, none wider than `cols`."""
    rows, cols = max(rows, 1), max(cols, 2)
    foot = _foot(board, rows, cols)
    head = [_head(board, cols)] if rows > 4 else []
    room = rows - len(head) - len(foot)
    asked = _asked(board, cols)
    listed = [] if board.reviewing else _list(board, cols, _list_rows(len(board.listed), room))
    title = [_title(board, cols)] if asked and room - len(listed) > 1 else []
    named = bool(listed or board.reviewing or not board.prompts)  # what is asked is worth nothing without who asks
    height = max(0, room - len(listed) - len(title)) if asked and named else 0
    part = asked[board.scroll : board.scroll + height]
    blank = [Line("")] * (room - len(listed) - len(title) - len(part))
    shown = OnScreen(len(asked), height, cols)
    return Drawing((*head, *listed, *title, *part, *blank, *foot)[:rows], shown)


def _list_rows(count: int, room: int) -> int:
    """A third for the list; what is asked needs the rest."""
    return max(min(count, max(room // 3, 1)), 1) if room > 1 else 0


def _head(board: Board, cols: int) -> Line:
    if board.away:
        return Line(clip("the hub is away; waiting for it …", cols), "warn")
    count = len(board.prompts)
    words = ["nothing is waiting for you" if not count else "1 waits" if count == 1 else f"{count} wait"]
    if board.search:
        words.append(f"{len(board.listed)} match “{visible(board.search, keep_lines=False)}” (Esc: all)")
    if board.marked:
        words.append(f"{len(board.marked)} marked")
    if board.left:
        words.append(f"{len(board.left)} still waiting, their time is over (r: ask again)")
    if board.queue:
        words.append(f"{len(board.queue)} queued" + (" (i)" if count else ""))
    return Line(clip(" · ".join(words), cols), "bold")


def _list(board: Board, cols: int, height: int) -> list[Line]:
    """The part of the list with the selected prompt in it."""
    listed = board.listed
    place = next((number for number, item in enumerate(listed) if item["prompt_id"] == board.selected), 0)
    first = max(0, min(place - height // 2, len(listed) - height))
    lines = []
    for item in listed[first : first + height]:
        chosen = item["prompt_id"] == board.selected
        mark = "●" if item["prompt_id"] in board.marked else " "
        busy = "…" if item["prompt_id"] in board.pending else " "
        age = "" if cols < 50 else f" {ago(item['created_at']):>6}"
        name = pad(clip(visible(name_of(item), keep_lines=False), min(NAME_COLS, cols // 3)), min(NAME_COLS, cols // 3))
        text = f"{'▶' if chosen else ' '}{mark}{busy}{name} {_gist(item)}"
        body = cols - len(age)
        lines.append(Line(pad(clip(text, body), body) + age, "chosen" if chosen else "dim" if board.away else ""))
    return lines


def _gist(prompt: dict[str, Any]) -> str:
    """One line about it, for the list; what is asked stands whole below."""
    subject = prompt.get("subject") or {}
    text = subject.get("text") if subject.get("kind") == "command" else ""
    return visible(text or prompt["excerpt"], keep_lines=False)


def _title(board: Board, cols: int) -> Line:
    if board.reviewing:
        return Line(clip(f"answer {board.reviewing!r} to all {len(board.marked)} of these?", cols), "bold")
    prompt = board.current
    if board.aside == "queue" or prompt is None:
        return Line(clip("── typed at a tool's next idle input box, one at each " + "─" * cols, cols, end=""), "bold")
    place = next(number for number, item in enumerate(board.listed, 1) if item is prompt)
    tool = DOORS.get(prompt["tool"], prompt["tool"])
    words = [name_of(prompt), tool if prompt.get("label") else "", _folder(prompt.get("cwd", ""))]
    words += [_kind(prompt), prompt["prompt_id"][:8], _kept(prompt)]
    words.append(f"{place}/{len(board.listed)}")
    if board.shown.total > board.shown.height > 0:
        words.append(f"lines {board.scroll + 1}-{min(board.scroll + board.shown.height, board.shown.total)}")
        words[-1] += f" of {board.shown.total} (PgDn, PgUp)"
    text = "── " + visible(" · ".join(word for word in words if word), keep_lines=False) + " "
    return Line(clip(text + "─" * cols, cols, end=""), "bold")


def _kind(prompt: dict[str, Any]) -> str:
    rests = prompt["type"] == "unknown" and prompt["constraints"].get("idle")  # an editor, a pager
    return "rests, takes keys" if rests else KINDS.get(prompt["type"], prompt["type"])


def _kept(prompt: dict[str, Any]) -> str:
    """What somebody has said for later."""
    kept = prompt.get("later") or []
    return "; ".join(
        f"{'asked again' if item['kind'] == 'snooze' else repr(item['value'])} at {item['when']}" for item in kept
    )


def _folder(path: str) -> str:
    own = os.path.expanduser("~")
    return "~" + path[len(own) :] if path == own or path.startswith(own + os.sep) else path


def _asked(board: Board, cols: int) -> list[Line]:
    """All that must be read before somebody answers."""
    if board.reviewing:
        lines: list[Line] = []
        for item in board.reviewed:
            lines += [Line(clip(f"● {visible(name_of(item), keep_lines=False)}", cols), "bold"), *_whole(item, cols)]
        return lines
    prompt = board.current
    if board.aside == "queue" or prompt is None:
        return _queue(board, cols)
    if board.offer is not None:
        return _wrapped(board.offer.text, cols, "")
    if board.aside == "screen":
        return _wrapped(prompt["screen"] or "(its screen is not known)", cols, "")
    return _whole(prompt, cols)


def _queue(board: Board, cols: int) -> list[Line]:
    """What waits for tools to be done, each with whose it is; it is typed without a further question."""
    if not board.queue:
        return [Line(clip("nothing is queued", cols), "dim")] if board.aside else []
    lines: list[Line] = []
    for item in board.queue:
        words = f"{item['name']} · {item['by_name']} · {ago(item['created_at'])} · {item['queue_id'][:8]}"
        lines += [Line(clip(visible(words, keep_lines=False), cols), "choice"), *_wrapped(item["text"], cols, "")]
    return [*lines, Line(""), *_wrapped("take one back: atlasbridge queue off ID", cols, "dim")]


def _whole(prompt: dict[str, Any], cols: int) -> list[Line]:
    question = prompt.get("question") or prompt["excerpt"]
    subject = prompt.get("subject") or {}
    lines: list[Line] = []
    if subject.get("text") and subject["text"] not in question:
        lines += _wrapped(f"{subject['kind']} {subject.get('target', '')}".strip() + ":", cols, "dim")
        lines += [*_wrapped(subject["text"], cols, ""), Line("")]
    if not prompt.get("whole", True):
        lines += _wrapped("part of this has left the tool's screen: attach (a) to read all of it", cols, "warn")
    lines += _wrapped(question, cols, "")
    for choice in prompt["choices"]:
        text = f"  {choice['value']}  {choice['label']}" + (f": {choice['detail']}" if choice.get("detail") else "")
        lines += _wrapped(text, cols, "warn" if choice.get("always") else "choice")
    if prompt["constraints"].get("secret"):
        lines += _wrapped("a secret: press t and type it; it is shown nowhere", cols, "warn")
    if prompt.get("says"):
        lines += _wrapped(f"the tool says: {prompt['says']}", cols, "dim")
    return lines


def _foot(board: Board, rows: int, cols: int) -> list[Line]:
    if board.editing is not None:
        edit = board.editing
        text = "•" * len(edit.text) if edit.secret else visible(edit.text, keep_lines=False)
        label = {"search": "/", "text": "secret: " if edit.secret else "text: ", "choose": "choice: "}[edit.purpose]
        hint = "Enter keeps it, Esc ends the search" if edit.purpose == "search" else "Enter sends it, Esc does not"
        line = Line(_tail(f"{label}{text}▏", cols), "said")
        return [Line(clip(hint, cols), "dim"), line] if rows > SMALL else [line]
    keys = KEYS
    if board.reviewing:
        keys = "the same key again answers all of them; any other key: back"
    elif board.offer is not None:
        keys = approvals_grant.KEYS
    elif not board.prompts:
        keys = "PgDn PgUp read on  q quit" if board.shown.total > board.shown.height else "q quit"
    if rows <= SMALL:
        return [Line(clip(board.message or keys, cols), "said" if board.message else "dim")]
    said = _wrapped(board.message, cols, "said")[:3] if board.message else [Line("")]
    return [*said, *(Line(text, "dim") for text in _packed(keys, cols))]


def _packed(keys: str, cols: int) -> list[str]:
    """The keys on as many lines as they need, two at most."""
    lines = [""]
    for word in keys.split("  "):
        joined = f"{lines[-1]}  {word}" if lines[-1] else word
        if cells(joined) <= cols:
            lines[-1] = joined
        else:
            lines.append(word)
    return [clip(line, cols) for line in lines[:2]]


def _tail(text: str, cols: int) -> str:
    """The end of a line that is being typed."""
    while cells(text) > cols:
        text = text[1:]
    return text


def _wrapped(text: str, cols: int, style: str) -> list[Line]:
    """Every character of it, in as many lines as that takes."""
    rows = visible(text).expandtabs(8).split("\n")
    return [Line(part, style) for row in rows for part in fold(row, cols)]


def paint(frame: Drawing, coloured: bool = True) -> str:
    """The frame as a terminal takes it, drawn over what was there before."""
    out = ["\x1b[?2026h\x1b[H"]
    for number, line in enumerate(frame.lines):
        code = STYLES[line.style]
        if not coloured and code in ("33", "36"):
            code = ""
        text = f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text
        ends = "\r\n" if number < len(frame.lines) - 1 else ""
        out.append(f"\x1b[K{text}{ends}")  # cleared first: behind a full line that would take its last column
    out.append("\x1b[?2026l")
    return "".join(out)
