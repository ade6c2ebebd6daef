"""Between the tap and the typing the world may move.  At every place where it can, what is then wrong is not typed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest
from tests.support.typing_bench import QUESTION, TypingBench

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.model import Answer, AnswerKind

YES = Answer(AnswerKind.YES)
PASSWORD = b"[sudo] password for ann: "

MOVES: dict[str, Callable[[TypingBench], None]] = {
    "the tool moved on": lambda bench: bench.tool_writes(b"\r\ntimed out, going on\r\n"),
    "the tool asks something else": lambda bench: bench.tool_writes(b"\r\nErase the whole disk? (y/n) "),
    "it was answered at the keyboard": lambda bench: bench.person_types(b"n\r", b"n\r\nDelete all? (y/n) "),
    "an answer was begun at the keyboard": lambda bench: bench.person_types(b"n", b"n"),
    "the same words ask about something else": lambda bench: bench.tool_writes(b"\r\nskipped.\r\n" + QUESTION),
    "the same words ask about something else, far below": lambda bench: bench.tool_writes(b"\r\nx" * 40 + QUESTION),
    "the same words on a new screen": lambda bench: bench.tool_writes(b"\x1b[2J\x1b[HErase all\r\n" + QUESTION),
    "the screen was cleared": lambda bench: bench.tool_writes(b"\x1b[2J\x1b[H"),
}


def count_seams() -> int:
    """How many places there are between the tap and the first key."""
    bench = TypingBench()
    outcome = bench.type(YES)
    assert outcome.outcome == "typed" and bench.pty_typed() == b"y\r"
    bench.pty.close()
    found = 0
    for place in range(1, len(bench.seams) + 1):
        probe = TypingBench()
        probe.act_at = place
        probe.type(YES)
        probe.pty.close()
        found += probe.acted_before_typing
    return found


SEAMS = count_seams()


@pytest.mark.parametrize("what", MOVES)
def test_nothing_is_typed_whenever_the_world_moved_first(what: str) -> None:
    assert SEAMS >= 4
    for place in range(1, SEAMS + 1):
        bench = TypingBench()
        bench.act_at, bench.act = place, partial(MOVES[what], bench)
        outcome = bench.type(YES)
        own = bench.pty_typed().replace(b"n\r", b"").replace(b"n", b"")  # what the person at the keyboard typed
        assert (outcome.outcome, own) == ("stale", b""), f"{what} before {bench.seams[place - 1]} ({place})"
        bench.pty.close()


def test_nothing_is_typed_into_a_tool_that_has_ended() -> None:
    bench = TypingBench()
    bench.act_at, bench.act = 1, bench.tool_ends
    assert (bench.type(YES).outcome, bench.pty_typed()) == ("stale", b"")
    bench.pty.close()


def test_a_screen_that_is_drawn_anew_but_asks_the_same_is_answered() -> None:
    for place in range(1, SEAMS + 1):
        bench = TypingBench()
        bench.act_at, bench.act = place, partial(bench.tool_writes, b"\r" + QUESTION)
        assert bench.type(YES).outcome == "typed"
        assert bench.pty_typed() == b"y\r"
        bench.pty.close()


def test_a_tool_that_stops_waiting_gets_nothing_at_any_place() -> None:
    busy = ProbeAnswer(ProbeState.BUSY, "runs", echo=True, canonical=True)
    for place in range(1, SEAMS + 1):
        bench = TypingBench()

        def stop(bench: TypingBench = bench) -> None:
            bench.probe.answer = busy

        bench.act_at, bench.act = place, stop
        outcome = bench.type(YES)
        if "probe" in bench.seams[place:]:  # it was looked at once more: it cannot be missed
            assert (outcome.outcome, bench.pty_typed()) == ("stale", b""), place
        bench.pty.close()


def test_a_hidden_answer_that_was_begun_at_the_keyboard_is_not_completed_from_afar() -> None:
    for place in range(1, SEAMS + 1):
        bench = TypingBench(PASSWORD, echo=False)
        bench.act_at, bench.act = place, partial(bench.person_types, b"half")
        outcome = bench.type(Answer(AnswerKind.TEXT, "remotely"))
        assert (outcome.outcome, bench.pty_typed()) == ("stale", b"half"), bench.seams[place - 1]
        bench.pty.close()


def test_what_a_terminal_says_by_itself_is_no_answer_that_was_begun() -> None:
    bench = TypingBench(PASSWORD, echo=False)
    bench.person_types(b"\x1b[I")  # the window has the focus
    assert bench.type(Answer(AnswerKind.TEXT, "remotely")).outcome == "typed"
    bench.pty.close()


def test_a_prompt_that_was_refused_as_stale_but_stands_there_still_is_asked_again() -> None:
    bench = TypingBench()
    reading = bench.probe.answer
    first = bench.open_id
    bench.probe.answer = ProbeAnswer(ProbeState.BUSY, "runs", echo=True, canonical=True)
    assert bench.type(YES).outcome == "stale"
    bench.probe.answer = reading
    again = bench.run_until_raised()
    assert again and again != first, "the tool waits and nobody is asked"
    assert [message["prompt_id"] for message in bench.posted if message["m"] == "raise"] == [first, again]
    bench.pty.close()


def test_two_who_type_the_same_answer_at_once_type_it_once() -> None:
    """A connection that hung and was replaced may bring the same order a second time, in another thread."""
    bench = TypingBench()
    hand = bench.typist()
    prompt_id = bench.open_id
    both_know_nothing = threading.Barrier(2)
    enter = bench.input_writer.injection

    def injection(timeout_s: float) -> AbstractContextManager[None]:
        both_know_nothing.wait()
        return enter(timeout_s)

    bench.input_writer.injection = injection  # type: ignore[method-assign, assignment]
    threads = [threading.Thread(target=hand.type, args=(prompt_id, YES)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.pty_typed() == b"y\r"
    bench.pty.close()
