"""What recognition works on beside the picture, and what it says: facts about the terminal in, a finding out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Choice, PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import field, frozen

CONTEXT_ROWS = 8


@frozen
class Facts:
    """What the operating system said about the terminal at this moment; None: not known."""

    canonical: bool | None = None
    echo: bool | None = None
    reading: bool = False  # a process blocks in read, nothing else
    command: str = ""  # the process that waits

    @property
    def one_key(self) -> bool:
        """Neither line editing nor an editor of its own: the program wants a single key (`read -n 1`)."""
        return self.canonical is False and self.echo is True


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
    barred: bool = False  # in a reversed bar at the foot of a full screen
    own: bool = False  # a dialog that the tool's own dialect knows: it stands there until it is answered


def typed_line(words: str) -> tuple[Step, ...]:
    """A word and its Enter as two events, as raw programs need them; a line discipline does not mind."""
    return (Step(words.encode(), When.DRAINED), Step(ENTER))


def excerpt_of(view: View, row: int, question: str) -> str:
    """The question with as much of its own paragraph as fits.  A bare `>` says nothing: it takes what stands above."""
    asked = " ".join(question.split())
    bare = sum(char.isalpha() for char in asked) < 10
    taken: list[str] = []
    size = len(asked)
    for at in range(row - 1, max(-1, row - 1 - CONTEXT_ROWS), -1):
        text = " ".join(_frameless(view.lines[at]).split())
        if view.is_answered(at):
            break
        if not text:
            if bare and size < 60:
                continue
            break
        if not any(map(str.isalnum, text)):
            continue  # a rule, or the `~` of an empty row
        taken.append(text)
        size += len(text) + 1
        if size >= EXCERPT_LIMIT:
            break
    return cut("\n".join([*reversed(taken), asked]))


def cut(text: str) -> str:
    """At most 200 characters; the end is what matters."""
    text = text.strip()
    return text if len(text) <= EXCERPT_LIMIT else "…" + text[-(EXCERPT_LIMIT - 1) :]


def _frameless(line: str) -> str:
    return "".join(" " if "\u2500" <= char <= "\u259f" else char for char in line)
