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


def stands_in(text: str, rows: list[str], clipped: bool = False) -> bool:
    """Whether the text stands there whole, from the beginning of a row to the end of one; or up to where it was cut."""
    wanted, rows = _drawn(text), [_drawn(row) for row in rows]
    barred = [_BAR.sub("", row).strip() for row in rows]
    tabbed = "\t" in text
    return bool(wanted) and any(
        _begins(wanted, rows, clipped, tabbed) for rows in ((rows, barred) if barred != rows else (rows,))
    )


def _begins(wanted: str, rows: list[str], clipped: bool, tabbed: bool) -> bool:
    """`tabbed`: a tab is drawn as one blank, or as many, to the next stop, or not at all."""
    squeezed = [_BLANKS.sub("", row) for row in rows] if tabbed else rows
    wanted = _BLANKS.sub("", wanted) if tabbed else wanted
    for at, row in enumerate(rows):
        for begin in {0, *(match.end() for match in (_MARK.match(row),) if match)}:
            first = _BLANKS.sub("", row[begin:]) if tabbed else row[begin:]
            if first and _matches(wanted, [first, *squeezed[at + 1 :]], clipped):
                return True
    return False


def _matches(wanted: str, rows: list[str], clipped: bool) -> bool:
    at = 0
    for row in rows:
        if not row:
            continue
        if HIDDEN.search(row):
            return at >= min(LEAST_SEEN, len(wanted))
        begun = _before_cut(row)
        if begun is not None and wanted[at : at + len(begun)] == begun and at + len(begun) < len(wanted):
            return at + len(begun) >= LEAST_SEEN
        if wanted[at : at + len(row)] != row:
            return False
        at += len(row)
        while at < len(wanted) and wanted[at].isspace():
            at += 1
        if at >= len(wanted):
            return True
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
