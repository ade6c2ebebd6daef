"""The input of recognition besides the screen, and its result: facts about the terminal in, a finding out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Choice, FormField, PromptType, Subject
from atlasbridge.core.recognition.question import Asked, block
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.values import field, frozen

_TWIG = lazy(r"[\s│]*[├└]─+ ")  # of a tree
_DRAWING = "".join(map(chr, range(0x2500, 0x25A0))) + " "  # lines and blocks
_KEYED = lazy(r"[\[(]\w[\])][\w ]*")  # words with their keys: `(Y)es / A(u)to rename all`
_WORDLESS = 9  # letters of a row that says nothing: a mark, or the names of two answers
DRAWN_FIELD = "drawn-field"  # a field to type into is on the screen, but its purpose is unknown
DRAWN_SCREEN = "drawn-screen"  # the program draws its screen, hides the cursor, and nothing there is recognised
FOOTER = "footer"  # a line to type into at the foot of a full screen
PASSING = "passing"  # the program says that it continues without an answer
ASKS_ABROAD = "asks-abroad"  # a yes-or-no question without named keys: which key to type is only a guess


@frozen
class Facts:
    """What the operating system says about the terminal now; None means unknown."""

    canonical: bool | None = None
    echo: bool | None = None
    reading: bool = False  # a process blocks in read, nothing else
    command: str = ""  # the process that waits
    blind: bool = False  # the probe knows nothing about the program: only silence counts
    single: bool = False  # it accepted an earlier answer at its first key

    @property
    def one_key(self) -> bool:
        """Whether the program wants a single key (`read -n 1`), without line editing of any kind."""
        return self.canonical is False and (self.echo is True or self.single)


@frozen
class Finding:
    """A prompt on the screen. `core` is the text that identifies it and stays the same while a person types."""

    rule: str
    type: PromptType
    score: float
    excerpt: str
    core: str
    row: int = 0
    choices: tuple[Choice, ...] = ()
    constraints: Mapping[str, Any] = field(default_factory=dict)
    line_mode: bool = True
    filled: str = ""  # text that is already on the line: a default, or half an answer
    detached: bool = False  # the cursor is below it, on an empty line
    structural: bool = False  # a menu, a box or a dialect's own dialog: it counts even while something else blinks
    text_steps: tuple[Step, ...] = ()
    end_steps: tuple[Step, ...] = ()
    words_end: tuple[Step, ...] = ()
    priority: int = 0
    multiline: bool = False
    permission: bool = False
    deaf_s: float = 0.0  # the tool ignores keys for this long after the prompt has appeared
    barred: bool = False  # in a reversed bar at the foot of a full screen
    own: bool = False  # a dialog that the tool's own dialect knows: it stays until it is answered
    question: str = ""  # the whole question as it is on the screen; "": the excerpt is all of it
    whole: bool = True  # no part of the question has left the screen or was cut by the tool
    abridged: bool = False  # a row of its subject ends in dots: the tool possibly had no room for the rest
    clipped: bool = False  # its end can be missing without notice, because the dialog has the tool's greatest height
    alone: bool = False  # nothing right above it could belong to it
    bare: bool = False  # the line is only a mark like `>`: possibly a shell reads it
    orders: bool = False  # a shell, a pager or an editor: it takes commands and asks nothing
    fields: tuple[FormField, ...] = ()  # the fields of a form whose keys are certain
    subject: Subject | None = None  # the subject, as far as the screen shows it
    foot: int = -1  # the last row of a dialog, above the tool's own status rows; -1: unknown
    at_work: tuple[int, ...] = ()  # rows beside an input box in which a tool without a dialect says that it works

    @property
    def idle(self) -> bool:
        """Whether it is the input box of a tool that waits for the next instruction."""
        return bool(self.constraints.get("idle"))


def typed_line(words: str, raw: bool = False) -> tuple[Step, ...]:
    """A word and its Enter as two events, as raw programs need them; a line discipline accepts that, too. A raw
    program can accept the first letter as the answer, and then the rest would answer the next prompt.
    """
    if raw and len(words) > 1:
        return (Step(words[:1].encode(), When.MAY_LEAVE), *typed_line(words[1:]))
    return (Step(words.encode(), When.DRAINED), Step(ENTER))


def drawn(rule: str, score: float, asked: Asked, kind: PromptType = PromptType.TYPE_UNKNOWN, core: str = "") -> Finding:
    """A finding for something that the program draws. Of an unknown type it has unknown keys: a person must look."""
    return Finding(
        rule, kind, score, compact(asked.text), core or asked.text, asked.row,
        line_mode=False, structural=True, question=asked.text, whole=asked.whole,
    )  # fmt: skip


def compact(text: str) -> str:
    return "\n".join(row for row in text.split("\n") if row.strip())


def without_drawing(text: str) -> str:
    """The text for a notification without frames and bars around the words. Signs between words stay."""
    lines = tuple(text.split("\n"))
    rows = [line if _TWIG.match(line) else row for line, row in zip(lines, unframed(lines), strict=True)]
    return compact(block([row for row in rows if row.strip(_DRAWING)]))


def cut(text: str, context: bool = False) -> str:
    """At most 200 characters, in reading order: the beginning and the end, with `…` for what is missing between them.

    With `context`, the last row asks and the rows above it are earlier output, of which only the end is kept, and
    nothing if the question itself is too long. A last row without words, such as `(y/N)`, asks nothing by itself.
    """
    text = text.strip()
    if len(text) <= EXCERPT_LIMIT:
        return text
    rows = text.split("\n")
    last = rows.pop()
    earlier = context and sum(map(str.isalpha, _KEYED.sub("", last))) > _WORDLESS
    room = EXCERPT_LIMIT - 2
    half = room * 3 // 8
    fits = len(last) <= 2 * half
    end = [last if fits else f"{short(last, half)}{last[-half:].lstrip()}"]
    most = room * 2 // 5 if not earlier else room if fits else 0  # for the end, with the rows above the last one
    while rows and len("\n".join([rows[-1], *end])) <= most:
        end.insert(0, rows.pop())
    tail = "\n".join(end)
    return "\n".join(["…", tail] if earlier else [short("\n".join(rows), room + 1 - len(tail)), tail])


def short(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1].rstrip() + "…"
