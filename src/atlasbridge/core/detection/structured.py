"""What the tool reports about itself: OSC 7501 program status, desktop notifications, hooks and event APIs.

All of these can be missing, late, repeated or wrong. They raise the confidence and add details, but never raise or
withdraw a prompt alone. The output stream gives only hints, because any displayed text could have written them. A
hook's subject counts only if the dialog shows the same.
"""

from __future__ import annotations

import base64
import binascii
import unicodedata
from itertools import takewhile

from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Subject, SubjectKind
from atlasbridge.core.prompt.vocabulary import speaks
from atlasbridge.core.values import frozen

# First the comparison of a hook's subject with the dialog on the screen, character by character. A tool is allowed to
# wrap its rows, to put a mark before the first row or a bar before each, and to cut what is too long, nothing else.

LEAST_SEEN = 12  # characters that must match before a cut
LEAST_RULE, _RULE = 8, frozenset("─━═╌┄┈")
LEAST_END = 24  # the same for an end whose beginning has left the screen
NARROWEST, MOST_AROUND = 24, 12  # columns of a dialog, and rows of it that are not its command
_BLANKS = lazy(r" +")
_BAR = lazy(r"^[│┃▏▎](?: |$)")
_MARK = lazy(r"^[^\w\s]{1,3}\s+")  # `$ `, `> `, `# ` before the subject


@frozen
class ShownDialog:
    """The dialog on the screen, for the comparison with hook events.

    `clipped`: its end can be missing without notice. `names`: it shows only these files of an edit. `about`: the
    subject that the dialog shows.
    """

    text: str
    clipped: bool = False
    names: tuple[str, ...] = ()
    about: Subject | None = None
    headless: bool = False  # its beginning has left the screen
    left_out: int = 0  # it shows nothing of its command, only that so many rows are missing


def fits(subject: Subject, dialog: ShownDialog, note: str = "") -> bool:
    """Whether the dialog is about this subject. Files that it only names must match exactly. If its beginning has left
    the screen, a matching end suffices, with `note` below it.
    """
    shown, clipped = dialog.text, dialog.clipped
    if dialog.names:
        return subject.kind is SubjectKind.EDIT and sorted(subject.targets) == sorted(dialog.names)
    rows = [row.strip() for row in shown.split("\n")]
    match subject.kind:
        case SubjectKind.EDIT:
            named = [path.rpartition("/")[2] for path in subject.targets]
            changed = [_drawn(line[1:]) for line in subject.text.split("\n")]
            lines, seen = [line for line in changed if line], _drawn(shown)
            if not named or not all(_named(name, shown) for name in named):
                return False
            return not lines or any(line in seen for line in lines)
        case SubjectKind.TOOL:
            return _named(subject.target, shown)
        case SubjectKind.PLAN:
            return _told(subject.text, shown)
        case SubjectKind.QUESTION:
            first = subject.text.partition("\n")[0]
            return stands_in(first, rows)
        case SubjectKind.FETCH:
            return stands_in(subject.target or subject.text, rows) or _named(subject.target, shown)
    if dialog.left_out:
        return subject.kind is SubjectKind.COMMAND and _has_rows(subject.text, dialog.left_out)
    return stands_in(subject.text, rows, clipped) or (dialog.headless and ends_in(subject.text, rows, note))


def _has_rows(text: str, left_out: int) -> bool:
    """Whether so many rows can be this text and the few rows that the tool puts around it."""
    lines = text.split("\n")
    most = sum(1 + len(line) // NARROWEST for line in lines)
    return len(lines) < left_out <= most + MOST_AROUND


def covers(told: Subject, seen: Subject | None, clipped: bool = False) -> bool:
    """Whether the hook's subject contains everything that the dialog shows as its subject. One line of a script is
    not the script, and a file with the same name in another folder is another file.
    """
    if seen is None:
        return True
    if told.kind is not seen.kind:
        return False
    if seen.kind is SubjectKind.EDIT:
        return all(any(_is_at(path, shown) for path in told.targets) for shown in seen.targets)
    rows = [row.strip() for row in seen.text.split("\n")]
    return seen.kind is not SubjectKind.COMMAND or stands_in(told.text, rows, clipped, to_the_end=True)


def _is_at(path: str, shown: str) -> bool:
    """Whether the path matches the shown one, which can be relative to a folder, or cut at its beginning."""
    end = [part for part in shown.strip().rpartition("…")[2].split("/") if part not in ("", ".", "..", "~")]
    return bool(end) and path.split("/")[-len(end) :] == end


def stands_in(text: str, rows: list[str], clipped: bool = False, to_the_end: bool = False) -> bool:
    """Whether the rows contain the whole text, from the start of a row to the end of one, or up to a cut. With
    `to_the_end`, the rows must contain nothing else.
    """
    wanted = _drawn(text)
    return bool(wanted) and any(_begins(wanted, way, clipped, "\t" in text, to_the_end) for way in _ways(rows))


def ends_in(text: str, rows: list[str], note: str = "") -> bool:
    """Whether the rows start with an end of the text, followed by nothing or by `note` up to an empty row. If the
    first row is not part of the text, the dialog starts on the screen or is about something else.
    """
    wanted = _drawn(text)
    return bool(wanted) and any(_ends(wanted, way, _words(note)) for way in _ways(rows))


def _ways(rows: list[str]) -> list[list[str]]:
    """The rows as they are drawn, and without the bar that a tool can draw before each."""
    drawn = [_drawn(row) for row in rows]
    return [drawn, [_BAR.sub("", row).strip() for row in drawn]]


def _ends(wanted: str, rows: list[str], note: str) -> bool:
    """Compare only as much of the text as the rows can contain, with a wide indentation for each."""
    first = next((row for row in rows if row), "")
    tail = wanted[-sum(len(row) + 200 for row in rows) :]
    at = tail.find(first) if first else -1
    while at >= 0:
        end = _last_row(tail[at:], rows) if len(tail) - at >= LEAST_END else 0
        if end and _words("".join(_up_to_blank(rows[end:]))) in ("", note):
            return True
        at = tail.find(first, at + 1)
    return False


def _last_row(wanted: str, rows: list[str]) -> int:
    """How many rows are needed to spell out the text; 0 if they do not contain it."""
    at = 0
    for number, row in enumerate(rows, 1):
        at = _past(wanted, at, row)
        if not 0 <= at < len(wanted):
            return number if at >= 0 else 0
    return 0


def _past(wanted: str, at: int, row: str) -> int:
    """Where the text continues after this row; -1 if the row is not its next part."""
    if not wanted.startswith(row, at):
        return -1
    at += len(row)
    while at < len(wanted) and wanted[at].isspace():
        at += 1
    return at


def _up_to_blank(rows: list[str]) -> list[str]:
    """The rows up to an empty one, or up to the line that some dialogs draw instead."""
    return list(takewhile(lambda row: row and (len(row) < LEAST_RULE or set(row) - _RULE), rows))


def _begins(wanted: str, rows: list[str], clipped: bool, tabbed: bool, to_the_end: bool) -> bool:
    """Whether the text starts in one of the rows. With `tabbed`, blanks are ignored: a tab can become several."""
    rows = [row for row in rows if row]
    squeezed = [_BLANKS.sub("", row) for row in rows] if tabbed else rows
    wanted = _BLANKS.sub("", wanted) if tabbed else wanted
    for at, row in enumerate(rows[:1] if to_the_end else rows):
        for begin in {0, *(match.end() for match in (_MARK.match(row),) if match)}:
            first = _BLANKS.sub("", row[begin:]) if tabbed else row[begin:]
            if first and _matches(wanted, [first, *squeezed[at + 1 :]], clipped, to_the_end):
                return True
    return False


def _matches(wanted: str, rows: list[str], clipped: bool, to_the_end: bool) -> bool:
    at = 0
    for number, row in enumerate(rows, 1):
        if speaks("hint", "hidden", row):
            return at >= min(LEAST_SEEN, len(wanted))
        begun = _before_cut(row)
        if begun is not None and wanted[at : at + len(begun)] == begun and at + len(begun) < len(wanted):
            return at + len(begun) >= LEAST_SEEN and (number == len(rows) or not to_the_end)
        at = _past(wanted, at, row)
        if not 0 <= at < len(wanted):
            return at >= 0 and (number == len(rows) or not to_the_end)
    return clipped and at >= LEAST_SEEN


def _before_cut(row: str) -> str | None:
    dots = next((dots for dots in ("…", "...") if row.endswith(dots)), "")
    return row.removesuffix(dots).rstrip() if dots else None


def _drawn(text: str) -> str:
    """The text as a terminal shows it: tabs as blanks, without zero-width characters and their replacement sign."""
    text = text.replace("\t", " ").replace("\ufffd", "")
    return "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Cc") or char == "\n").strip()


def _named(name: str, shown: str) -> bool:
    """Whether the name is shown, and not only as a part of a longer one."""
    at = shown.find(name) if name else -1
    while at >= 0:
        before, behind = shown[at - 1 : at] if at else "", shown[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or behind.isalnum()):
            return True
        at = shown.find(name, at + 1)
    return False


def _told(text: str, shown: str) -> bool:
    """Whether the words match, without punctuation and marks, because a plan is rendered before it is shown."""
    said, seen = (_words(line) for line in (text, shown))
    begin = said[:80]
    return len(begin) >= min(LEAST_SEEN, len(said)) > 0 and begin in seen


def _words(text: str) -> str:
    return "".join(filter(str.isalnum, text))


FRESH_S = 10.0  # a hook event counts this long, because it comes when its dialog appears
SOON_S = 1.5
MOST_AT_ONCE = 16
_STATES = {"idle": "idle", "done": "idle", "working": "working"}


class ToolSays:
    def __init__(self) -> None:
        self.state = ""  # the program status: "blocked", "idle", "working" or ""
        self.source = ""
        self._text = ""
        self._beside: list[tuple[float, StructuredEventReceived]] = []  # with their times, since the last dialog
        self._raised_at = 0.0
        self._unheard: ShownDialog | None = None  # the dialog that was raised before its hook event

    def hear(self, event: StructuredEventReceived, now: float) -> None:
        """Take an event from outside the output stream. An announced dialog is possibly over: no state."""
        if event.kind in _STATES:
            self.state, self.source = _STATES[event.kind], event.source or event.kind
        else:
            self._beside = [*self._beside[1 - MOST_AT_ONCE :], (now, event)]

    def notice(self, kind: str, payload: str) -> None:
        """Take a notice from the output stream: `7501`, `9`, `99`, `777` or a bell. The dialect handles titles."""
        if kind.endswith("7501") or kind == "status":
            self._status(payload)
        elif kind.removeprefix("osc") in ("9", "99", "777") and not payload.startswith("4;"):
            self.source = f"notification: {payload[:60]}"

    def asks(self, dialog: ShownDialog, now: float) -> str:
        """The evidence that the tool waits at the shown dialog, or "" without any."""
        if self.state == "blocked":
            return f"{self.source} says that it waits"
        beside = self.announced(dialog, now)
        return f"{beside.source} says that it waits" if beside is not None else ""

    def announces(self, now: float) -> bool:
        """Whether a hook has just announced a dialog. Some tools need a second to draw it."""
        return any(now - at < SOON_S for at, _ in self._fresh(now))

    def contradicts(self, dialog: ShownDialog, now: float) -> bool:
        """Whether a hook has just announced something else than the screen shows."""
        return bool(self._fresh(now)) and self.announced(dialog, now) is None

    def spoke_late(self, now: float) -> bool:
        """Whether a hook event came after its dialog was raised without one."""
        return self._unheard is not None and any(at >= self._raised_at for at, _ in self._fresh(now))

    @property
    def hint(self) -> str:
        """The tool's message in the output stream about what it waits for. Any displayed text could have written it."""
        return self._text if self.state == "blocked" else ""

    def announced(self, dialog: ShownDialog, now: float) -> StructuredEventReceived | None:
        """The announcement that matches the dialog; None if several different ones do."""
        fitting = [beside for _, beside in self._fresh(now) if _is_about(beside, dialog)]
        alike = {(about.kind, about.text, about.target) for beside in fitting if (about := beside.subject)}
        return fitting[-1] if len(alike) == 1 else None

    def _fresh(self, now: float) -> list[tuple[float, StructuredEventReceived]]:
        return [(at, beside) for at, beside in self._beside if now - at < FRESH_S and beside.subject is not None]

    def raised(self, dialog: ShownDialog, now: float) -> None:
        """Note that a dialog was raised: earlier events are about it. At an input box they can announce the next."""
        self._raised_at = now if dialog.text else self._raised_at
        self._unheard = dialog if self.announced(dialog, now) is None else None

    def forget(self) -> None:
        """Drop what was said about the withdrawn prompt, but not the announcement of the next one."""
        self._text = ""
        past = self._unheard  # an event about it came late
        kept = [(at, beside) for at, beside in self._beside if at > self._raised_at]
        self._beside = [(at, beside) for at, beside in kept if past is None or not _is_about(beside, past)]
        if self.state == "blocked":
            self.state = ""

    def _status(self, payload: str) -> None:
        parts = dict(part.split("=", 1) for part in payload.split(":") if "=" in part)
        state = parts.get("state", "")
        if not state:
            return
        self.state = state if state == "blocked" else _STATES.get(state, "")
        self.source = f"{parts.get('app', 'the tool')} (program status)"
        self._text = _decoded(parts.get("msg", "")) if self.state == "blocked" else ""


def _is_about(beside: StructuredEventReceived, dialog: ShownDialog) -> bool:
    """Whether the event can be about the dialog. One without a subject can be about any."""
    told = beside.subject
    covered = told is None or bool(dialog.names) or covers(told, dialog.about, dialog.clipped)
    return covered and (told is None or fits(told, dialog, beside.note))


def _decoded(message: str) -> str:
    try:
        return base64.b64decode(message + "=" * (-len(message) % 4), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
