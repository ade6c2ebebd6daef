"""Is what a person was shown what the tool then ran?  Real tools, nasty commands and edits, a real hub.

What ran is what the shell was given, written down by the shell itself; what an edit did is what the file holds.  The
commands are `mockmodel.nasty`'s, the machinery is `stage`'s.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from atlasbridge.core.escape import escape_controls
from tests.real_tools.canary import QUIET_CONFIG, START_S, USUAL_SIZE
from tests.real_tools.mockmodel.scene import ALL, Nasty
from tests.real_tools.stage import Stage, StageError

RECORDER = """printf '%s' "$BASH_EXECUTION_STRING" > '{folder}/bash'.$$
"""
SHELL = """#!/bin/sh
for word in "$@"; do
    case "$last" in -*c) printf '%s' "$word" > '{folder}/sh'.$$ ;; esac
    last=$word
done
exec {bash} "$@"
"""
ARGUMENTS = {"codex": ("-s", "read-only")}  # it asks for edits, too
_SEQUENCE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]")
AROUND = (  # what Gemini and Claude Code put around a command; the latter quotes it
    re.compile(r"shopt -u [^\n]*\n\(\n  trap '[^\n]*' EXIT\n(?P<plain>.*)\n\)\n__code=\$\?\nexit \$__code", re.DOTALL),
    re.compile(r".* && eval (?P<quoted>.*?)(?: < /dev/null)? && pwd -P >\| \S+\s*", re.DOTALL),
)


class Agreement(StrEnum):
    WHOLE = "whole"  # a complete subject, equal to the last character
    ROWS = "rows"  # the question holds every character in its order; which line breaks are the tool's is not known
    CUT = "said to be cut"
    UNSEEN = "invisible"  # the tool drew nothing, or blanks, for characters that it ran; no rule may look at it
    UNASKED = "not asked"
    UNRUN = "not run by the tool"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Truth:
    tool: str
    name: str
    verdict: Agreement
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict is not Agreement.WRONG

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(tool: str, only: str = "", size: tuple[int, int] = USUAL_SIZE) -> Iterator[Truth]:
    """Every nasty command and edit in one run of the tool, each result as soon as it is known."""
    wanted = [number for number, item in enumerate(ALL) if only in item.name]
    with TemporaryDirectory(prefix="ab") as root, _staged(tool, Path(root), size) as stage:
        try:
            stage.next_prompt(START_S, idle=True)
        except StageError as error:
            yield Truth(tool, "start", Agreement.WRONG, str(error))
            return
        for number in wanted:
            yield Truth(tool, ALL[number].name, *_judged(stage, number, Path(root) / "ran"))


def _staged(tool: str, root: Path, size: tuple[int, int]) -> Stage:
    """The tool with a shell of our own that writes down what it is given before it is an ordinary one."""
    records, shell = root / "ran", root / "bin" / "bash"
    for folder in (records, shell.parent):
        folder.mkdir()
    (root / "recorder").write_text(RECORDER.format(folder=records))
    shell.write_text(SHELL.format(folder=records, bash=shutil.which("bash")))
    shell.chmod(0o700)
    path = f"{shell.parent}:{os.environ['PATH']}"
    env = {"SHELL": str(shell), "CLAUDE_CODE_SHELL": str(shell), "PATH": path, "BASH_ENV": str(root / "recorder")}
    arguments = ARGUMENTS.get(tool, ())
    return Stage(tool, rows=size[1], cols=size[0], config=QUIET_CONFIG, env=env, arguments=arguments)


def _judged(stage: Stage, number: int, records: Path) -> tuple[Agreement, str]:
    for record in records.iterdir():
        record.unlink()
    try:
        return _ask(stage, number, records)
    except StageError as error:
        stage.type(b"\x1b")
        return Agreement.WRONG, str(error)


def _ask(stage: Stage, number: int, records: Path) -> tuple[Agreement, str]:
    asked = ALL[number]
    before, told = len(stage.named("prompt.raised")), len(stage.model.requests)
    stage.say(f"please lab:truth={number} now")

    def came() -> dict[str, Any] | None:
        """The next question; the idle box counts once the tool has told the model how it ended."""
        ended = any(scene == "truth" and results for _, scene, results, _ in stage.model.requests[told:])
        fresh = stage.named("prompt.raised")[before:]
        return next((one for one in fresh if ended or not one["constraints"].get("idle")), None)

    prompt = stage.wait(came, "a question", START_S)
    if prompt["constraints"].get("idle"):
        return Agreement.UNASKED, "\n".join(stage.model.heard[-1:])
    shown = _allow(stage, prompt)
    did = _file(stage.folder / asked.file) if asked.file else _ran(records, asked)
    return compare(asked, shown, did)


def _allow(stage: Stage, prompt: dict[str, Any]) -> dict[str, Any]:
    """Allow it once; where the tool drew it again just then, the newer drawing is what counts.  Then the idle box."""
    for _ in range(3):
        status, answer = stage.reply(prompt, "y")
        if not status:
            break
        if answer.get("reason") not in ("stale", "not_open"):
            raise StageError(f"refused: {answer.get('message')}\n{prompt['question']}")
        prompt = stage.wait(_newer(stage, prompt), "the same question again")
    stage.outcome(prompt)
    stage.wait(_idle(stage, prompt), "the idle box", START_S)
    return prompt


def _newer(stage: Stage, prompt: dict[str, Any]) -> Callable[[], dict[str, Any] | None]:
    def look() -> dict[str, Any] | None:
        found = [one for one in stage.named("prompt.raised") if not one["constraints"].get("idle")]
        return found[-1] if found and found[-1]["prompt_id"] != prompt["prompt_id"] else None

    return look


def _idle(stage: Stage, prompt: dict[str, Any]) -> Callable[[], bool]:
    def look() -> bool:
        raised = stage.named("prompt.raised")
        at = [one["prompt_id"] for one in raised].index(prompt["prompt_id"])
        later = raised[at + 1 :]
        if more := [one for one in later if not one["constraints"].get("idle")]:
            raise StageError(f"asked once more:\n{more[0]['question']}")
        return bool(later)

    return look


def _file(path: Path) -> str | None:
    return path.read_bytes().decode() if path.exists() else None


def _ran(records: Path, asked: Nasty) -> str | None:
    """What a shell was given, without what the tool puts around it; None when nothing like it ran."""
    given = [path.read_bytes().decode(errors="replace") for path in sorted(records.iterdir())]
    ran = [_unwrapped(text) for text in given]
    return min((text for text in ran if asked.text.strip() in text), key=len, default=None)


def _unwrapped(given: str) -> str:
    for pattern in AROUND:
        if match := pattern.fullmatch(given):
            said = match.groupdict()
            return said["plain"] if "plain" in said else shlex.split(said["quoted"])[0]
    return given


def compare(asked: Nasty, shown: dict[str, Any], did: str | None) -> tuple[Agreement, str]:
    subject = shown["subject"] or {}
    text, question = str(subject.get("text", "")), str(shown["question"])
    said = f"did {did!r}\nsubject {subject.get('complete')} {text!r}\nquestion {shown['whole']} {question!r}"
    if did is None:
        return Agreement.UNRUN, said
    if subject.get("complete"):
        same = _same_edit(text, did) if asked.file else text == escape_controls(did)
        return (Agreement.WHOLE, said) if same else (Agreement.WRONG, f"complete, but not the same\n{said}")
    missing = shown.get("constraints", {}).get("missing_lines", 0)
    if not shown["whole"] or missing:
        return Agreement.CUT, f"{missing or 'some'} lines missing\n{said}"
    wanted = did.split("\n") if asked.file else [did]
    have = _flat(f"{text}\n{question}")
    if "\t" not in did and all(_flat(escape_controls(line)) in have for line in wanted):
        return Agreement.ROWS, said
    drawn = all(_flat(_printing(line)) in have or _flat(_printing(_SEQUENCE.sub("", line))) in have for line in wanted)
    return (Agreement.UNSEEN, said) if drawn else (Agreement.WRONG, f"it is not what is shown\n{said}")


def _same_edit(diff: str, written: str) -> bool:
    added = [line[1:] for line in diff.split("\n") if line.startswith("+") and not line.startswith("+++ ")]
    return "\n".join(added).rstrip("\n") == escape_controls(written).rstrip("\n")


def _printing(text: str) -> str:
    """What a terminal has a cell for."""
    return "".join(char for char in text if unicodedata.category(char) not in ("Cc", "Cf"))


def _flat(text: str) -> str:
    return "".join(text.split())
