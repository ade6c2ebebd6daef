"""Walks a real AI CLI through its dialogs against the mock model and reports which are still recognised and answered.

Tools change under us: run it after an update.  The dialogs are data in `dialogs`, the machinery is `stage`'s.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from atlasbridge.adapters.installed import verified_versions
from atlasbridge.core.clock import SystemClock
from tests.real_tools.dialogs import WALKS, Dialog, Walk
from tests.real_tools.mockmodel.scene import LEAK
from tests.real_tools.realtool import find_tool, tool_path
from tests.real_tools.stage import ENDS, Stage, StageError

START_S = 300.0
DIALOG_S = 120.0  # for a dialog, or the end of one, once the tool has started
VERSION_S = 300.0  # some look for their services first
SETTLE_S = 2.0  # a tool draws itself again in a window of another size
REDRAW_S = 5.0
MOST_DRAWINGS = 3  # of one dialog: on a busy machine a person may answer each of them too late
USUAL_SIZE = (120, 40)
FILES = ("made-by-bash.txt", "made-by-bash-2.txt", "written.txt", "fetched.html", "read-answer.txt")
_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Result:
    tool: str
    walk: str
    dialog: str
    ok: bool
    detail: str = ""
    seconds: float = 0.0
    again: tuple[str, ...] = ()  # why a reply was refused as stale and given a second time
    size: str = ""
    kind: str = ""  # "answered", "refused" or "silent": what the dialog shows of us when it is ok
    raised: bool = False  # every prompt that it should have was there; of a silent one: none was
    ways: tuple[str, ...] = ()  # how each answer came to the tool: "keys", or its own "hook"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def version_of(tool: str) -> str:
    """What the installed tool says; "" when it is not there or says nothing."""
    binary = find_tool(tool)
    if binary is None:
        return ""
    environ = {**os.environ, "PATH": tool_path(binary)}
    command = (str(binary), "--version")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=VERSION_S, env=environ)
    except subprocess.TimeoutExpired:
        return ""
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if found else ""


def canary(tool: str, only: str = "", size: tuple[int, int] = USUAL_SIZE) -> Iterator[Result]:
    """Every dialog of a tool, each result as soon as it is known; `only` takes the walks whose name contains it."""
    for walk in WALKS[tool]:
        if only in walk.name:
            yield from walk_through(tool, walk, size)


def walk_through(tool: str, walk: Walk, size: tuple[int, int] = USUAL_SIZE) -> Iterator[Result]:
    """`size` is in columns and rows, as people write it."""
    clock = SystemClock()
    with Stage(
        tool,
        rows=size[1],
        cols=size[0],
        arguments=walk.arguments,
        first_run=walk.first_run,
        prepare=walk.prepare,
        env=dict(walk.env),
        mute=walk.mute,
        config=QUIET_CONFIG,
    ) as stage:
        if not walk.first_run and walk.dialogs[0].scene:
            try:
                stage.next_prompt(START_S, idle=True)
            except StageError as error:
                yield Result(tool, walk.name, "start", False, str(error), size=shown_size(size))
                return
        for dialog in walk.dialogs:
            began = clock.now()
            again: list[str] = []
            seen: list[str] = []
            if (stage.screen.cols, stage.screen.rows) != size:
                stage.resize(size[1], size[0])
                stage.pass_time(SETTLE_S)
            wrong = _try(stage, dialog, again, seen)
            took_s = round(clock.now() - began, 1)
            raised = len(seen) == len(dialog.replies) and not (wrong and dialog.kind == "silent")
            ways = tuple(e.get("way", "keys") for e in stage.named("prompt.injected") if e["prompt_id"] in seen)
            yield Result(
                tool,
                walk.name,
                dialog.name,
                not wrong,
                wrong,
                took_s,
                tuple(again),
                shown_size(size),
                dialog.kind,
                raised,
                ways,
            )
            if wrong and not _recover(stage, size):
                return


QUIET_CONFIG = "[channels.web]\nenabled = false\n"


def shown_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def _try(stage: Stage, dialog: Dialog, again: list[str], seen: list[str]) -> str:
    """What went wrong; "" when nothing did.  `again` gets why a reply had to be given twice, `seen` what was asked."""
    try:
        _prepare(stage)
        if dialog.says:
            stage.say(dialog.says)
            stage.pass_time(1.5)
        if dialog.scene:
            stage.say(f"please lab:{dialog.scene} now")
        for number, reply in enumerate(dialog.replies):
            _answer(stage, reply, of_prompt(dialog, number), again, seen)
        if dialog.ends:
            stage.wait(lambda: stage.named("session.ended"), "the end of the tool")
            return ""
        _await_idle(stage)
        return _effect(stage, dialog)
    except StageError as error:
        return str(error)


def of_prompt(dialog: Dialog, number: int) -> Dialog:
    """What is looked for in its prompts, one by one: all of what is asked in the last one, the rest in the first."""
    lines = dialog.lines if number == len(dialog.replies) - 1 else ()
    return Dialog("", "", lines=lines) if number else replace(dialog, lines=lines)


def _answer(stage: Stage, reply: str, dialog: Dialog, again: list[str], seen: list[str]) -> None:
    """`dialog` says what the prompt must show, and what happens to the window meanwhile."""
    if reply.startswith("idle:"):
        _instruct(stage, reply.removeprefix("idle:"))
        seen.append("")
        return
    prompt = _asking(stage, dialog)
    if dialog.resize != (0, 0):
        prompt = _resized(stage, dialog, prompt)
    _look_at(stage, prompt, dialog)
    seen.append(prompt["prompt_id"])
    text = reply.removeprefix("text:")
    words = ("--text",) if text != reply else ()
    status, answer = stage.reply(prompt, text, *words)
    for _ in range(MOST_DRAWINGS):
        if answer.get("reason") not in ("stale", "not_open"):
            break
        again.append(str(answer.get("message")))  # drawn again just then: nothing was typed, and it is asked again
        prompt = _newest(stage)
        seen[-1] = prompt["prompt_id"]
        _look_at(stage, prompt, dialog)
        status, answer = stage.reply(prompt, text, *words)
    if status:
        raise StageError(f"the reply {reply!r} was refused: {answer.get('message')}\n{prompt['excerpt']}")
    outcome = stage.outcome(prompt)
    menu = prompt["type"] == "multiple_choice"  # elsewhere `y` and `n` are the answer itself
    if menu and reply == "y" and _chosen(stage, prompt).get("always"):
        raise StageError(f"`y` chose what grants for ever:\n{prompt['excerpt']}")
    if menu and reply == "n" and not _chosen(stage, prompt).get("refuses"):
        raise StageError(f"`n` chose what does not refuse:\n{prompt['excerpt']}")
    if outcome != "resolved":
        why = f"{outcome} ({_reason(stage, prompt)})"
        raise StageError(f"the prompt ended as {why} after {reply!r}:\n{prompt['excerpt']}\n{stage.text()}")


def _look_at(stage: Stage, prompt: Mapping[str, Any], dialog: Dialog) -> None:
    """What is wrong with what a person is shown."""
    if prompt["type"] == "unknown":
        raise StageError(f"raised as unknown, for a person to look at; the screen shows:\n{stage.text()}")
    missing = hidden_lines(prompt, dialog.lines)
    if missing:
        raise StageError(f"said to be complete, but {missing[-1]!r} is not shown:\n{prompt['question']}")
    if LEAK[-16:] in json.dumps(prompt):
        raise StageError(f"a secret is on its way:\n{prompt['excerpt']}")


def _asking(stage: Stage, dialog: Dialog) -> dict[str, Any]:
    """The prompt that shows what it should.  Some tools draw a dialog before they know all of it: that prompt is
    withdrawn, and it is asked again."""
    prompt = stage.next_prompt(_patience_s(stage))
    asks = dialog.asks.replace("{folder}", str(stage.folder))
    while asks not in prompt["excerpt"]:
        try:
            prompt = stage.next_prompt(REDRAW_S)
        except StageError:
            raise StageError(f"{asks!r} is not in the excerpt:\n{prompt['excerpt']}") from None
    return prompt


def _newest(stage: Stage) -> dict[str, Any]:
    """The next prompt, or one that has taken its place already."""
    prompt = stage.next_prompt(_patience_s(stage))
    while (newer := stage.open_question()) and newer["prompt_id"] != prompt["prompt_id"]:
        prompt = stage.next_prompt(REDRAW_S)
    return prompt


def _patience_s(stage: Stage) -> float:
    return DIALOG_S if stage.named("prompt.raised") else START_S


def _reason(stage: Stage, prompt: Mapping[str, Any]) -> str:
    """Why a prompt did not end as it should."""
    ended = [event for name in ENDS for event in stage.named(name) if event["prompt_id"] == prompt["prompt_id"]]
    return str(ended[0].get("reason") or "no reason given") if ended else "not ended"


def _resized(stage: Stage, dialog: Dialog, before: dict[str, Any]) -> dict[str, Any]:
    """The prompt that is open once the tool has drawn itself again in a window of another size; those that were raised
    until then are not asked any more."""
    columns, rows = dialog.resize
    stage.resize(max(8, stage.screen.rows + rows), max(20, stage.screen.cols + columns))
    stage.pass_time(SETTLE_S)
    found: dict[str, Any] = stage.wait(stage.open_question, "the prompt in the new window")
    while before["prompt_id"] != found["prompt_id"]:
        before = stage.next_prompt(REDRAW_S)
    return found


def hidden_lines(prompt: Mapping[str, Any], lines: tuple[str, ...]) -> list[str]:
    """Those that are not shown although nothing says so.  How a tool breaks its rows does not count."""
    subject = prompt.get("subject") or {}
    told = str(subject.get("text")) if subject.get("complete") else f"{prompt['question']}\n{subject.get('text')}"
    shown = "".join(told.split())
    return [line for line in lines if prompt["whole"] and "".join(line.split()) not in shown]


def _chosen(stage: Stage, prompt: Mapping[str, Any]) -> dict[str, Any]:
    """The choice that the accepted reply meant."""
    values = [e["value"] for e in stage.named("reply.received") if e["prompt_id"] == prompt["prompt_id"]]
    found = [choice for choice in prompt["choices"] if choice["value"] == values[0]]
    return dict(found[0]) if found else {}


def _instruct(stage: Stage, text: str) -> None:
    """Answer the input box itself, remotely."""
    status, answer = stage.reply(stage.idle_prompt, text)
    if status:
        raise StageError(f"the instruction was refused: {answer.get('message')}")


def _await_idle(stage: Stage) -> None:
    """The input box, and nothing else asked before it."""
    asked = len(_questions(stage))
    stage.next_prompt(_patience_s(stage), idle=True)
    more = _questions(stage)[asked:]
    if more:
        raise StageError(f"asked although nothing should be: {more[0]['excerpt']}")


def _questions(stage: Stage) -> list[dict[str, Any]]:
    return [event for event in stage.named("prompt.raised") if not event["constraints"].get("idle")]


def _prepare(stage: Stage) -> None:
    for name in FILES:
        (stage.folder / name).unlink(missing_ok=True)
    (stage.folder / "seed.txt").write_text("colour = red\n")
    stage.model.heard.clear()


def _effect(stage: Stage, dialog: Dialog) -> str:
    there = {path.name for path in stage.folder.iterdir()}
    if "blue" in (stage.folder / "seed.txt").read_text():
        there.add("blue")
    wrong = [f"{name} was not made" for name in dialog.made if name not in there]
    wrong += [f"{name} was made" for name in dialog.unmade if name in there]
    if dialog.shows and dialog.shows not in stage.text():
        wrong.append(f"{dialog.shows!r} is not on the screen:\n{stage.text()}")
    if dialog.hears and not any(dialog.hears in text for text in stage.model.heard):
        wrong.append(f"{dialog.hears!r} did not reach the model: {stage.model.heard[-2:]}")
    return "; ".join(wrong)


def _recover(stage: Stage, size: tuple[int, int]) -> bool:
    """Leave whatever is open, so that the next dialog can be walked."""
    if stage.named("session.ended"):
        return False
    if (stage.screen.cols, stage.screen.rows) != size:
        stage.resize(size[1], size[0])
        stage.pass_time(SETTLE_S)
    if stage.open_idle():
        return True
    asked = stage.open_question()
    if asked is None or stage.reply(asked, "n")[0]:
        stage.type(b"\x1b")
    try:
        stage.next_prompt(10.0, idle=True)
    except StageError:
        return False
    return True


# A draft of the change that a tool's dialect needs for a version that was never walked, made from a walk through it.
#
# Only a draft: which key answers a dialog that has changed is for a person to find out, with the screen beside it.

_SCREEN_ROWS = 30


def draft_for(tool: str, version: str, results: Sequence[Result]) -> str:
    """Beside the versions that its adapter knows."""
    return draft_change(tool, version, verified_versions(tool.partition("-")[0]), results)


def draft_change(tool: str, version: str, verified: Sequence[str], results: Sequence[Result]) -> str:
    """TOML with comments: what is new in this version as far as the walk could tell."""
    failed = [result for result in results if not result.ok]
    said = "the version that was walked before" if len(verified) == 1 else "the versions that were walked before"
    lines = [f"# {tool} {version}, beside {said}: {', '.join(verified) or 'none'}."]
    if not results:
        return "\n".join([*lines, "# Nothing was walked: the tool did not start.", ""])
    good = len(results) - len(failed)
    lines.append(f"# {good} of {len(results)} dialogs were recognised and answered as before.")
    if not failed:
        versions = ", ".join(f'"{known}"' for known in (*verified, version))
        return "\n".join(
            [
                *lines,
                "# Nothing has changed that AtlasBridge goes by: the version can be added.",
                "",
                f"versions = [{versions}]",
                "",
            ]
        )
    for result in failed:
        lines += ["", *_changed(tool, result)]
    return "\n".join([*lines, ""])


def _changed(tool: str, result: Result) -> list[str]:
    """A dialog that is no longer recognised or answered: what was seen of it, and an entry to begin with."""
    what, _, screen = result.detail.partition("\n")
    rows = [f"#   {row}".rstrip() for row in screen.splitlines()[-_SCREEN_ROWS:]]
    name = "-".join(word for word in "".join(c if c.isalnum() else " " for c in result.dialog).split())
    entry = ("[[menu]]", f'id = "{tool}-{name}"', "needs = ''  # words that stand in this dialog and nowhere else")
    return [
        f"# {result.dialog}: {what}",
        *rows,
        *(f"# {line}" for line in entry),
        '# choose = "digit"  # or "arrows", "hotkey"',
    ]
