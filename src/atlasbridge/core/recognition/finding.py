"""What recognition works on beside the picture, and what it says: facts about the terminal in, a finding out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.form_fields import FormField
from atlasbridge.core.prompt.keys import ENTER, Step, When
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Choice, PromptType, Subject
from atlasbridge.core.values import field, frozen, replace

_ASKS = ("?", "？", "؟")
_DRAWING = lazy(r"(?=.*[\u2500-\u259f\U0001fb00-\U0001fb3b])[^\w]*+$")  # box drawing and blocks, and not a word
_BAR = lazy(r"(?:[╭┌╔╰└╚][─━═]*+\s?)?[─━═]{4,}+[╮╯┐┘╗╝]?|^[ \t]*+[╭┌╔╰└╚][─━═]*+\s?(?=.*[─━═]{4})")
_SIDES = "│┃║┆┊╎▏▎▍▌▐▕█▆▄"
_LEFT, _RIGHT = lazy(rf"^\s*+[{_SIDES}]\s*+"), lazy(rf"(?<!\s)\s*+[{_SIDES}]\s*+$")
_LEFT_APART = lazy(rf"^\s*+[{_SIDES}](?:\s{{1,2}}|$)")
_RIGHT_APART = lazy(rf"(?<!\s)\s{{2,}}+[{_SIDES}]\s*+$")
DRAWN_FIELD = "drawn-field"  # something to type into is on the screen, and nobody knows what for
DRAWN_SCREEN = "drawn-screen"  # the program draws its screen, hides the cursor, and nothing there is understood
FOOTER = "footer"  # a line to type into at the foot of a full screen
PASSING = "passing"  # it says itself that it goes on without an answer
ASKS_ABROAD = "asks-abroad"  # yes or no in words alone: which key says it is a good guess, no more


@frozen
class Facts:
    """What the operating system said about the terminal at this moment; None: not known."""

    canonical: bool | None = None
    echo: bool | None = None
    reading: bool = False  # a process blocks in read, nothing else
    command: str = ""  # the process that waits
    blind: bool = False  # nobody can tell what the program does: silence is all there is to go by
    single: bool = False  # it has taken an earlier answer by its first key

    @property
    def one_key(self) -> bool:
        """Neither line editing nor an editor of its own: the program wants a single key (`read -n 1`)."""
        return self.canonical is False and (self.echo is True or self.single)


@frozen
class Finding:
    """A prompt on a picture.  `core` is the text that identifies it: it stays the same while a person types."""

    rule: str
    type: PromptType
    score: float
    excerpt: str
    core: str
    row: int = 0
    choices: tuple[Choice, ...] = ()
    constraints: Mapping[str, Any] = field(default_factory=dict)
    line_mode: bool = True
    filled: str = ""  # what stands on the line already: a default, or half an answer
    detached: bool = False  # the cursor stands below it, on an empty line
    structural: bool = False  # a menu, a box, a dialect's own dialog: stands for itself even while something blinks
    text_steps: tuple[Step, ...] = ()
    end_steps: tuple[Step, ...] = ()
    words_end: tuple[Step, ...] = ()
    priority: int = 0
    multiline: bool = False
    permission: bool = False
    deaf_s: float = 0.0  # so long after it has appeared the tool ignores keys
    barred: bool = False  # in a reversed bar at the foot of a full screen
    own: bool = False  # a dialog that the tool's own dialect knows: it stands there until it is answered
    question: str = ""  # all of what is asked, as it stands on the screen; "": the excerpt is all
    whole: bool = True  # nothing of the question has left the screen or was cut by the tool
    abridged: bool = False  # a row of what it is about ends in dots: the tool may have had no room for the rest
    clipped: bool = False  # its end may be missing without a word: its dialog is as high as the tool makes any
    alone: bool = False  # nothing stands right above it that could belong to it
    bare: bool = False  # the line is a mark like `>` alone: a shell may well read it
    orders: bool = False  # a shell, a pager, an editor: it takes commands, and asks nothing
    fields: tuple[FormField, ...] = ()  # of a form whose keys are certain
    subject: Subject | None = None  # what it is about, as far as the screen says it
    foot: int = -1  # the last row of a dialog: what the tool says of itself stands below it; -1: not known
    at_work: tuple[int, ...] = ()  # rows beside an input box in which a tool without a dialect says that it works


def typed_line(words: str, raw: bool = False) -> tuple[Step, ...]:
    """A word and its Enter as two events, as raw programs need them; a line discipline does not mind.  A raw program
    may take the first letter for all of it: the rest would answer what comes next."""
    if raw and len(words) > 1:
        return (Step(words[:1].encode(), When.MAY_LEAVE), *typed_line(words[1:]))
    return (Step(words.encode(), When.DRAINED), Step(ENTER))


def to_look_at(rule: str, score: float, question: str, row: int, core: str = "") -> Finding:
    """Something asks, and nobody can tell which keys would say what: a person must look."""
    kind = PromptType.TYPE_UNKNOWN
    said = compact(question).strip()
    found = Finding(rule, kind, score, said, core or question, row, line_mode=False, structural=True)
    return replace(found, question=question)


def compact(text: str) -> str:
    """For a notification: without its empty rows."""
    return "\n".join(row for row in text.split("\n") if row.strip())


def without_drawing(text: str) -> str:
    """For a notification: without frames and bars around the words, and without the blanks that they leave.  What
    stands between words, such as a pipe, stays."""
    return compact("\n".join(map(_undrawn, text.split("\n"))))


@lru_cache(maxsize=512)  # a row stands there at the next look, too
def _undrawn(row: str) -> str:
    row = _BAR.sub("", row)
    framed = _LEFT.match(row) is not None and _RIGHT.search(row) is not None
    row = _LEFT.sub("", row) if framed else _LEFT_APART.sub("", row)
    row = _RIGHT.sub("", row) if framed else _RIGHT_APART.sub("", row)
    return "" if _DRAWING.match(row) else row.rstrip()


def cut(text: str) -> str:
    """At most 200 characters: where there is no room for all of it, the question, then the end of the rest."""
    text = text.strip()
    if len(text) <= EXCERPT_LIMIT:
        return text
    rows = text.split("\n")
    asks = next((at for at in range(len(rows) - 1, -1, -1) if rows[at].rstrip(" \"'*_").endswith(_ASKS)), -1)
    if asks < 0 or len(rows[asks]) > EXCERPT_LIMIT * 3 // 4 or len("\n".join(rows[asks:])) < EXCERPT_LIMIT:
        return "…" + text[-(EXCERPT_LIMIT - 1) :]
    question = rows[asks].strip()
    rest = "\n".join([*rows[:asks], *rows[asks + 1 :]])
    return f"{question}\n…{rest[-(EXCERPT_LIMIT - len(question) - 2) :]}"
