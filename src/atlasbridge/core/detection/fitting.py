"""Is what a hook told the very thing that the dialog on the screen shows?  Compared character by character.

A tool may wrap its rows, put a mark in front of the first or a bar in front of each, and cut what is too long; nothing
else may differ.
"""

from __future__ import annotations

import unicodedata

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.subject import Subject, SubjectKind
from atlasbridge.core.recognition.asked import HIDDEN

LEAST_SEEN = 12  # characters that must agree before a cut
_BLANKS = lazy(r" +")
_BAR = lazy(r"^[│┃▏▎](?: |$)")
_MARK = lazy(r"^[^\w\s]{1,3}\s+")  # `$ `, `> `, `# ` in front of what is asked


def fits(subject: Subject, shown: str, clipped: bool = False, names: tuple[str, ...] = ()) -> bool:
    """Whether `shown`, the text of a dialog, is about this.  `clipped`: it may end where the tool had no more rows.
    `names`: the files of an edit, where the dialog shows nothing else of it: then those, and no others."""
    if names:
        return subject.kind is SubjectKind.EDIT and sorted(subject.targets) == sorted(names)
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
    return stands_in(subject.text, rows, clipped)


def covers(told: Subject, seen: Subject | None, clipped: bool = False) -> bool:
    """Whether what was told leaves nothing out of what the dialog itself shows as its subject: one line of a script is
    not the script, and a file of the same name in another folder is another file."""
    if seen is None:
        return True
    if told.kind is not seen.kind:
        return False
    if seen.kind is SubjectKind.EDIT:
        return all(any(_is_at(path, shown) for path in told.targets) for shown in seen.targets)
    rows = [row.strip() for row in seen.text.split("\n")]
    return seen.kind is not SubjectKind.COMMAND or stands_in(told.text, rows, clipped, to_the_end=True)


def _is_at(path: str, shown: str) -> bool:
    """A tool may show a path from its folder or from home, and cut its beginning; all that it shows must be there."""
    end = [part for part in shown.strip().rpartition("…")[2].split("/") if part not in ("", ".", "..", "~")]
    return bool(end) and path.split("/")[-len(end) :] == end


def stands_in(text: str, rows: list[str], clipped: bool = False, to_the_end: bool = False) -> bool:
    """Whether the text stands there whole, from the beginning of a row to the end of one; or up to where it was cut.
    `to_the_end`: from the first row to the last, and nothing else stands there."""
    wanted, rows = _drawn(text), [_drawn(row) for row in rows]
    barred = [_BAR.sub("", row).strip() for row in rows]
    ways = [rows] if barred == rows else [rows, barred]
    return bool(wanted) and any(_begins(wanted, way, clipped, "\t" in text, to_the_end) for way in ways)


def _begins(wanted: str, rows: list[str], clipped: bool, tabbed: bool, to_the_end: bool) -> bool:
    """`tabbed`: a tab is drawn as one blank, or as many, to the next stop, or not at all."""
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
        if HIDDEN.search(row):
            return at >= min(LEAST_SEEN, len(wanted))
        begun = _before_cut(row)
        if begun is not None and wanted[at : at + len(begun)] == begun and at + len(begun) < len(wanted):
            return at + len(begun) >= LEAST_SEEN and (number == len(rows) or not to_the_end)
        if wanted[at : at + len(row)] != row:
            return False
        at += len(row)
        while at < len(wanted) and wanted[at].isspace():
            at += 1
        if at >= len(wanted):
            return number == len(rows) or not to_the_end
    return clipped and at >= LEAST_SEEN


def _before_cut(row: str) -> str | None:
    """The row up to the dots that end it; None when it has none."""
    for dots in ("…", "..."):
        if row.endswith(dots):
            return row.removesuffix(dots).rstrip()
    return None


def _drawn(text: str) -> str:
    """As a terminal draws it: tabs as blanks, and nothing of what takes no room, or of the sign that stands for it."""
    text = text.replace("\t", " ").replace("\ufffd", "")
    return "".join(char for char in text if unicodedata.category(char) not in ("Cf", "Cc") or char == "\n").strip()


def _named(name: str, shown: str) -> bool:
    """The name stands there, and is not a part of a longer one."""
    at = shown.find(name) if name else -1
    while at >= 0:
        before, behind = shown[at - 1 : at] if at else "", shown[at + len(name) : at + len(name) + 1]
        if not (before.isalnum() or behind.isalnum()):
            return True
        at = shown.find(name, at + 1)
    return False


def _told(text: str, shown: str) -> bool:
    """The words agree, whatever became of their marks: a plan is drawn, not printed."""
    said, seen = (_words(line) for line in (text, shown))
    begin = said[:80]
    return len(begin) >= min(LEAST_SEEN, len(said)) > 0 and begin in seen


def _words(text: str) -> str:
    return "".join(filter(str.isalnum, text))
