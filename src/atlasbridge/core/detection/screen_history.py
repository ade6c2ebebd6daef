"""The screen over time: a view of each state, and how long its parts have been unchanged.

It says what is there and since when; `detector` decides what that means.
"""

from __future__ import annotations

import re
from collections import deque
from itertools import pairwise, zip_longest

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.detection.prompt_builder import digest_of, picture_key
from atlasbridge.core.detection.verdict import SURE, Moment
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import NAMED, Stands, Step
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.prompt.vocabulary import speaks
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import DRAWN_SCREEN, FOOTER, Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.recognition.widgets.known_dialog import marked_rows, titled
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

GRAIN_S = 1e-4  # a wake-up can be early by the resolution of the clock
SLOWEST_RHYTHM_S = 1.3
BEATS_S = 3.0  # a busy mark spins or counts: below a dialog, one that has not changed for this long does not count
STALE_S = 10.0  # the same for a busy mark on a screen without a dialog
BACKGROUND_S = 600.0  # background work that the tool names below its input box; after this time it counts as idle
QUIET_WORK_S = 30.0  # the same beside the input box of a tool with known marks, if nothing else tells whether it works
SPINNERS = "".join(map(chr, range(0x2801, 0x2900))) + "◐◓◑◒✶✸✹✺✻✽✢✳"
SPIN_S = 1.2  # a spinner that has not turned for this long stands still
_S = r"\d{1,5}(?:\.\d)?\s?s(?:econds?|ecs?)?\b"
_SECONDS = lazy(rf"\({_S}|\bin {_S}|\b{_S} (?:left|remaining|ago)\b")
_CLOCK = lazy(r"\b\d{1,2}(?::\d{2}){1,2}\b|\btime ?out\W+\d+|^\W*\d{1,4}\W*(?:s|secs?|seconds)?\W*$", re.IGNORECASE)
TICKS_S = 2.5  # a row that counts or spins by itself changes at least this often
KEPT_ANSWERS = 6
DRAWN = b"\x1b[?2026l"  # the end of a synchronised update


class ScreenHistory:
    def __init__(self, dialect: Dialect, rows: int, cols: int, threshold: float) -> None:
        self.dialect = dialect
        self._threshold = threshold
        self.screen = Screen(rows, cols)
        self.last_output = float("-inf")
        self.key = ""  # the screen without blinking and counting parts, and how far it has scrolled
        self.key_since = -1.0  # before the first event
        self._seen = ""  # the dialog of the last look, and since when it is there
        self._seen_since = float("-inf")
        self._seen_found: Finding | None = None
        self._rewritten = 0  # carriage returns and backspaces since the last line feed
        self._version = -1
        self._seen_views: deque[View] = deque(maxlen=2)  # at the last changes
        self._changes: deque[float] = deque(maxlen=4)
        self._row_since: list[float] = []  # when each row last changed
        self._beats: list[int] = []  # how often in a row only its numbers or its spinner changed, without keys
        self._before: list[str] = []  # what each row showed before its last change
        self._turned_at = float("-inf")  # when a spinner or a counter last went on; what only blinks returns
        self._answered: tuple[str, ...] = ()  # the last answered lines
        self._rejected = ""  # text of a rejected answer, right after the cursor
        self.sees_work = False  # the probe sees open requests and children: it would say `busy` if the tool worked
        self.begun = ""  # what a person has typed of a line that is not sent
        self._cached_view: tuple[tuple[object, ...], View] | None = None
        self._known: dict[Facts, Finding] = {}  # the finding for this view, by facts about the terminal

    def open(self, now: float) -> None:
        """Note the time of the first event: nothing has been unchanged for longer than that."""
        if self.key_since < 0:
            self.key_since = now

    def feed(self, data: bytes, now: float) -> None:
        self.screen.feed(data)
        self.last_output = now
        ended = data.rfind(b"\n") + 1
        self._rewritten = 0 if ended else self._rewritten
        self._rewritten += data.count(b"\r", ended) + data.count(b"\b", ended)

    def drawings(self, data: bytes) -> list[bytes]:
        """The data split into separate drawings, if the tool marks where each one ends."""
        return [part + DRAWN for part in data.split(DRAWN)[:-1]] + [data.rpartition(DRAWN)[2]]

    def look(self) -> View:
        """The current view. It is computed once for each state of the screen, because most looks find it unchanged."""
        state = (self.screen.version, self.screen.title, self._answered, self._rejected, self.begun)
        if self._cached_view is None or self._cached_view[0] != state:
            view = View.of(self.screen).without_begun(self.begun)
            self._cached_view = (state, replace(view, answered=self._answered))
            self._known.clear()
        return self._cached_view[1]

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
        view = self.look()
        marked = (rows for state, rows in marked_rows(view, self.dialect) if state == "busy")
        return frozenset(view.lines[at] for rows in marked for at in rows)

    def stated(self, found: Finding, now: float, busy: bool) -> str:
        """The state that the tool shows in its title or in rows for that purpose. Such a row is below the open dialog,
        and it changes, unless the probe says `busy`, too. A quotation above does not count.
        """
        view = self.look()
        said = titled(view, self.dialect)
        if said and (said != "busy" or busy or self.stirred(found, now)):  # a title can be left over
            return said
        dialog = found.structural and not found.idle
        below = max(found.foot, found.row) if dialog else -1
        beat_s = BEATS_S if dialog else float("inf") if busy else self.patience_s(found)
        for state, rows in (*marked_rows(view, self.dialect), ("busy", found.at_work)):
            if state == "background":  # of an idle tool, below its input box
                rests = found.idle and now - self.key_since < BACKGROUND_S
                if rests and any(at > found.foot for at in rows):
                    return "busy"
            elif any(at > below and now - self._moved_at(at) < beat_s for at in rows):
                return state
        decides = self._seen and any(choice.refuses for choice in found.choices)
        left = decides and not busy and now - self._seen_since >= STALE_S  # it turns, but no work is seen
        rows = () if self.dialect.says_busy or left else range(below + 1, len(view.lines))
        return "busy" if any(self._spins(view.lines[at], now - self._moved_at(at)) for at in rows) else ""

    def _spins(self, row: str, since_s: float) -> bool:
        """Whether a spinner turns at the start of a row that does not say that it waits for a person."""
        turns = row.lstrip()[:1] in SPINNERS and since_s < SPIN_S
        return turns and row.strip() != "" and not speaks("hint", "waits", row)

    def patience_s(self, found: Finding) -> float:
        """How long a tool's busy mark is believed while nothing changes."""
        unseen = not self.sees_work and self.dialect.says_busy
        return QUIET_WORK_S if unseen and found.idle else STALE_S

    def stirred(self, found: Finding, now: float) -> bool:
        """Whether something has changed recently. A tool that says it is working but draws nothing is not believed."""
        return now - (self._changes[-1] if self._changes else self.last_output) < self.patience_s(found)

    def _moved_at(self, row: int) -> float:
        return self._row_since[row] if row < len(self._row_since) else self.last_output

    def _notice_rows(self, view: View) -> None:
        had = self._seen_views[-1] if self._seen_views else None
        if had is None or len(had.lines) != len(view.lines):
            self._row_since, self._beats = [self.last_output] * len(view.lines), [0] * len(view.lines)
            self._before = list(view.lines)
            return
        for at, (line, styles) in enumerate(zip(view.lines, view.styles, strict=True)):
            if line != had.lines[at]:
                soon = self.last_output - self._row_since[at] < TICKS_S
                ticks = self._is_tick(had.lines[at], line)
                self._beats[at] = (self._beats[at] if soon else 0) + 1 if ticks else 0
                if ticks and line != self._before[at]:
                    self._turned_at = self.last_output
                self._before[at] = had.lines[at]
            if line != had.lines[at] or styles != had.styles[at]:
                self._row_since[at] = self.last_output

    def notice_change(self, unseen: bool = False) -> bool:
        """Whether the screen has changed since the last look. If it was redrawn `unseen` for long, it has: a spinner
        can show the same picture at both looks.
        """
        view = self.look()
        if unseen:
            self._changes.append(self.last_output)
            self.key_since = max(self.last_output, self.key_since)
        if self.screen.version == self._version:
            return unseen
        self._version = self.screen.version
        if len(self._seen_views) < 2 or not blinks(self._seen_views[0], self._seen_views[1], view):
            self._changes.append(self.last_output)
        self._notice_rows(view)
        self._seen_views.append(view)
        key = f"{picture_key(view, self.dialect)} {self.screen.scrolled}"
        if key == self.key:
            return unseen
        self.key = key
        self.key_since = max(self.last_output, self.key_since)
        return True

    def notice_finding(self, found: Finding, now: float) -> None:
        """Note since when a finding is there. A dialog settles on its own, whatever changes elsewhere on the screen.
        So do a certain question and the line at the foot of a full screen.
        """
        digest = digest_of(found) if found.structural or found.score >= SURE or found.rule == FOOTER else ""
        ticks = digest and self._seen_found and self.differs_by_ticks(self._seen_found, found, 1, now)
        if digest != self._seen and not ticks:
            self._seen_since = self.last_output
        self._seen, self._seen_found = digest, found

    def place(self, found: Finding) -> int:
        """The line number of the finding, counted from the first line that was ever on the screen."""
        return found.row + self.screen.scrolled

    def stands_at(self, place: int, core: str) -> bool:
        """Whether that line is still on the screen and contains this text."""
        row, lines = place - self.screen.scrolled, self.look().lines
        return 0 <= row < len(lines) and "".join(core.split()) in "".join(lines[row].split())

    def close_dialog(self, line: str, place: int) -> None:
        """Mark the answered line as history, and count a dialog that looks the same as new. A line that is only a
        mark is kept with its answer, because other lines can begin with the same mark.
        """
        row, lines = place - self.screen.scrolled, self.look().lines
        here = lines[row].strip() if 0 <= row < len(lines) else ""
        bare = not any(map(str.isalnum, line))
        self.remember_answered((here if here.startswith(line) and here != line else "") if bare else line)
        self._seen = ""

    def remember_answered(self, line: str) -> None:
        """Mark the line as history: no excerpt goes back beyond it."""
        if line:
            self._answered = (*self._answered[1 - KEPT_ANSWERS :], line)

    def remember_rejected(self, behind: str) -> None:
        """Record that the answer to a line had no effect. New text after the cursor is left over from it."""
        words = self.look().behind_cursor()
        self._rejected = words if words != behind else ""

    def _is_tick(self, before: str, row: str) -> bool:
        """Whether only a countdown, elapsed seconds, a clock or a spinner differ. Another number can be what is asked
        about: `Pay 10 EUR`, `give it 10 %`, `keep 30m`. So can the time in a row that asks.
        """
        still = str.maketrans(self.dialect.blinking, " " * len(self.dialect.blinking))
        one, other = (_SECONDS.sub(" ", text.translate(still)) for text in (before, row))
        if not row.rstrip().endswith(("?", "？")):
            one, other = _CLOCK.sub(" ", one), _CLOCK.sub(" ", other)
        return one == other

    def differs_by_ticks(self, one: Finding, other: Finding, beats: int, now: float) -> bool:
        """Whether two findings differ only in rows that tick by themselves, and have ticked this often in a row."""
        rows, view = (_rows(one), _rows(other)), self.look()
        ticking = [
            view.lines[at] for at, count in enumerate(self._beats)
            if count >= beats and now - self._row_since[at] < TICKS_S
        ]  # fmt: skip
        if one.type is not other.type or len(rows[0]) != len(rows[1]):
            return False
        pairs = [(old, new) for old, new in zip(*rows, strict=True) if old != new]
        ticks = (self._is_tick(old, new) and any(new.strip() in row for row in ticking) for old, new in pairs)
        return bool(pairs) and all(ticks)

    def forget_rhythm(self, keys: bool = True) -> None:
        """Forget the rhythm of changes, because changes caused by keys have none."""
        self._changes.clear()
        self._beats = [0] * len(self._beats) if keys else self._beats

    def moment(self, found: Finding, now: float, typed_at: float | None, attended: bool) -> Moment:
        times = list(self._changes)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        regular = len(gaps) == 3 and max(gaps) < SLOWEST_RHYTHM_S and max(gaps) < 2.5 * min(gaps) + 0.03
        rhythm = 2 * max(gaps) + 0.05 if regular else 0.0
        calm = now - times[-1] if times else now - self.key_since
        since = min(self.key_since, self._seen_since) if self._seen else self.key_since
        if found.rule == DRAWN_SCREEN:  # nothing there asks, so what turns beside it means work
            since = max(since, self._turned_at)
        return Moment(
            settled_s=now - since + GRAIN_S,
            rest_s=rhythm if calm < rhythm else 0.0,
            typed_s=None if typed_at is None else now - typed_at,
            calm_s=calm + GRAIN_S,
            row_s=now - self._moved_at(found.row) + GRAIN_S,
            attended=attended,
            rewritten=self._rewritten,
        )


def _rows(found: Finding) -> list[str]:
    """All the text that identifies a prompt, row by row."""
    labels = [f"{one.label}\n{one.detail}" for one in found.choices]
    return "\n".join([found.core, found.question, *labels]).replace("\0", "\n").split("\n")


def blinks(before: View, one: View, other: View) -> bool:
    """Whether only a caret that the program draws has changed: one cell, or blanks of one row that alternate."""
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
    """The finding with keys that first delete the text after the cursor, and a check that it is gone."""
    words, rest, line = view.behind_cursor(), view.rest_of_row(), view.lines[view.row]
    beyond = rest[len(words) :].lstrip()  # the rest of it, or text that the program shows beside it, which stays
    gone = line.removesuffix(rest) + " " * (len(rest) - len(beyond) if beyond else len(words) + 1)
    wrapped = view.joined_text(view.row + 1, view.line_end(view.row) + 1)
    count = len(rest) + len(wrapped)  # extra keys do nothing, but remaining text would be sent along
    clear = Step(NAMED["delete"] * count, Stands(gone))
    choices = tuple(replace(one, steps=(clear, *one.steps)) if one.steps else one for one in found.choices)
    return replace(found, text_steps=(clear, *found.text_steps), choices=choices)


def facts_of(probe: ProbeAnswer, row: int) -> Facts:
    """Facts about the terminal of the cursor's row. Below an inner terminal, keys go to the program that draws both."""
    around = 0 < probe.rows <= row
    canonical, echo = (False, False) if around else (probe.canonical, probe.echo)
    state = probe.state
    return Facts(canonical, echo, state is ProbeState.READING, probe.command, state is ProbeState.UNKNOWN)


def uncounted(line: str) -> str:
    """The line with all numbers as 0, so that `In [2]:` equals `In [1]:`."""
    return re.sub(r"\d+", "0", line)
