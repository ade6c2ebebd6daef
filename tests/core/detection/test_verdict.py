"""The verdict's table, walked: every row decides somewhere, every situation has a row, rows keep their promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from atlasbridge.core.detection import verdict
from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.detection.verdict import (
    EVIDENCE,
    PATIENCE,
    TABLE,
    Moment,
    Patience,
    Row,
    Situation,
    Who,
    decide_verdict,
)
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.dialect import Dialect, Mark, Rule
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import replace

WALK = 30_000
PLAIN = Dialect("plain", quiet_programs=("top",), screen_programs=("vim",))
AGENT = replace(PLAIN, rules=(Rule("box", "x", "free_text", idle=True),), marks=(Mark("esc to stop"),))
FREE, UNCLEAR = PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN
FINDINGS = (
    Finding("silent", FREE, 0.45, "", ""),
    Finding("line", FREE, 0.72, "Name:", "Name:"),
    Finding("yes-no", PromptType.TYPE_YES_NO, 0.93, "Go? [y/n]", "Go?", detached=True),
    Finding("bare-line", FREE, 0.5, "Working", "Working", detached=True),
    Finding("menu", PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "Which?\n5", "Which?", structural=True),
    Finding("list", PromptType.TYPE_MULTIPLE_CHOICE, 0.82, "web-1", "", foot=5),
    Finding("box", FREE, 0.9, "", "", constraints={"idle": True}, structural=True),
    Finding("footer", FREE, 0.95, "File:", "File:", row=30, constraints={"secret": True}),
    Finding("bare-line", FREE, 0.5, "Working", "Working"),
    Finding("whole-screen", UNCLEAR, 0.62, "?", "?"),
    Finding("drawn-field", UNCLEAR, 0.62, "?", "?"),
    Finding("drawn-screen", UNCLEAR, 0.62, "?", "?"),
    Finding("passing", UNCLEAR, 0.5, "?", "?"),
)
PROBES = tuple(
    ProbeAnswer(
        state, canonical=mode, echo=echo, timer=timer, period_s=1.0 if timer else 0.0, command=name, others=others,
        serves=others, rows=rows, runs=state is ProbeState.BUSY and timer,
        sleeps=state is ProbeState.BUSY and not timer,
    )
    for state, mode, echo, timer, name, others, rows in product(
        ProbeState, (True, False, None), (True, False), (True, False), ("", "", "top", "vim"), (True, False), (0, 20)
    )
)  # fmt: skip
MOMENTS = tuple(
    Moment(still, rest, typed, calm, attended, written)
    for still, calm, rest, typed, attended, written in product(
        (0.01, 0.1, 0.18, 0.3, 1.0, 1.7, 2.5, 11.0, 20.0, 40.0),
        (60.0, 60.0, 0.1),
        (0.0, 0.0, 0.4),
        (None, None, 0.5),
        (False, False, True),
        (0, 3),
    )
)


def situations() -> Iterator[Situation]:
    """A matrix too large to walk whole: always the same walk through all of it."""
    draw = Random(1)
    for _ in range(WALK):
        probe, own = draw.choice(PROBES), draw.random() < 0.2
        looks = (*draw.choice(((), (ProbeState.BUSY,), (probe.state,), (probe.state,))), probe.state)
        found, moment, dialect = draw.choice(FINDINGS), draw.choice(MOMENTS), draw.choice((PLAIN, PLAIN, AGENT))
        structured, works = draw.choice(("", "", "permission")), not own and draw.random() < 0.1
        yield Situation(found, probe, moment, dialect, Patience(), structured, own, works, looks)


def deciding(case: Situation) -> Row:
    case = replace(case, probe=verdict.of_its_own(case.probe)) if case.own_word else case
    return next(row for row in TABLE if verdict.fits(row, case))


def test_every_situation_has_a_row_and_every_row_decides_somewhere() -> None:
    assert {deciding(case) for case in situations()} == set(TABLE)


@pytest.mark.parametrize("who", list(Who), ids=lambda who: who.value)
def test_the_last_row_of_each_is_about_anything(who: Who) -> None:
    last = [row for row in TABLE if who in row.who][-1]
    assert last.seen == "anything"
    assert not last.until_s and not last.after_s


def test_rows_name_evidence_and_patience_that_exist_and_none_is_left_over() -> None:
    assert {row.seen for row in TABLE} == set(EVIDENCE)
    assert {name for row in TABLE for name in (row.until_s, row.after_s) if name} == set(PATIENCE)


def test_a_busy_program_is_asked_about_nothing_unless_its_keys_are_read() -> None:
    for case in situations():
        if case.who is Who.BUSY and decide_verdict(case)[0]:
            unseen = case.probe.sleeps and (case.moment.calm_s >= 10.0 or case.found.score >= 0.8)
            assert case.found.score >= 0.9 or unseen or case.found.row >= case.probe.rows > 0
            assert (
                not case.found.idle
                or max(case.moment.settled_s, case.moment.calm_s) >= 10.0
                or case.found.row >= case.probe.rows > 0
            )


@pytest.mark.parametrize(
    ("dialect", "runs", "still_s", "works", "raises"),
    [
        (AGENT, True, 11.0, False, True),
        (AGENT, True, 9.0, False, False),
        (AGENT, False, 40.0, False, False),  # a request, or a child at work
        (AGENT, True, 40.0, True, False),
        (PLAIN, True, 40.0, False, False),  # it would not say that it works
    ],
)
def test_an_input_box_that_stands_still_is_raised_although_its_program_runs(
    dialect: Dialect, runs: bool, still_s: float, works: bool, raises: bool
) -> None:
    box = next(found for found in FINDINGS if found.constraints.get("idle"))
    probe = ProbeAnswer(ProbeState.BUSY, canonical=False, echo=False, runs=runs)
    case = Situation(box, probe, Moment(still_s, 0.0, None), dialect, Patience(), works=works)
    assert decide_verdict(case)[0] is raises


def test_a_tool_that_says_it_works_is_never_interrupted() -> None:
    assert not any(decide_verdict(case)[0] for case in situations() if case.works)


def is_raised_in_time(case: Situation, still_s: float) -> bool:
    return decide_verdict(replace(case, moment=Moment(still_s, 0.0, None, still_s)))[0]


def test_there_is_no_state_in_which_a_silent_program_that_does_not_work_is_never_raised() -> None:
    """A minute at the latest; ten seconds of a program that reads keys, unless it is known to show or to serve, or its
    own timer has not fired yet."""
    for found, probe, dialect in product(FINDINGS, PROBES, (PLAIN, AGENT)):
        if probe.state is ProbeState.BUSY:
            continue
        case = Situation(found, probe, MOMENTS[0], dialect, Patience(), looks=(probe.state, probe.state))
        assert is_raised_in_time(case, 61.0), (found, probe)
        shows = probe.command == "top" or probe.serves or found.rule == "passing"
        if probe.canonical is False and probe.state is ProbeState.POLLING and not shows:
            assert is_raised_in_time(case, 10.1), (found, probe)


def test_a_program_that_sleeps_between_two_glances_at_its_keys_is_raised_after_ten_seconds() -> None:
    probe = ProbeAnswer(ProbeState.BUSY, canonical=False, echo=False, sleeps=True)
    for found in (one for one in FINDINGS if one.rule != "passing"):
        case = Situation(found, probe, MOMENTS[0], PLAIN, Patience(), looks=(probe.state, probe.state))
        assert is_raised_in_time(case, 10.1), found
        assert not is_raised_in_time(replace(case, probe=replace(probe, sleeps=False)), 60.0) or found.score >= 0.9
        assert not is_raised_in_time(replace(case, probe=replace(probe, canonical=True, echo=True)), 60.0)


def test_every_row_that_says_no_has_a_limit_or_needs_something_that_moves_or_works() -> None:
    unlimited = {row.seen for row in TABLE if not row.raises and not row.until_s}
    ends_by_itself = {
        "the tool says that it works",  # and changes
        "this is the first look since it was busy",
        "nothing that is recognised, while someone types",
        "a line while something changes, or a dialog with a number that may count down",
        "something that has changed meanwhile",
        "a list without a question, while something changes",
    }
    assert unlimited - ends_by_itself == {"anything"}  # busy, or below the rows that raise after a time


def test_patience_only_makes_a_verdict_later_never_takes_it_back() -> None:
    """What is raised after a while would be raised later as well, if nothing moves."""
    calm = (Moment(still, 0.0, None) for still in (0.01, 0.1, 0.3, 0.7, 1.7, 2.5, 11.0, 20.0, 40.0))
    steps = list(calm)
    for found, probe, dialect in product(FINDINGS, PROBES[::7], (PLAIN, AGENT)):
        looks = (probe.state, probe.state)
        case = Situation(found, probe, steps[0], dialect, Patience(), looks=looks)
        said = [decide_verdict(replace(case, moment=moment))[0] for moment in steps]
        assert said == sorted(said), (found, probe, said)


def test_the_reason_tells_how_long_it_waits() -> None:
    case = Situation(FINDINGS[4], ProbeAnswer(ProbeState.POLLING), Moment(0.08, 0.0, None), PLAIN, Patience())
    case = replace(case, looks=(ProbeState.POLLING, ProbeState.POLLING))
    assert decide_verdict(case) == (False, "an event loop that has only come to rest: 0.08 s, 0.15 s are needed")
