"""Whatever a program drew, said and did before: when it falls silent and polls its terminal in raw mode, a person is
asked within ten seconds.  The whole detector is driven, in simulated time."""

from __future__ import annotations

import re
from random import Random

import pytest
from tests.support.playbook import BUSY, POLLING, RAW, TICKING, Keys, Playbook
from tests.support.tier import times

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.core.detection.events import (
    Event,
    ProbeAnswer,
    ProbeState,
    Resized,
    StructuredEventReceived,
    WakeupDue,
)
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.values import replace

SIGNS = re.compile(r"\\[a-zA-Z]|[\\^$()\[\]?*+|{}]")  # of a pattern: what remains are its words
LIMIT_S = 10.5  # ten seconds, and the two looks that follow
IDLE_LIMIT_S = 30.5
ROWS, COLS = 24, 80
SPINNERS = "⠋⠙⠹✻✢·●○◐"
WORK = (
    "Thinking… ({} to interrupt)",
    "Working (12s • esc to interrupt)",
    "esc to cancel",
    "ctrl+c to stop",
    "Running…",
)
TITLES = ("✳ shop", "⠂ Working", "Action Required", "◇ Ready", "✋ Action Required", "✦  Working… (shop)", "")
STATES = ("working", "blocked", "idle", "done", "!!!")
DIALOGS = (
    "Allow this?\n❯ Yes\n  No\n", "Allow this command?\n  1. Yes\n❯ 2. No, stop (esc)\n", "Overwrite? [y/N] ", "Name: ",
    "> ", "╭────────────╮\n│ > Try it   │\n╰────────────╯\n", "─" * COLS + "\n❯ \n" + "─" * COLS + "\n",
    "⟡ approve\n⟡ reject\n", "$ make\nok\n", "Which?\n◻ a\n◼ b\n", "(a) Approve  (r) Reject", "|- node\n|- leaf\n",
    "100% done\n", "\x1b[7m Yes \x1b[m  No",
)  # fmt: skip
DRAWN = (
    "\x1b[2J\x1b[H",
    "\x1b[?1049h",
    "\x1b[?1049l",
    "\x1b[?25l",
    "\x1b[?25h",
    "\x1b[{}H",
    "\x1b[{};1H\x1b[K",
    "\r\n",
    "\x07",
)
HOOKS = ("permission", "question", "idle", "working", "done")
OVER = [POLLING, TICKING, replace(TICKING, period_s=1.0), replace(POLLING, others=True)]
DURING = [*OVER, BUSY, RAW, ProbeAnswer(ProbeState.BUSY, canonical=False, echo=False, sleeps=True)]


def some_output(draw: Random, dialect: Dialect) -> str:
    own = [SIGNS.sub("", mark.pattern) for mark in dialect.marks]
    row = draw.randrange(1, ROWS)
    return draw.choice(
        [
            draw.choice(DIALOGS),
            draw.choice(DIALOGS),
            draw.choice(SPINNERS) + " " + draw.choice([*WORK, *own]).format("esc") + "\r\n",
            f"\x1b]0;{draw.choice(TITLES)}\x07",
            f"\x1b]7501;state={draw.choice(STATES)}:app=x:msg=words\x1b\\",
            f"\x1b]9;4;{draw.randrange(4)};50\x1b\\",
            draw.choice(DRAWN).format(row),
            f"\x1b7\x1b[{row};1H{draw.choice(SPINNERS)} {draw.randrange(99)}s\x1b8",
        ]
    )


def some_event(draw: Random, dialect: Dialect) -> str | float | ProbeAnswer | Keys | Event:
    match draw.randrange(12):
        case 0:
            return draw.choice(DURING)
        case 1:
            return StructuredEventReceived(draw.choice(HOOKS), "rm -rf build", "hook")
        case 2:
            return Keys(draw.choice(["y", "\r", "hello", "\x1b[B", "\x03"]))
        case 3 | 4 | 5:
            return draw.choice([0.03, 0.2, 1.0, 4.0])
        case 6 if draw.random() < 0.3:
            return Resized(*draw.choice([(ROWS, COLS), (12, 40), (40, 120)]))
        case _:
            return some_output(draw, dialect)


def silent_for_ever(number: int) -> str:
    """What was played, if nobody is asked in the end; else nothing."""
    draw = Random(number)
    name = draw.choice(available())
    play = Playbook(draw.choice(DURING), dialect=name, rows=ROWS, cols=COLS) >> WakeupDue()
    played = [some_event(draw, load_dialect(name)) for _ in range(draw.randrange(1, 25))]
    for event in played:
        if play.detector.open_prompt is not None and draw.random() < 0.2:
            play = play.reply() if play.last else play
        play = play >> event
    play = play >> draw.choice(OVER) >> LIMIT_S
    if play.detector.open_prompt is None and play.detector.dialect.says_busy:
        play = play >> IDLE_LIMIT_S - LIMIT_S  # its own sign of work stands beside its input box, which is not urgent
        rests = play.detector.open_prompt
        return "" if rests and rests.idle else f"{number} {name}: {played[-8:]}\n{play.detector.explain()}"
    if play.detector.open_prompt is not None:
        return ""
    return f"{number} {name}: {played[-8:]}\n{play.detector.explain()}\n{play.detector.screen.lines()}"


@pytest.mark.parametrize("shard", range(4))
def test_a_program_that_falls_silent_is_raised_whatever_it_did_before(shard: int) -> None:
    missed = [said for number in range(shard, times(4000, quickly=200), 4) if (said := silent_for_ever(number))]
    assert not missed, f"{len(missed)} missed, the first: {missed[0]}"
