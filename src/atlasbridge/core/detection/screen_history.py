"""The detector's eye: the screen, a picture of it per state, and how long what it shows has been still.

It says what is there and since when; what that means is decided in `detector`.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import pairwise, zip_longest

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.detection.prompt_builder import digest_of, picture_key
from atlasbridge.core.detection.verdict import SURE, Moment
from atlasbridge.core.prompt.keys import NAMED, Stands, Step
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import FOOTER, Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.recognition.widgets.known_dialog import marked_rows, titled
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

GRAIN_S = 1e-4  # a wake-up may be early by the clock's grain
SLOWEST_RHYTHM_S = 1.3
BEATS_S = 3.0  # a row in which a tool says that it works turns a wheel or counts: what stands below a dialog for longer
STALE_S = 10.0  # does not say so any more; nor does what stands anywhere on a screen without a dialog for so long
BACKGROUND_S = 600.0  # work in the background that the tool names below its input box; it is idle after that
QUIET_WORK_S = 30.0  # of a tool whose words of work are known: its input box is not called idle any sooner
KEPT_ANSWERS = 6
DRAWN = b"\x1b[?2026l"  # the end of a synchronised update


class ScreenHistory:
    def __init__(self, dialect: Dialect, rows: int, cols: int, threshold: float) -> None:
        self.dialect = dialect
        self._threshold = threshold
        self.screen = Screen(rows, cols)
        self.last_output = float("-inf")
        self.key = ""  # the picture without what blinks and counts, and how far it has scrolled
        self.key_since = -1.0  # before anything happened
        self._seen = ""  # the dialog that was there at the last look, and since when
        self._seen_since = float("-inf")
        self._rewritten = 0  # carriage returns and backspaces since the last line feed
        self._version = -1
        self._seen_views: deque[View] = deque(maxlen=2)  # as it was at the last changes
        self._changes: deque[float] = deque(maxlen=4)
        self._row_since: list[float] = []  # when each row last looked otherwise
        self._answered: tuple[str, ...] = ()  # the last lines that have had their answer
        self._rejected = ""  # words of an answer that was not taken, right behind the cursor
        self._pictured: tuple[tuple[int, str, tuple[str, ...], str], View] | None = None
        self._known: dict[Facts, Finding] = {}  # what the picture shows, by what is known of the terminal

    def open(self, now: float) -> None:
        """The first moment of all: nothing has been still for longer than we have been looking."""
        if self.key_since < 0:
            self.key_since = now

    def feed(self, data: bytes, now: float) -> None:
        self.screen.feed(data)
        self.last_output = now
        ended = data.rfind(b"\n") + 1
        self._rewritten = 0 if ended else self._rewritten
        self._rewritten += data.count(b"\r", ended) + data.count(b"\b", ended)

    def drawings(self, data: bytes) -> list[bytes]:
        """The pictures that a tool has drawn one after the other, if it says where each ends."""
        return [part + DRAWN for part in data.split(DRAWN)[:-1]] + [data.rpartition(DRAWN)[2]]

    def look(self) -> View:
        """A picture is made once for every state of the screen: most looks find it unchanged."""
        state = (self.screen.version, self.screen.title, self._answered, self._rejected)
        if self._pictured is None or self._pictured[0] != state:
            self._pictured = (state, replace(View.of(self.screen), answered=self._answered))
            self._known.clear()
        return self._pictured[1]

    def recognise(self, facts: Facts) -> Finding:
        view = self.look()
        if facts not in self._known:
            found = recognise(view, facts, self.dialect)
            if facts.blind and found.score < self._threshold and not found.structural:
                found = replace(found, type=PromptType.TYPE_UNKNOWN)  # perhaps it only pauses: a person must look
            rejected = self._rejected and view.behind_cursor() == self._rejected
            self._known[facts] = emptied(found, view) if rejected else found
        return self._known[facts]

    def work_rows(self) -> frozenset[str]:
        """The rows in which the tool may say that it works."""
        view = self.look()
        marked = (rows for state, rows in marked_rows(view, self.dialect) if state == "busy")
        return frozenset(view.lines[at] for rows in marked for at in rows)

    def stated(self, found: Finding, now: float, busy: bool) -> str:
        """What the tool says of itself: in its title, or in rows that it draws for that.  Such a row moves, and stands
        below the dialog that is open: what a dialog or the talk above it quotes says nothing.  `busy`: the probe says
        so as well, then it need not move."""
        view = self.look()
        said = titled(view, self.dialect)
        if said:
            return said
        dialog = found.structural and not found.constraints.get("idle")
        below = max(found.foot, found.row) if dialog else -1
        beat_s = BEATS_S if dialog else float("inf") if busy else self.patience_s(found)
        for state, rows in (*marked_rows(view, self.dialect), ("busy", found.at_work)):
            if state == "background":  # of a tool at rest, below its input box
                rests = found.constraints.get("idle") and now - self.key_since < BACKGROUND_S
                if rests and any(at > found.foot for at in rows):
                    return "busy"
            elif any(at > below and now - self._moved_at(at) < beat_s for at in rows):
                return state
        return ""

    def patience_s(self, found: Finding) -> float:
        """How long a tool that says that it works is believed, while nothing moves."""
        return QUIET_WORK_S if found.constraints.get("idle") and self.dialect.says_busy else STALE_S

    def stirred(self, found: Finding, now: float) -> bool:
        """Something has moved of late: a tool that says that it works, and draws nothing, does not."""
        return now - (self._changes[-1] if self._changes else self.last_output) < self.patience_s(found)

    def _moved_at(self, row: int) -> float:
        return self._row_since[row] if row < len(self._row_since) else self.last_output

    def _notice_rows(self, view: View) -> None:
        had = self._seen_views[-1] if self._seen_views else None
        if had is None or len(had.lines) != len(view.lines):
            self._row_since = [self.last_output] * len(view.lines)
            return
        for at, (line, styles) in enumerate(zip(view.lines, view.styles, strict=True)):
            if line != had.lines[at] or styles != had.styles[at]:
                self._row_since[at] = self.last_output

    def notice_change(self) -> bool:
        """Whether something that counts has changed since the last call."""
        view = self.look()
        if self.screen.version == self._version:
            return False
        self._version = self.screen.version
        if len(self._seen_views) < 2 or not blinks(self._seen_views[0], self._seen_views[1], view):
            self._changes.append(self.last_output)
        self._notice_rows(view)
        self._seen_views.append(view)
        key = f"{picture_key(view, self.dialect)} {self.screen.scrolled}"
        if key == self.key:
            return False
        self.key = key
        self.key_since = max(self.last_output, self.key_since)
        return True

    def notice_finding(self, found: Finding) -> None:
        """A dialog settles by itself, whatever moves elsewhere on the screen; so does a question beyond doubt, and the
        line at the foot of a full screen."""
        digest = digest_of(found) if found.structural or found.score >= SURE or found.rule == FOOTER else ""
        if digest != self._seen:
            self._seen, self._seen_since = digest, self.last_output

    def place(self, found: Finding) -> int:
        """The line it stands in, counted from the first line that was ever on the screen."""
        return found.row + self.screen.scrolled

    def stands_at(self, place: int, core: str) -> bool:
        """Whether that line, if it is still on the screen, asks this."""
        row, lines = place - self.screen.scrolled, self.look().lines
        return 0 <= row < len(lines) and "".join(core.split()) in "".join(lines[row].split())

    def cursor_line(self) -> str:
        """The row with the cursor, up to the cursor."""
        return self.screen.cursor_text().strip()

    def as_answered(self, line: str, place: int) -> str:
        """A line as it stands there with its answer, where it is a mark alone: others may begin with that mark."""
        row, lines = place - self.screen.scrolled, self.look().lines
        here = lines[row].strip() if 0 <= row < len(lines) else ""
        return line if any(map(str.isalnum, line)) else here if here.startswith(line) and here != line else ""

    def remember_answered(self, line: str) -> None:
        """This line is history from now on: no excerpt goes beyond it."""
        if line:
            self._answered = (*self._answered[1 - KEPT_ANSWERS :], line)

    def remember_rejected(self, behind: str) -> None:
        """The answer to a line had no effect: what now stands behind the cursor, and did not before, is left of it."""
        words = self.look().behind_cursor()
        self._rejected = words if words != behind else ""

    def forget_dialog(self) -> None:
        """It was answered: one that looks the same has not stood there for as long."""
        self._seen = ""

    def forget_rhythm(self) -> None:
        """What moves because of keys has no rhythm of its own."""
        self._changes.clear()

    def moment(self, now: float, typed_at: float | None, attended: bool, row: int) -> Moment:
        times = list(self._changes)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        regular = len(gaps) == 3 and max(gaps) < SLOWEST_RHYTHM_S and max(gaps) < 2.5 * min(gaps) + 0.03
        rhythm = 2 * max(gaps) + 0.05 if regular else 0.0
        calm = now - times[-1] if times else now - self.key_since
        since = min(self.key_since, self._seen_since) if self._seen else self.key_since
        return Moment(
            settled_s=now - since + GRAIN_S,
            rest_s=rhythm if calm < rhythm else 0.0,
            typed_s=None if typed_at is None else now - typed_at,
            calm_s=calm + GRAIN_S,
            row_s=now - self._moved_at(row) + GRAIN_S,
            attended=attended,
            rewritten=self._rewritten,
        )


def blinks(before: View, one: View, other: View) -> bool:
    """A caret that the program draws by itself: one cell looks otherwise, or blanks of one row go back and forth."""
    if one.lines != other.lines or (one.row, one.col) != (other.row, other.col):
        return False
    rows = [at for at, styles in enumerate(one.styles) if styles != other.styles[at]]
    if len(rows) != 1:
        return not rows
    row, text = rows[0], other.lines[rows[0]]
    pairs = zip_longest(one.styles[row], other.styles[row])
    changed = [at for at, (had, has) in enumerate(pairs) if had != has]
    drawn = [at for at in changed if text[at : at + 1].strip()]
    return len(drawn) <= 1 and (len(changed) == 1 or before.styles == other.styles)


def emptied(found: Finding, view: View) -> Finding:
    """The line with keys that first take away what stands behind the cursor, and are seen to have done so."""
    words, rest, line = view.behind_cursor(), view.rest_of_row(), view.lines[view.row]
    beyond = rest[len(words) :].lstrip()  # more of it, or what the program shows beside it: this stays where it is
    gone = line.removesuffix(rest) + " " * (len(rest) - len(beyond) if beyond else len(words) + 1)
    wrapped = view.joined_text(view.row + 1, view.line_end(view.row) + 1)
    count = len(rest) + len(wrapped)  # too many do nothing, what is left would be sent along
    clear = Step(NAMED["delete"] * count, Stands(gone))
    choices = tuple(replace(one, steps=(clear, *one.steps)) if one.steps else one for one in found.choices)
    return replace(found, text_steps=(clear, *found.text_steps), choices=choices)


def facts_of(probe: ProbeAnswer, row: int) -> Facts:
    """What is known of the terminal that the cursor's row belongs to: below an inner one, keys go to who draws both."""
    around = 0 < probe.rows <= row
    canonical, echo = (False, False) if around else (probe.canonical, probe.echo)
    state = probe.state
    return Facts(canonical, echo, state is ProbeState.READING, probe.command, state is ProbeState.UNKNOWN)


def uncounted(line: str) -> str:
    """`In [2]:` is `In [1]:` again."""
    return re.sub(r"\d+", "0", line)
