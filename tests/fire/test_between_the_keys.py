"""An answer of several keys takes a moment: whatever happens between two of them, none goes into another prompt."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest
from tests.support.session_fakes import Bench
from tests.support.typing_bench import TypingBench

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.host.relay import OutputRelay
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.tty import LineFlags

ANN = Answer(AnswerKind.TEXT, "ann")
YES = Answer(AnswerKind.YES)
RAW_TEXT = b"Your name? "
RAW_LETTER = b"Remove the old build? (y/n) "


def line_again(bench: TypingBench) -> None:
    """The tool gave up its own input: anyone who reads next reads lines."""
    bench.pty.line = LineFlags(canonical=True, echo=True)


def hidden(bench: TypingBench) -> None:
    bench.pty.line = LineFlags(canonical=True, echo=False)


MOVES: dict[str, Callable[[TypingBench], None]] = {
    "the tool moved on": lambda bench: bench.tool_writes(b"\r\ntimed out, going on\r\n"),
    "the tool asks something else": lambda bench: bench.tool_writes(b"\r\nErase the whole disk? (y/n) "),
    "the screen was cleared": lambda bench: bench.tool_writes(b"\x1b[2J\x1b[HErase the whole disk? (y/n) "),
    "the tool ended": lambda bench: bench.tool_ends(),
    "another program reads lines now": line_again,
    "another program reads a password now": hidden,
}
ANSWERS = {"a text": (RAW_TEXT, ANN, b"ann"), "a letter": (RAW_LETTER, YES, b"y")}


def raw(question: bytes) -> TypingBench:
    return TypingBench(question, echo=False, canonical=False)


def echo_the_first_key(bench: TypingBench, keys: bytes) -> Callable[[str], None]:
    """The tool draws what it reads."""
    told = False

    def look(seam: str) -> None:
        nonlocal told
        if not told and keys in bench.pty_typed():
            told = True
            bench.tool_writes(keys)

    return look


def count_seams(question: bytes, answer: Answer, keys: bytes) -> list[int]:
    """The places between the first key and the last."""
    bench = raw(question)
    bench.before_seam = echo_the_first_key(bench, keys)
    places: list[int] = []
    bench.on_seam = lambda number: places.append(number) if keys in bench.pty_typed() else None
    assert bench.type(answer).outcome == "typed" and bench.pty_typed() == keys + b"\r"
    bench.pty.close()
    return places


@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("what", MOVES)
def test_the_rest_of_an_answer_is_not_typed_once_the_world_has_moved(what: str, how: str) -> None:
    question, answer, keys = ANSWERS[how]
    places = count_seams(question, answer, keys)
    assert len(places) > 5
    for place in sorted({*places[:3], *places[3:-9:9], *places[-9:-1]}):  # those in the middle are one loop
        bench = raw(question)
        bench.before_seam = echo_the_first_key(bench, keys)
        bench.act_at, bench.act = place, partial(MOVES[what], bench)
        outcome = bench.type(answer)
        assert bench.pty_typed() == keys, f"{what} at {place} of {places}: {outcome}"
        bench.pty.close()


@pytest.mark.parametrize("how", ANSWERS)
def test_keys_of_the_person_wait_behind_the_whole_answer(how: str) -> None:
    question, answer, keys = ANSWERS[how]
    for place in count_seams(question, answer, keys)[::10]:
        bench = raw(question)
        bench.before_seam = echo_the_first_key(bench, keys)
        bench.act_at, bench.act = place, partial(bench.person_types, b"no")
        assert bench.type(answer).outcome == "typed"
        assert bench.pty_typed() == keys + b"\rno", place
        bench.pty.close()


def test_a_line_goes_out_in_one_piece_where_lines_are_read() -> None:
    """Nothing can come between its parts then."""
    bench = TypingBench(RAW_TEXT)
    seen: list[bytes] = []
    bench.on_seam = lambda number: seen.append(bench.pty_typed())
    assert bench.type(ANN).outcome == "typed"
    assert bench.pty_typed() == b"ann\r" and set(seen) <= {b"", b"ann\r"}
    bench.pty.close()


def test_a_text_is_not_typed_where_the_echo_was_switched_off_unseen() -> None:
    """The tool asks for a password now and has not written it yet."""
    bench = TypingBench(RAW_TEXT)
    bench.pty.line = LineFlags(canonical=True, echo=False)
    assert (bench.type(ANN).outcome, bench.pty_typed()) == ("stale", b"")
    bench.pty.close()


def test_no_enter_follows_a_letter_that_the_tool_has_not_read_yet() -> None:
    bench = raw(RAW_LETTER)
    bench.pty.unread_bytes = 1
    assert bench.type(YES).outcome == "failed" and bench.pty_typed() == b"y"
    bench.pty.close()


def test_no_enter_follows_a_letter_while_the_tool_works_on_it() -> None:
    bench = raw(RAW_LETTER)
    busy = ProbeAnswer(ProbeState.BUSY, "runs", echo=False, canonical=False)

    def work(seam: str) -> None:
        if b"y" in bench.pty_typed():
            bench.probe.answer = busy

    bench.before_seam = work
    assert bench.pty_typed() == b""
    outcome = bench.type(YES)
    assert (outcome.outcome, bench.pty_typed()) == ("typed", b"y"), outcome
    bench.pty.close()


def test_a_letter_whose_tool_is_slow_but_takes_it_is_not_followed_by_an_enter() -> None:
    bench = raw(RAW_LETTER)
    busy = ProbeAnswer(ProbeState.BUSY, "runs", echo=False, canonical=False)
    typed_at: list[float] = []

    def work(seam: str) -> None:
        if b"y" in bench.pty_typed() and not typed_at:
            typed_at.append(bench.clock.now())
            bench.probe.answer = busy
        if typed_at and bench.clock.now() > typed_at[0] + 1.0 and bench.probe.answer is busy:
            bench.tool_writes(b"\r\nRemoved.\r\nErase the whole disk? (y/n) ")
            bench.probe.answer = ProbeAnswer(ProbeState.READING, "reads", echo=False, canonical=False)

    bench.before_seam = work
    assert bench.type(YES).outcome == "typed"
    assert bench.pty_typed() == b"y"
    bench.pty.close()


def test_keys_for_a_terminal_that_is_gone_are_not_called_typed() -> None:
    bench = TypingBench(RAW_TEXT)
    bench.input_writer._fd = -1
    outcome = bench.type(ANN)
    assert outcome.outcome == "failed" and "gone" in outcome.detail
    bench.pty.close()


def test_a_line_that_the_tool_has_not_read_yet_is_no_new_question() -> None:
    """On a busy machine a reader is woken long before it runs: until then it only seems to wait."""
    bench = TypingBench(RAW_LETTER)
    answered = bench.open_id
    assert bench.type(YES).outcome == "typed"
    bench.pty.unread_bytes = 2
    bench.tool_writes(b"y\r\n")  # the terminal's own echo
    assert bench.run_until_raised(after=answered) == ""
    bench.pty.unread_bytes = 0
    bench.tool_writes(b"Erase the whole disk? (y/n) ")
    assert bench.run_until_raised(after=answered) != ""
    bench.pty.close()


def test_an_answered_question_is_not_asked_again_because_the_next_one_was_not_read_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tool has written its next question and waits; on a busy machine nobody has read it from the terminal yet."""
    bench = TypingBench(RAW_LETTER)
    answered = bench.open_id
    assert bench.type(YES).outcome == "typed"
    bench.tool_writes(b"y\r\n")
    looks = 0

    def pending(output: OutputRelay) -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:  # now the reader comes to run
            bench.tool_writes(b"Erase the whole disk? (y/n) ")
        return looks < 3

    monkeypatch.setattr(OutputRelay, "pending", property(pending))
    assert bench.run_until_raised(after=answered) != ""
    assert bench.watch.opened is not None and "Erase" in bench.watch.opened.prompt.excerpt
    bench.pty.close()


def test_output_that_is_read_and_not_yet_kept_counts_as_unseen() -> None:
    """Between the read and the ring a chunk is nowhere to be found: the comparison must know of it."""
    bench = Bench()
    arrived, go_on = threading.Event(), threading.Event()
    keep = bench.output.pass_on

    def slowly(fd: int, chunk: bytes, beat: Beat) -> bool:
        arrived.set()
        go_on.wait()
        return keep(fd, chunk, beat)

    bench.output.pass_on = slowly  # type: ignore[method-assign]
    tool, bench.output._pty = os.pipe(), bench.pty  # the fake's own end is for typing
    bench.pty.fileno = lambda: tool[0]  # type: ignore[method-assign]
    os.set_blocking(tool[0], False)
    reader = threading.Thread(target=bench.output.run, args=(Beat(bench.clock),))
    reader.start()
    os.write(tool[1], b"Erase the whole disk? (y/n) ")
    assert arrived.wait() and bench.watch.behind
    go_on.set()
    while bench.ring.size == 0:
        assert reader.is_alive()
        time.sleep(0.001)
    bench.output.stop()
    reader.join()
    for fd in tool:
        os.close(fd)
    bench.pty.close()
