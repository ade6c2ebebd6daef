"""The typist: compares, types the exact keys once, and remembers what it did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.session_fakes import PROMPT, Bench

from atlasbridge.core.detection.events import (
    OutputReceived,
    ProbeAnswer,
    ProbeState,
    RaisePrompt,
    ReplyTyped,
    WakeupDue,
    WithdrawPrompt,
)
from atlasbridge.core.host.relay import OutputRelay
from atlasbridge.core.host.typist import Typist, Walk
from atlasbridge.core.prompt.keys import Only, Shows, Step, When
from atlasbridge.core.prompt.model import Answer, AnswerKind, Prompt
from atlasbridge.core.tty import LineFlags
from atlasbridge.core.values import replace

YES = Answer(AnswerKind.YES)


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.raise_prompt()
    yield made
    made.pty.close()


def typist(bench: Bench, *steps: Step, during: dict[int, bytes] | None = None) -> Typist:
    """Every pause advances the clock; `during` says what the tool writes in the n-th pause."""
    pauses = 0

    def pause(seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        bench.clock.advance(seconds)
        if during and pauses in during:
            bench.show(during[pauses])

    def encode(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
        return steps

    return Typist(Walk(bench.watch, bench.input_writer, bench.pty, bench.clock, bench.settings, pause), encode)


def test_the_keys_are_typed_and_the_detector_is_told_first(bench: Bench) -> None:
    outcome = typist(bench, Step(b"y\r")).type("p1", YES)
    assert outcome.outcome == "typed"
    assert bench.pty.typed() == b"y\r"
    assert (ReplyTyped("d1"), bench.clock.now()) in bench.detector.events


@pytest.mark.parametrize(("looks", "typed"), [(9, b"yes\r"), (10**6, b"yes")], ids=["a moment", "for good"])
def test_a_prompt_that_is_gone_while_it_is_drawn_again_gets_its_enter(bench: Bench, looks: int, typed: bytes) -> None:
    bench.pty.line = LineFlags(canonical=False)
    hand = typist(bench, Step(b"yes", When.DRAINED), Step(b"\r"))
    gone = 0

    def shows(digest: str) -> bool:
        nonlocal gone
        gone += bool(bench.detector.kinds().count("ReplyTyped"))
        return not 0 < gone <= looks

    bench.detector.shows = shows
    assert hand.type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == typed


@pytest.mark.parametrize(("drawn", "typed"), [(b"*****", b"12345\r"), (b"\r\nWelcome\r\nagain", b"12345")])
def test_a_secret_that_is_drawn_as_signs_in_its_field_gets_its_enter(drawn: bytes, typed: bytes) -> None:
    """A dialog can look like another one then; a program that took the secret by itself draws more than its row."""
    bench = Bench()
    bench.show(b"Vault\r\nKey: ")
    bench.raise_prompt(replace(PROMPT, constraints={"secret": True}))
    bench.pty.line = LineFlags(canonical=False)
    bench.watch.absorb()
    bench.detector.shows = lambda digest: (
        bench.detector.screen.line(1).rstrip() == "Key:" and "Welcome" not in (bench.detector.screen.line(2))
    )
    hand = typist(bench, Step(b"12345", When.REDRAWN), Step(b"\r"), during={2: drawn})
    assert hand.type("p1", Answer(AnswerKind.TEXT, "12345")).outcome == "typed"
    assert bench.pty.typed() == typed
    bench.pty.close()


def test_a_line_that_somebody_has_begun_and_left_is_erased_first(bench: Bench) -> None:
    bench.detector.line_begun = True
    bench.pty.line = LineFlags(canonical=True, kill=b"\x15")
    assert typist(bench, Step(b"y", When.DRAINED), Step(b"\r")).type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"\x15y\r"


def test_a_begun_line_that_no_key_erases_gets_no_answer(bench: Bench) -> None:
    bench.detector.line_begun = True
    bench.pty.line = LineFlags(canonical=True)
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "stale"
    assert bench.pty.typed() == b""


def test_the_same_prompt_is_never_typed_twice(bench: Bench) -> None:
    hand = typist(bench, Step(b"y\r"))
    assert hand.type("p1", YES).outcome == "typed"
    assert hand.type("p1", Answer(AnswerKind.NO)).outcome == "typed"
    assert bench.pty.typed() == b"y\r"


def test_another_prompt_than_the_open_one_is_stale(bench: Bench) -> None:
    assert typist(bench, Step(b"y\r")).type("p0", YES).outcome == "stale"
    assert bench.pty.typed() == b""


def test_no_open_prompt_is_stale(bench: Bench) -> None:
    bench.detector.open_prompt = None
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "stale"


def test_a_prompt_that_left_the_screen_is_stale(bench: Bench) -> None:
    bench.detector.shows = lambda digest: False
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "stale"
    assert bench.pty.typed() == b""


def test_output_that_nobody_has_looked_at_is_fed_before_comparing(bench: Bench) -> None:
    bench.detector.shows = lambda digest: "moved on" not in "\n".join(bench.detector.screen.lines())
    bench.show(b"\r\nmoved on")
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "stale"


@pytest.mark.parametrize("read_after", [20, 10**6], ids=["late", "never"])
def test_output_that_the_reader_had_no_turn_to_read_is_waited_for(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, read_after: int
) -> None:
    """The tool has written something else; on a crowded machine nobody has read it from the terminal yet."""
    bench.detector.shows = lambda digest: "moved on" not in "\n".join(bench.detector.screen.lines())
    looks = 0

    def pending(output: OutputRelay) -> bool:
        nonlocal looks
        looks += 1
        if looks == read_after:
            bench.show(b"\r\nmoved on")
        return looks < read_after

    monkeypatch.setattr(OutputRelay, "pending", property(pending))
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "stale"
    assert bench.pty.typed() == b""


@pytest.mark.parametrize("blocked", [False, True], ids=["it never stops writing", "its terminal takes no more"])
def test_a_tool_with_ever_more_output_gets_its_answer_all_the_same(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, blocked: bool
) -> None:
    def pending(output: OutputRelay) -> bool:
        output.blocked = blocked
        output.last_output_at += not blocked
        return True

    monkeypatch.setattr(OutputRelay, "pending", property(pending))
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"y\r"


def test_a_busy_tool_gets_nothing(bench: Bench) -> None:
    bench.probe.answer = ProbeAnswer(ProbeState.BUSY)
    outcome = typist(bench, Step(b"y\r")).type("p1", YES)
    assert outcome.outcome == "stale"
    assert bench.pty.typed() == b""


def test_a_tool_that_is_caught_at_work_by_the_last_look_alone_is_waited_for(bench: Bench) -> None:
    """An event loop works for a moment now and then; that alone does not make a reply stale."""
    states = iter([ProbeState.POLLING, ProbeState.BUSY, ProbeState.BUSY])
    look = bench.probe.look

    def changing(quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        bench.probe.answer = ProbeAnswer(next(states, ProbeState.POLLING))
        return look(quiet_s, input_age_s)

    bench.probe.look = changing  # type: ignore[method-assign]
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"y\r"


def test_a_tool_that_is_busy_for_a_moment_is_waited_for(bench: Bench) -> None:
    bench.probe.answer = ProbeAnswer(ProbeState.BUSY)
    hand = typist(bench, Step(b"y\r"))
    pause = hand.walk.pause

    def calm(seconds: float) -> None:
        pause(seconds)
        bench.probe.answer = ProbeAnswer(ProbeState.POLLING)

    hand.walk.pause = calm
    assert hand.type("p1", YES).outcome == "typed"


def test_a_stale_outcome_is_remembered(bench: Bench) -> None:
    hand = typist(bench, Step(b"y\r"))
    bench.detector.shows = lambda digest: False
    hand.type("p1", YES)
    bench.detector.shows = lambda digest: True
    assert hand.type("p1", YES).outcome == "stale"
    assert bench.pty.typed() == b""


def test_steps_wait_for_what_the_screen_must_show(bench: Bench) -> None:
    bench.show(b"\x1b[7m> one\x1b[m\r\n  two\x1b[1;1H")
    steps = (Step(b"\x1b[B", Shows("two")), Step(b"\r"))
    during = {3: b"\x1b[1;1H  one\r\n\x1b[7m> two\x1b[m"}
    outcome = typist(bench, *steps, during=during).type("p1", YES)
    assert outcome.outcome == "typed"
    assert bench.pty.typed() == b"\x1b[B\r"


def test_a_step_without_effect_stops_the_typing(bench: Bench) -> None:
    outcome = typist(bench, Step(b"\x1b[B", When.CHANGED), Step(b"\r")).type("p1", YES)
    assert outcome.outcome == "failed"
    assert "stopped after key 1 of 2" in outcome.detail
    assert bench.pty.typed() == b"\x1b[B"


def test_the_last_step_may_fail_to_show_its_effect(bench: Bench) -> None:
    outcome = typist(bench, Step(b"y\r", When.CHANGED)).type("p1", YES)
    assert outcome.outcome == "typed"
    assert "typed, but" in outcome.detail


def test_enter_follows_once_the_tool_has_read_the_text(bench: Bench) -> None:
    bench.pty.line = LineFlags(canonical=False)
    bench.pty.unread_bytes = 3
    hand = typist(bench, Step(b"abc", When.DRAINED), Step(b"\r"))
    pause = hand.walk.pause

    def read(seconds: float) -> None:
        pause(seconds)
        bench.pty.unread_bytes = 0

    hand.walk.pause = read
    assert hand.type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"abc\r"


def test_a_tool_that_never_reads_the_text_gets_no_enter(bench: Bench) -> None:
    bench.pty.line = LineFlags(canonical=False)
    bench.pty.unread_bytes = 3
    assert typist(bench, Step(b"abc", When.DRAINED), Step(b"\r")).type("p1", YES).outcome == "failed"
    assert bench.pty.typed() == b"abc"


def test_what_moves_while_the_text_is_not_even_read_is_not_the_text(bench: Bench) -> None:
    """A tool on a busy machine draws something else meanwhile: text and Enter in one go would be a paste."""
    bench.pty.line = LineFlags(canonical=False)
    bench.pty.unread_bytes = 3
    hand = typist(bench, Step(b"abc", When.REDRAWN), Step(b"\r"), during={2: b"a spinner"})
    assert hand.type("p1", YES).outcome == "failed"
    assert bench.pty.typed() == b"abc"


def test_where_the_queue_cannot_be_seen_a_short_wait_must_do(bench: Bench) -> None:
    bench.pty.line = LineFlags(canonical=False)
    bench.pty.unread_bytes = -1
    before = bench.clock.now()
    assert typist(bench, Step(b"abc", When.DRAINED), Step(b"\r")).type("p1", YES).outcome == "typed"
    assert bench.clock.now() - before >= bench.settings.inject_settle_ms / 1000


def test_settled_waits_until_the_screen_stands_still(bench: Bench) -> None:
    during = {2: b"a", 4: b"b"}
    outcome = typist(bench, Step(b"x", When.SETTLED), Step(b"\r"), during=during).type("p1", YES)
    assert outcome.outcome == "typed"
    assert bench.pty.typed() == b"x\r"


def test_a_line_that_the_kernel_would_cut_is_refused(bench: Bench) -> None:
    outcome = typist(bench, Step(b"x" * 4095), Step(b"\r")).type("p1", YES)
    assert outcome.outcome == "failed"
    assert bench.pty.typed() == b""
    assert "4095" in outcome.detail


def test_a_long_text_is_fine_for_a_tool_that_reads_keys(bench: Bench) -> None:
    bench.pty.line = LineFlags(canonical=False)
    assert typist(bench, Step(b"x" * 5000), Step(b"\r")).type("p1", YES).outcome == "typed"


def test_keys_of_the_person_wait_while_an_answer_is_typed(bench: Bench) -> None:
    hand = typist(bench, Step(b"\x1b[B", When.CHANGED), Step(b"\r"), during={5: b"moved"})
    pause = hand.walk.pause

    def meanwhile(seconds: float) -> None:
        pause(seconds)
        bench.input_writer.type(b"!")

    hand.walk.pause = meanwhile
    hand.type("p1", YES)
    typed = bench.pty.typed()
    assert typed.startswith(b"\x1b[B\r!")


def test_the_effect_is_told_when_the_prompt_leaves_the_screen(bench: Bench) -> None:
    typist(bench, Step(b"y\r")).type("p1", YES)
    bench.detector.answers[OutputReceived] = [WithdrawPrompt("d1", "answered")]
    bench.show(b"\r\ngot=y")
    bench.watch.absorb()
    assert bench.posted == [{"m": "effect", "prompt_id": "p1", "outcome": "taken"}]
    assert bench.watch.outcomes() == [["p1", "taken"]]


def test_a_prompt_that_stays_is_told_once_and_never_typed_again(bench: Bench) -> None:
    hand = typist(bench, Step(b"y\r"))
    hand.type("p1", YES)
    bench.clock.advance(bench.settings.effect_timeout_s + 1)
    bench.watch.step(bench.clock.now())
    bench.watch.step(bench.clock.now())
    assert bench.posted == [{"m": "effect", "prompt_id": "p1", "outcome": "still_there"}]
    hand.type("p1", YES)
    assert bench.pty.typed() == b"y\r"


def test_the_next_prompt_proves_that_the_answer_was_taken(bench: Bench) -> None:
    typist(bench, Step(b"y\r")).type("p1", YES)
    bench.detector.answers[WakeupDue] = [RaisePrompt(replace(PROMPT, digest="d2"))]
    bench.watch.handle(WakeupDue())
    assert [message["m"] for message in bench.posted] == ["effect", "raise"]
    assert bench.posted[0]["outcome"] == "taken"


def test_the_same_prompt_raised_again_shows_that_nothing_came_of_the_answer(bench: Bench) -> None:
    typist(bench, Step(b"y\r")).type("p1", YES)
    bench.detector.answers[WakeupDue] = [RaisePrompt(PROMPT)]
    bench.watch.handle(WakeupDue())
    assert bench.posted[0] == {"m": "effect", "prompt_id": "p1", "outcome": "still_there"}


def test_keys_outside_a_prompt_are_typed_as_they_are(bench: Bench) -> None:
    assert typist(bench).type_keys(b"\x1b[A")
    assert bench.pty.typed() == b"\x1b[A"


def test_a_prompt_that_shows_while_the_tool_works_is_answered_all_the_same(bench: Bench) -> None:
    bench.probe.answer = ProbeAnswer(ProbeState.BUSY)
    bench.detector.despite_busy = True
    assert typist(bench, Step(b"y\r")).type("p1", YES).outcome == "typed"


SECOND = (Step(b"\r", Only("Reject permission")), Step(b"\r"))


def test_what_answers_a_second_dialog_is_typed_where_that_dialog_stands(bench: Bench) -> None:
    drawn = {2: b"\r\nReject permission\r\nenter confirm"}
    assert typist(bench, *SECOND, during=drawn).type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"\r\r"


@pytest.mark.parametrize("drawn", [b"\r\nPermission required\r\nAllow once", b"\r\n> ", b"."])
def test_what_answers_a_second_dialog_is_not_typed_into_the_next_permission(bench: Bench, drawn: bytes) -> None:
    """Anything on the screen that moves was once taken for the second dialog; Enter would have allowed the next one."""
    assert typist(bench, *SECOND, during={2: drawn}).type("p1", YES).outcome == "typed"
    assert bench.pty.typed() == b"\r"


def test_words_that_the_question_has_itself_are_not_the_second_dialog(bench: Bench) -> None:
    bench.raise_prompt(replace(PROMPT, screen="$ echo Reject permission", digest="d2"), "p2")
    bench.show(b"\r\n$ echo Reject permission")
    assert typist(bench, *SECOND, during={2: b"\r\nPermission required"}).type("p2", YES).outcome == "typed"
    assert bench.pty.typed() == b"\r"
