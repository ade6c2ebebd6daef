"""The dialogs of the real AI CLIs: how each is brought about, how it is answered, and what must come of it.

Plain data; `canary` walks it on the real tools.  A scene is what the mock model is told to play.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

# What a walk through a tool's dialogs consists of, and the dialogs that all tools have.  Plain data.
#
# Which tool has which dialogs is `dialogs`'; walking them is `canary`'s.

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


__all__ = ["WALKS", "Dialog", "Walk"]
_HOOKS = '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}'


def _git(home: Path, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (folder / ".git" / name).mkdir()


def _repository(home: Path, folder: Path) -> None:
    """A real one, with the seed in it."""
    me = ("-c", "user.name=lab", "-c", "user.email=lab@localhost")
    for words in (("init", "-q"), ("add", "-A"), (*me, "commit", "-q", "-m", "seed")):
        subprocess.run(("git", *words), cwd=folder, env={**os.environ, "HOME": str(home)}, check=True)


def _untrusted_hook(home: Path, folder: Path) -> None:
    (home / ".codex" / "hooks.json").write_text(_HOOKS)


_CLAUDE_PLANS = (
    Dialog("plan: n", "plan", ("n",)),
    Dialog("plan: own words", "plan", ("text:make it shorter",), hears="make it shorter"),
    Dialog("plan: y", "plan", ("y",), shows="All done."),
)
_CLAUDE_FIRST = (
    Walk("first run: y y", (Dialog("trust and key: y", "", ("y", "y")),), first_run="folder"),
    Walk("first run: y n", (Dialog("key: n", "", ("y", "n")),), first_run="folder"),
    Walk("first run: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder"),
)
CLAUDE = (
    Walk(
        "main",
        (
            *permissions(),
            *FETCH,
            *questions(review=""),
            *QUIET,
            TWO_LINES,
            RUNNING,
            UNHEARD,
            Dialog("bash: for the session, by number", "bash", ("2",), made=(BASH,)),
        ),
    ),
    Walk("plan mode", _CLAUDE_PLANS, arguments=("--permission-mode", "plan")),
    *_CLAUDE_FIRST,
    Walk(
        "screen reader",
        (*permissions(), *questions(review="", several=False), *QUIET, RUNNING),
        arguments=("--ax-screen-reader",),
        often=False,
    ),
    Walk("mute terminal", ONCE, mute=True, often=False),
)
CLAUDE_BEFORE = (
    Walk("main", (*permissions(), *FETCH, *questions(review=""), *QUIET, RUNNING)),
    Walk("plan mode", _CLAUDE_PLANS, arguments=("--permission-mode", "plan")),
    *_CLAUDE_FIRST,
)
CODEX = (
    Walk(
        "main",
        (
            *permissions(edit_reads=True),
            Dialog("network: n", "netbash", ("n",), unmade=("fetched.html",), asks="curl -s -o fetched.html"),
            Dialog("network: y", "netbash", ("y",), made=("fetched.html",)),
            *QUIET,
            TWO_LINES,
            RUNNING,
            UNHEARD,
            Dialog("bash: for ever, by number", "bash", ("2",), made=(BASH,)),
            Dialog("question: by number", "ask", ("2",), hears="SQLite", says="/plan"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("two questions", "asktwo", ("2", "1"), hears="Red"),
            Dialog("two questions: n to the second", "asktwo", ("2", "n")),
            Dialog("two questions: own words", "asktwo", ("text:a first", "text:teal"), hears="teal"),
            Dialog("plan: n", "planblock", ("n",)),
            Dialog("plan: y", "planblock", ("y",)),
        ),
        arguments=("-s", "read-only"),
    ),
    Walk("trust: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder", prepare=_git),
    Walk("trust: y", (Dialog("trust: y", "", ("y",)),), first_run="folder", prepare=_git),
    Walk("hooks: n", (Dialog("hooks review: n", "", ("n",)),), prepare=_untrusted_hook),
    Walk("hooks: all", (Dialog("hooks review: trust all, by number", "", ("2",)),), prepare=_untrusted_hook),
    Walk("hooks: review", (Dialog("hooks review: look at one, n", "", ("1", "y", "n", "n")),), prepare=_untrusted_hook),
    Walk(
        "hooks: trust",
        (Dialog("hooks review: look at one, y", "", ("1", "y", "y", "y", "n")),),
        prepare=_untrusted_hook,
        often=False,
    ),
    Walk("sign-in: key", (Dialog("sign-in: API key", "", ("3", "text:sk-lab-0000")),), first_run="virgin"),
    Walk("sign-in: n", (Dialog("sign-in: n", "", ("n",), ends=True),), first_run="virgin"),
    Walk("mute terminal", ONCE, arguments=("-s", "read-only"), mute=True, often=False),
)
GEMINI = (
    Walk(
        "main",
        (
            *permissions(many="lines hidden"),
            *FETCH,
            *questions(review="y"),
            Dialog("nested shell prompt", "readbash", ("y", "text:y"), made=("read-answer.txt",)),
            *QUIET,
            TWO_LINES,
            RUNNING,
            Dialog("enter plan mode: n", "enterplan", ("n",)),
            Dialog("bash: for the session, by number", "bash", ("2",), made=(BASH,)),
        ),
    ),
    Walk("plan mode", _CLAUDE_PLANS, arguments=("--approval-mode", "plan")),
    Walk("trust and sign-in: n", (Dialog("trust and sign-in: n", "", ("n", "n"), ends=True),), first_run="folder"),
    Walk(
        "trust: y, sign-in: key",
        (Dialog("trust: y, sign-in: API key", "", ("y", "2", "text:lab-key")),),
        first_run="virgin",
    ),
    Walk("mute terminal", ONCE, mute=True, often=False),
)
OPENCODE = (
    Walk(
        "main",
        (
            *permissions(),
            *FETCH,
            *questions(review=""),
            *QUIET,
            TWO_LINES,
            RUNNING,
            Dialog("always, with its second confirmation", "bash", ("Allow always",), made=(BASH,)),
        ),
    ),
    Walk(
        "plan mode",
        (
            Dialog("plan file: n", "plan", ("n",)),
            Dialog("plan: n", "plan", ("y", "n")),
            Dialog("plan: y", "plan", ("y", "y"), hears="approved"),
        ),
        arguments=("--agent", "plan"),
        env=(("OPENCODE_EXPERIMENTAL_PLAN_MODE", "1"),),
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
            *QUIET,
            Dialog("bash: never again", "bash", ("d",), unmade=(BASH,)),
        ),
    ),
    Walk("git: n", (Dialog("git repository: n", "", ("n",)),), first_run="folder"),
    Walk(
        "repository: n",
        (
            Dialog("ignored files: n", "", ("n",), asks=".gitignore"),
            Dialog("mentioned file: n", "mention", ("n",), asks="seed.txt"),
        ),
        first_run="folder",
        prepare=_repository,
    ),
    Walk(
        "repository: y",
        (
            Dialog("ignored files: y", "", ("y",), asks=".gitignore"),
            Dialog("mentioned file: y", "mention", ("y",), asks="seed.txt"),
        ),
        first_run="folder",
        prepare=_repository,
    ),
    Walk("git: y", (Dialog("git repository: y", "", ("y",)),), first_run="folder"),
)
QWEN = (
    Walk(
        "main",
        (
            *permissions(many="true the end"),
            *ASKED,
            *QUIET,
            TWO_LINES,
            Dialog("bash: for ever, by number", "bash", ("2",), made=(BASH,)),
        ),
    ),
)
CONTINUE = (
    Walk(
        "main",
        (
            *permissions(),
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            *QUIET,
            RUNNING,
        ),
    ),
)
KIMI = (
    Walk(
        "main",
        (
            Dialog("trust: y", "", ("y",)),
            *permissions(many="of many"),
            Dialog("bash: n, own words", "bash", ("text:use another name",), unmade=(BASH,), hears="use another name"),
            Dialog("question: by label", "ask", ("SQLite", "y"), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS, "y"), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            Dialog("two questions", "asktwo", ("2", "1", "y"), hears="Red"),
            Dialog("two questions: n to the second", "asktwo", ("2", "n")),
            Dialog("two questions: n at the last look", "asktwo", ("2", "1", "n")),
            *QUIET,
            TWO_LINES,
            RUNNING,
            Dialog("bash at once: y n", "bashboth", ("y", "n"), made=(BASH,), unmade=(SECOND,)),
            Dialog("plan: n", "plan", ("n",), says="/plan"),
        ),
        first_run="folder",
    ),
    Walk("trust: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder"),
)
QUESTIONS = (
    Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
    Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
    Dialog("question: n", "ask", ("n",)),
    Dialog("two questions", "asktwo", ("2", "1"), hears="Red"),
    Dialog("two questions: n to the second", "asktwo", ("2", "n")),
    *QUIET,
    TWO_LINES,
    RUNNING,
)
COPILOT = (
    Walk(
        "main",
        (
            *permissions(many="of many", secret="/page"),
            *QUESTIONS,
        ),
    ),
    Walk("trust: y", (Dialog("trust: y", "", ("y",)),), first_run="folder"),
    Walk("trust: n", (Dialog("trust: n", "", ("n",), ends=True),), first_run="folder"),
)
VIBE = (
    Walk(
        "main",
        (
            *permissions(many="of many"),
            Dialog("the same bash twice: y n", "bashagain", ("y", "n"), made=(BASH,)),
            *QUESTIONS,
        ),
    ),
)
GROK = (Walk("main", (*permissions(many="of many"), *QUIET, RUNNING)),)


def _third_denial(dialogs: tuple[Dialog, ...]) -> tuple[Dialog, ...]:
    """After three denials in a row Cline asks how to go on."""
    third = "bash with a secret: n"
    return tuple(replace(one, replies=("n", "n")) if one.name == third else one for one in dialogs)


CLINE = (
    Walk(
        "main",
        (
            *_third_denial(permissions()),
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question: n", "ask", ("n",)),
            *QUIET,
            TWO_LINES,
            RUNNING,
            Dialog("bash at once: y n", "bashboth", ("y", "n"), made=(BASH,), unmade=(SECOND,)),
        ),
    ),
    Walk("offer: n", (Dialog("offer: n", "", ("n",), asks="ClinePass"),), first_run="folder"),
)
GPTME = (
    Walk(
        "main",
        (
            Dialog("conversation: a new one", "", ("1",), asks="New conversation"),
            *permissions(many="of many"),
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            *QUIET,
            RUNNING,
            Dialog("bash: for ever, by letter", "bash", ("a",), made=(BASH,)),
        ),
    ),
)
GOOSE = (
    Walk(
        "main",
        (
            *permissions(edit_reads=True, many="of many"),
            *QUIET,
            RUNNING,
            Dialog("bash: for ever, by number", "bash", ("2",), made=(BASH,)),
        ),
    ),
)
HERMES = (
    Walk(
        "main",
        (
            *(one for one in permissions(many="rm -r", secret="Bearer") if one.scene not in ("write", "edit")),
            Dialog("write: silent", "write", made=(WRITTEN,)),
            Dialog("edit: silent", "edit", made=("blue",)),
            Dialog("question: by label", "ask", ("SQLite",), hears="SQLite"),
            Dialog("question: own words", "ask", (WORDS,), hears="my own words"),
            Dialog("question without choices", "askopen", (WORDS,), hears="my own words"),
            *QUIET,
            RUNNING,
            Dialog("bash at once: y n", "bashboth", ("y", "n"), made=(BASH,), unmade=(SECOND,)),
            Dialog("new conversation: n", "", ("n",), says="/new"),
            Dialog("bash: for the session, by number", "bash", ("2",), made=(BASH,)),
        ),
    ),
    Walk(
        "first start: n", (Dialog("first start: n", "", ("n",), asks="Run setup now?", ends=True),), first_run="virgin"
    ),
)
OPENHANDS = (Walk("main", (*permissions(edit_reads=True, many="rm -rf"), *QUIET, RUNNING)),)
WALKS: dict[str, tuple[Walk, ...]] = {
    "claude": CLAUDE,
    "claude-2.1.197": CLAUDE_BEFORE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "aider": AIDER,
    "qwen": QWEN,
    "cn": CONTINUE,
    "kimi": KIMI,
    "copilot": COPILOT,
    "vibe": VIBE,
    "grok": GROK,
    "cline": CLINE,
    "gptme": GPTME,
    "goose": GOOSE,
    "hermes": HERMES,
    "kilo": (OPENCODE[0],),
    "openhands": OPENHANDS,
}
