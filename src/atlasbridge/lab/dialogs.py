"""The dialogs of the real AI CLIs: how each is brought about, how it is answered, and what must come of it.

Plain data; `canary` walks it on the real tools.  A scene is what the mock model is told to play.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BASH, SECOND, WRITTEN = "made-by-bash.txt", "made-by-bash-2.txt", "written.txt"
WORDS = "text:my own words"
_HOOKS = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}'


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
    says: str = ""  # typed first, such as /plan
    ends: bool = False  # the tool must end


@dataclass(frozen=True, slots=True)
class Walk:
    """Dialogs that one run of a tool goes through, one after the other."""

    name: str
    dialogs: tuple[Dialog, ...]
    arguments: tuple[str, ...] = ()
    first_run: str = ""
    prepare: Callable[[Path, Path], None] | None = None


def _permissions(*, edit_reads: bool = False) -> tuple[Dialog, ...]:
    """Allow once makes it, refuse does not, and the second of two is asked for itself."""
    before = ("y",) if edit_reads else ()
    return (
        Dialog("bash: y", "bash", ("y",), made=(BASH,)),
        Dialog("bash: n", "bash", ("n",), unmade=(BASH,)),
        Dialog("bash: 1", "bash", ("1",), made=(BASH,)),
        Dialog("bash twice: y n", "bash2", ("y", "n"), made=(BASH,), unmade=(SECOND,)),
        Dialog("bash twice: y y", "bash2", ("y", "y"), made=(BASH, SECOND)),
        Dialog("write: y", "write", ("y",), made=(WRITTEN,)),
        Dialog("write: n", "write", ("n",), unmade=(WRITTEN,)),
        Dialog("edit: n", "edit", (*before, "n"), unmade=("blue",)),
        Dialog("edit: y", "edit", (*before, "y"), made=("blue",)),
    )


_QUIET = (
    Dialog("next instruction", "", ("idle:please lab:say now",), shows="Hello from the lab."),
    Dialog("bait: silent", "bait"),
    Dialog("thinking: silent", "slow=4"),
)
_FETCH = (Dialog("fetch: n", "fetch", ("n",)), Dialog("fetch: y", "fetch", ("y",)))


def _git(home: Path, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir()


def _untrusted_hook(home: Path, folder: Path) -> None:
    (home / ".codex" / "hooks.json").write_text(_HOOKS)


CLAUDE = (
    Walk(
        "main",
        (
            *_permissions(),
            *_FETCH,
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("two questions", "asktwo", ("2", "1", "y"), hears="Red"),
            Dialog("several answers", "askmulti", ("1,3",), hears="PostgreSQL, Redis"),
            Dialog("several answers: n", "askmulti", ("n",)),
            *_QUIET,
            Dialog("running: silent", "longbash", ("y",), made=(BASH,)),
        ),
    ),
    Walk(
        "plan mode",
        (
            Dialog("plan: n", "plan", ("n",)),
            Dialog("plan: own words", "plan", ("text:make it shorter",), hears="make it shorter"),
            Dialog("plan: y", "plan", ("y",), shows="All done."),
        ),
        arguments=("--permission-mode", "plan"),
    ),
    Walk("first run: y y", (Dialog("trust and key: y", "", ("y", "y")),), first_run="folder"),
    Walk("first run: y n", (Dialog("key: n", "", ("y", "n")),), first_run="folder"),
    Walk("first run: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder"),
)
CODEX = (
    Walk(
        "main",
        (
            *_permissions(edit_reads=True),
            Dialog("network: n", "netbash", ("n",), unmade=("fetched.html",)),
            Dialog("network: y", "netbash", ("y",), made=("fetched.html",)),
            *_QUIET,
            Dialog("question: by number", "ask", ("2",), hears="SQLite", says="/plan"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("two questions", "asktwo", ("2", "1"), hears="Red"),
            Dialog("plan: n", "planblock", ("n",)),
            Dialog("plan: y", "planblock", ("y",)),
        ),
        arguments=("-s", "read-only"),
    ),
    Walk("trust: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder", prepare=_git),
    Walk("trust: y", (Dialog("trust: y", "", ("y",)),), first_run="folder", prepare=_git),
    Walk("hooks: n", (Dialog("hooks review: n", "", ("n",)),), prepare=_untrusted_hook),
    Walk("sign-in: n", (Dialog("sign-in: n", "", ("n",), ends=True),), first_run="virgin"),
)
GEMINI = (
    Walk(
        "main",
        (
            *_permissions(),
            *_FETCH,
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("several answers", "askmulti", ("1,3",), hears="Redis"),
            Dialog("several answers: n", "askmulti", ("n",)),
            Dialog("nested shell prompt", "readbash", ("y", "text:y"), made=("read-answer.txt",)),
            *_QUIET,
        ),
    ),
    Walk("trust and sign-in: n", (Dialog("trust and sign-in: n", "", ("n", "n"), ends=True),), first_run="folder"),
)
OPENCODE = (
    Walk(
        "main",
        (
            *_permissions(),
            *_FETCH,
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("several answers", "askmulti", ("1,3",), hears="Redis"),
            Dialog("several answers: n", "askmulti", ("n",)),
            *_QUIET,
            Dialog("always, with its second confirmation", "bash", ("Allow always",), made=(BASH,)),
        ),
    ),
)
AIDER = (
    Walk(
        "main",
        (
            Dialog("bash: y", "bash", ("y",), made=(BASH,)),
            Dialog("bash: n", "bash", ("n",), unmade=(BASH,)),
            Dialog("write: y", "write", ("y",), made=(WRITTEN,)),
            Dialog("write: n", "write", ("n",), unmade=(WRITTEN,)),
            *_QUIET,
        ),
    ),
    Walk("git: n", (Dialog("git repository: n", "", ("n",)),), first_run="folder"),
)
WALKS: dict[str, tuple[Walk, ...]] = {
    "claude": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "aider": AIDER,
}
