"""How often is the detector right?  The page `docs/detection.md`, from recordings with their truth and from the zoo.

A corpus is folders `TOOL/VERSION/CASE` with `session.cast` and `expected.json`; the zoo's figures are read from what
its judge wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.events import RaisePrompt, WithdrawPrompt
from atlasbridge.core.detection.verdict import PATIENCE, TABLE, Patience, Row, Situation, Who
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import replace
from atlasbridge.lab.replay import Recording, read_recording, replay
from atlasbridge.lab.scenario import ELSEWHERE, REGISTER

# The part of docs/detection.md that says when a person is asked: the rows of the verdict's table, as they are decided.
#
# `python -m tests.figures verdict` puts it into the page; a test compares them.

BEGIN_LOOKS, END_LOOKS = "<!-- looks: python -m tests.figures looks -->", "<!-- /looks -->"
BEGIN, END = "<!-- verdict: python -m tests.figures verdict -->", "<!-- /verdict -->"
_HEAD = """\
## When a person is asked

One table decides: the first row that matches applies. *Program* is what the operating system says about the program
that draws; "own statement" means that the tool itself says that it asks, whatever its process does. *Seen* is what
the recogniser found. `< 0.5 s`: the row applies only while the screen has been unchanged for less; `≥ 0.5 s`: only
after that.

| | program | seen | unchanged for | asked | why |
|---|---|---|---|---|---|"""


def render_verdict() -> str:
    rows = [_row(number, row) for number, row in enumerate(TABLE, 1)]
    return "\n".join([BEGIN, _HEAD, *rows, END])


def put_into(page: str) -> str:
    """The page with the section made again."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, behind = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"the page has no section between {BEGIN} and {END}")
    return before + render_verdict() + behind


def _row(number: int, row: Row) -> str:
    who = ", ".join(one.value for one in Who if one in row.who)
    return f"| {number} | {who} | {row.seen} | {_still(row)} | {'yes' if row.raises else 'no'} | {row.why} |"


def _still(row: Row) -> str:
    sign, name = ("<", row.until_s) if row.until_s else ("≥", row.after_s)
    return f"{sign} {_seconds(name)}" if name else "any"


def _seconds(name: str) -> str:
    """As it is set at first, for a line discipline and for an event loop with a timer of five seconds."""
    from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
    from atlasbridge.core.detection.verdict import Moment

    found, moment = Finding("", PromptType.TYPE_UNKNOWN, 0.5, "", ""), Moment(0.0, 0.0, None)
    probes = (ProbeAnswer(ProbeState.READING, canonical=True), ProbeAnswer(ProbeState.POLLING, period_s=5.0))
    values = [PATIENCE[name](Situation(found, probe, moment, Dialect(""), Patience())) for probe in probes]
    if name == "timer fired":
        return f"its period + {values[0]:g} s"
    return " or ".join(f"{value:g} s" for value in dict.fromkeys(values))


GRACE_S = 2.3  # there is no live process to probe in a recording: the watchdog's two seconds and a little
Span = tuple[float, float, Prompt]


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of a recording: what was true, and what the detector made of it."""

    tool: str
    version: str
    case: str
    kind: str  # a prompt type, "idle", or "none"
    wrong: str = ""  # "" : right

    @property
    def right(self) -> bool:
        return not self.wrong


def corpus_cases(corpus: Path) -> list[Path]:
    return sorted(path.parent for path in corpus.glob("*/*/*/expected.json"))


def judge_case(case: Path, stranger: bool = False) -> Iterator[Moment]:
    """`stranger`: as if nobody had ever seen the tool: without its words, its rules and its menus."""
    expected = json.loads((case / "expected.json").read_text("utf-8"))
    opened = spans(read_recording(case / "session.cast"), expected["tool"], stranger)
    for moment in expected["moments"]:
        if stranger and "as_stranger" in moment:  # no key that everybody knows leads there: a person must look
            moment = {**moment, "type": moment["as_stranger"], "choices": []}
        wrong = judge_moment(opened, moment)
        yield Moment(expected["tool"], expected["version"], case.name, moment["type"], wrong)


def spans(recording: Recording, tool: str, stranger: bool = False) -> list[Span]:
    """Every prompt with the seconds from which and to which it was open."""
    out: list[Span] = []
    dialect = replace(load_dialect("generic"), name=tool) if stranger else load_dialect(tool)
    for at, command in replay(recording, dialect):
        if isinstance(command, RaisePrompt):
            out.append((at, float("inf"), command.prompt))
        elif isinstance(command, WithdrawPrompt):
            out[-1] = (out[-1][0], at, out[-1][2])
    return out


def judge_moment(opened: Sequence[Span], moment: dict[str, Any]) -> str:
    """What is wrong with it, in words; "" when it is right."""
    start, end = moment["from_s"], moment["to_s"]
    if moment["type"] == "none":
        during = [prompt.excerpt for since, until, prompt in opened if since < end and until > start + GRACE_S]
        return f"false alarm: {during[0]!r}" if during else ""
    standing = [prompt for since, until, prompt in opened if since <= min(start + GRACE_S, end) and until >= end]
    if not standing:
        return "missed"
    prompt = standing[-1]
    rests = prompt.idle and not prompt.constraints.get("commands")
    kind = "idle" if rests else prompt.type.value
    if kind != moment["type"]:
        return f"{kind} instead of {moment['type']}"
    labels = [choice.label for choice in prompt.choices]
    absent = [wanted for wanted in moment["choices"] if not any(wanted in label for label in labels)]
    return f"choices missing: {absent}" if absent else ""


def render_page(
    moments: Sequence[Moment], strangers: Sequence[Moment], zoo: Sequence[dict[str, Any]], mutants: str = ""
) -> str:
    parts = [_ACCURACY_HEAD, "## Recordings of AI tools\n", _tools(moments)]
    parts += ["\n## The same tools without their own rules\n", _STRANGERS, _tools(strangers), "", _mistakes(strangers)]
    if mutants:
        parts += ["\n## The same dialogs, changed\n", _MUTANTS, mutants]
    if zoo:
        parts += ["\n## Real programs, live\n", _ZOO, _groups(zoo)]
    looks = f"\n{BEGIN_LOOKS}\n{END_LOOKS}"  # `python -m tests.figures looks` fills it
    return "\n".join([*parts, f"\n{render_verdict()}", looks, _LIMITS, _MATRIX, gating_matrix()]) + "\n" + _TAIL


def gating_matrix() -> str:
    """Which scenario must pass before which release, from the register itself."""
    from atlasbridge.lab import scenarios  # noqa: F401 - importing them registers them

    rows = ["| scenario | macOS | Linux | Slack | Windows |", "|---|---|---|---|---|"]
    for qa_id in sorted({*REGISTER, *ELSEWHERE}):
        other = ELSEWHERE.get(qa_id)
        name = other.name if other else REGISTER[qa_id].name
        slack, terminal = bool(other and "Slack" in other.name), other is None
        everywhere = terminal and REGISTER[qa_id].platform[0] != "windows"
        gates = (everywhere, everywhere, slack, terminal)
        rows.append(f"| {qa_id} {name} | " + " | ".join("yes" if gate else "-" for gate in gates) + " |")
    return "\n".join(rows)


def _tools(moments: Sequence[Moment]) -> str:
    rows = ["| tool | versions | waiting moments | right | quiet moments | right |", "|---|---|---|---|---|---|"]
    for tool in sorted({moment.tool for moment in moments}):
        own = [moment for moment in moments if moment.tool == tool]
        waiting = [moment for moment in own if moment.kind != "none"]
        quiet = [moment for moment in own if moment.kind == "none"]
        versions = ", ".join(sorted({moment.version for moment in own}))
        rows.append(f"| {tool} | {versions} | {_share(waiting)} | {_share(quiet)} |")
    return "\n".join(rows)


def _mistakes(moments: Sequence[Moment]) -> str:
    return "\n".join(f"- {one.tool}, {one.case}: {one.wrong}" for one in moments if not one.right)


def _share(moments: Sequence[Moment]) -> str:
    return f"{len(moments)} | {sum(moment.right for moment in moments)}" if moments else "- | -"


def _groups(zoo: Sequence[dict[str, Any]]) -> str:
    rows = ["| family | waiting | right | quiet | right |", "|---|---|---|---|---|"]
    scored = [case for case in zoo if not case.get("arguable")]
    for group in sorted({case["group"] for case in scored}):
        own = [case for case in scored if case["group"] == group]
        rows.append(f"| {group} | {_count(own, True)} | {_count(own, False)} |")
    rows.append(f"| **all** | {_count(scored, True)} | {_count(scored, False)} |")
    late = [case["latency_s"] for case in scored if "latency_s" in case]
    if late:
        rows.append(f"\nFrom rest to `prompt.raised`, hub and event stream included: median {median(late):.2f} s.")
        rows.append(
            "This includes delays by other work on the machine; [benchmarks.md](benchmarks.md) measures it alone."
        )
    return "\n".join(rows)


def _count(cases: Sequence[dict[str, Any]], wait: bool) -> str:
    own = [case for case in cases if case["wait"] is wait]
    return f"{len(own)} | {sum(bool(case['right']) for case in own)}" if own else "- | -"


_MUTANTS = """\
Every recorded list is changed in one respect and read again, with the tool's own rules and without them. It
must still be read, or be raised as `unknown`: never missed, and never taken for something else. Words with which the
tool says that it works, in every row of a dialog and above it, hide none of them.
"""

_ACCURACY_HEAD = """# How well prompts are detected

This page is generated; do not edit it. To generate it again from the recordings in this repository:

    python -m tests.figures accuracy --zoo JUDGE.json

A waiting moment counts as right when the prompt is raised in time with the right type and all choices, and stays open
as long as the tool waits. A quiet moment counts as right when no prompt is open: the tool thinks, computes, or prints
text that looks like a prompt.

To see why a prompt was or was not raised, use `atlasbridge lab explain` with a recording (`.cast`), the id of a
prompt, or the id or name of a running session. [What each rule contributes](weights.md) has its own page.
"""
_STRANGERS = """\
The same recordings, judged without the tool's own words, rules and menus: this is what a tool without a dialect gets. A
question that only a key of that tool can answer is right when it is raised as `unknown`: a person must look.
"""
_ZOO = """\
Programs of other people, run under `atlasbridge run` and answered with `atlasbridge reply`. Right means that
the prompt was raised with the right type, question and choices, and that the answer had its effect.
"""
_LIMITS = """
## Known limits

- Inside tmux and screen the system does not tell which of several panes has the keyboard. While one of them reads, a
  line that asks is raised. Lists of tmux and screen themselves are not seen while the program in the pane works.
- A question that continues by itself after some seconds is raised like any other, and withdrawn when it continues. If
  it shows a countdown, it is not raised.
- If a program also listens to the keyboard and changes its last line only every few seconds, a status line that ends
  like a question is taken for one.
- After a key at the terminal, a live display (top, htop) can ask something. It is raised only in a line at the foot.
- A list that scrolls offers the visible rows and says so (`constraints.scrolls`).
- A form is answered in words (`Label: value; Label: value`) if its fields visibly take the keys and a button sends it.
  Other forms, trees of full-screen programs, lists to put in order and dates are raised as `unknown`.
- A grid of words is raised as `unknown`. So is a list without a pointer that has room for marks before its words,
  because it does not show whether Enter takes the highlighted row or sends the marked ones.
- If a program keeps an answer in its line without taking it, the sender is told after 3 s, and the prompt is raised
  again.
- A full screen that says nothing, of a program with a timer, is raised after 10 s; after 2 s if it shows a field.
- A program that never waits for the terminal, only looks at it now and then, and draws a blinking caret is missed.
- While someone types commands at the terminal, the prompt for the next command is raised after 0.6 s without change.
  Every other prompt is raised as soon as it is recognised.

## Streams made to confuse

`python -m tests.torture fuzz_streams` plays a million short and long streams (broken sequences, half drawn boxes,
resizes, keys, every dialect, every answer of the probe) to the detector. It must raise no exception, give no excerpt
over 200 characters, need at most two seconds for a stream, and keep no memory. `--first N --streams M` plays a part;
a failure names the number of its stream. `SCREEN_FUZZ_STREAMS` and `ATLASBRIDGE_FUZZ` enlarge the same attacks in
`make test`.
"""
_MATRIX = """
## Scenarios that gate a release

A release for a platform is tagged only when its scenarios pass there (`pytest tests/prompt_lab`, and for Slack the
suite that `atlasbridge lab list` names). Each terminal scenario also runs as on a system that cannot tell who reads
(`lab run --blind`), and on a simulated console. CI runs all of them on a real Windows console.
"""
_TAIL = """
## Report a mistake

- AtlasBridge raised something that is no prompt: `atlasbridge lab report PROMPT_ID --not-a-prompt`.
- AtlasBridge missed a prompt: `atlasbridge lab report SESSION --missed --type yes_no`.

Both write a scenario that fails until the detector is fixed, and print the command that runs it.
"""
