"""What a walk through a tool's dialogs consists of, and the dialogs that all tools have.  Plain data.

Which tool has which dialogs is `dialogs`'; walking them is `canary`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BASH, SECOND, WRITTEN = "made-by-bash.txt", "made-by-bash-2.txt", "written.txt"
WORDS = "text:my own words"


@dataclass(frozen=True, slots=True)
class Dialog:
    """`replies` answer the prompts in their order: a value, or `text:...` for own words.  None: it must be silent."""

    name: str
    scene: str
    replies: tuple[str, ...] = ()
    made: tuple[str, ...] = ()  # files that must be there afterwards
    unmade: tuple[str, ...] = ()  # files that must not
    shows: str = ""  # must stand on the screen afterwards
    hears: str = ""  # must reach the model
    asks: str = ""  # must stand in the excerpt of the first prompt
    says: str = ""  # typed first, such as /plan
    ends: bool = False  # the tool must end
    resize: tuple[int, int] = (0, 0)  # columns and rows by which the window changes while the first prompt is open
    lines: tuple[str, ...] = ()  # of what the last prompt asks: all shown, or what is shown is marked as incomplete

    @property
    def kind(self) -> str:
        """What it shows of AtlasBridge: "answered", "refused" or "silent"."""
        if not self.replies or all(reply.startswith("idle:") for reply in self.replies):
            return "silent"
        return "refused" if self.replies[-1] == "n" else "answered"


@dataclass(frozen=True, slots=True)
class Walk:
    """Dialogs that one run of a tool goes through, one after the other."""

    name: str
    dialogs: tuple[Dialog, ...]
    arguments: tuple[str, ...] = ()
    first_run: str = ""
    prepare: Callable[[Path, Path], None] | None = None
    env: tuple[tuple[str, str], ...] = ()
    mute: bool = False  # a terminal that answers no query
    often: bool = True  # false: not in every test run, only where all of them are walked


def permissions(
    *, edit_reads: bool = False, many: str = "step number 1 of many", secret: str = "[redact"
) -> tuple[Dialog, ...]:
    """Allow once makes it, refuse does not, and the second of two is asked for itself.  `many`: what a tool shows of a
    command that is longer than its dialog."""
    before = ("y",) if edit_reads else ()
    return (
        Dialog("bash: y", "bash", ("y",), made=(BASH,), asks="touch made-by-bash.txt"),
        Dialog("bash: n", "bash", ("n",), unmade=(BASH,), asks="{folder}"),
        Dialog("bash of many lines: n", "manylines", ("n",), unmade=(BASH,), asks=many),
        Dialog("bash with a secret: n", "secretbash", ("n",), asks=secret),
        Dialog("bash: 1", "bash", ("1",), made=(BASH,)),
        Dialog("bash twice: y n", "bash2", ("y", "n"), made=(BASH,), unmade=(SECOND,)),
        Dialog("bash twice: y y", "bash2", ("y", "y"), made=(BASH, SECOND)),
        Dialog("write: y", "write", ("y",), made=(WRITTEN,), asks=WRITTEN),
        Dialog("write: n", "write", ("n",), unmade=(WRITTEN,)),
        Dialog("edit: n", "edit", (*before, "n"), unmade=("blue",)),
        Dialog("edit: y", "edit", (*before, "y"), made=("blue",)),
    )


def questions(*, review: str, several: bool = True) -> tuple[Dialog, ...]:
    """One answer, own words, several; `review` answers the last look that some take at several questions."""
    return (*ASKED, *(_several((review,) if review else ()) if several else ()))


def _several(last: tuple[str, ...]) -> tuple[Dialog, ...]:
    return (
        Dialog("several answers", "askmulti", ("1,3",), hears="Redis"),
        Dialog("several answers: own words", "askmulti", (WORDS,), hears="my own words"),
        Dialog("several answers: n", "askmulti", ("n",)),
        Dialog("several answers, twice", "askmixed", ("1,3", "2", *last), hears="Blue"),
        Dialog("several answers, twice: own words", "askmixed", ("text:a first", "text:teal", *last), hears="teal"),
    )


ASKED = (
    Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
    Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
    Dialog("question: n", "ask", ("n",)),
    Dialog("two questions", "asktwo", ("2", "1", "y"), hears="Red"),
    Dialog("two questions: n to the second", "asktwo", ("2", "n")),
    Dialog("two questions: n at the last look", "asktwo", ("2", "1", "n")),
)
QUIET = (
    Dialog("next instruction", "", ("idle:please lab:say now",), shows="Hello from the lab."),
    Dialog("bait: silent", "bait"),
    Dialog("thinking: silent", "slow=4"),
    Dialog("retrying: silent", "fail=2", shows="Done after a bad start."),
)
TWO_LINES = Dialog(
    "next instruction: two lines", "", ("idle:two lines\nplease lab:say now",), shows="Hello from the lab."
)
RUNNING = Dialog("running: silent", "longbash", ("y",), made=(BASH,))
FETCH = (
    Dialog("fetch: n", "fetch", ("n",), asks="/page"),
    Dialog("fetch: y", "fetch", ("y",)),
)
UNHEARD = Dialog("a command that reads: silent", "readbash", ("y",))
ONCE = (Dialog("bash: y", "bash", ("y",), made=(BASH,)), Dialog("bash: n", "bash", ("n",), unmade=(BASH,)))
