"""The watchdog keeps the detector's time: when output is fed, when it is asked to look, what goes to the hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.session_fakes import PROMPT, Bench

from atlasbridge.core.detection.events import (
    KeysTyped,
    OutputReceived,
    ProbeAnswered,
    RaisePrompt,
    RequestProbe,
    RequestWakeup,
    Resized,
    WakeupDue,
    WithdrawPrompt,
)


class SomeTerminal:
    """Attached, and a real terminal."""

    is_terminal = True
    closed = False


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.output.attachment = SomeTerminal()  # type: ignore[assignment]
    made.watch.wakeup_at = None
    yield made
    made.pty.close()


def turn(bench: Bench) -> None:
    bench.watch.due(bench.clock.now())
    bench.watch.step(bench.clock.now())


def test_output_is_fed_once_it_pauses(bench: Bench) -> None:
    bench.show(b"Continue?")
    turn(bench)
    assert bench.detector.kinds() == []
    bench.clock.advance(0.021)
    turn(bench)
    assert bench.detector.kinds() == ["OutputReceived"]


def test_output_is_given_with_the_time_it_came(bench: Bench) -> None:
    came = bench.clock.now()
    bench.show(b"Continue?")
    bench.clock.advance(0.5)
    turn(bench)
    assert bench.detector.events == [(OutputReceived(b"Continue?"), came)]


def test_output_that_never_pauses_is_looked_at_now_and_then(bench: Bench) -> None:
    for _ in range(20):
        bench.show(b".")
        turn(bench)
        bench.clock.advance(0.01)
    assert len(bench.detector.events) == 1


def test_a_flood_is_looked_at_less_often(bench: Bench) -> None:
    for _ in range(60):
        bench.show(b"x" * 100_000)
        turn(bench)
        bench.clock.advance(0.01)
    assert bench.detector.kinds() == []
    for _ in range(60):
        bench.show(b"x" * 100_000)
        turn(bench)
        bench.clock.advance(0.01)
    ((event, _),) = bench.detector.events
    assert isinstance(event, OutputReceived)
    assert len(event.data) < 60 * 100_000, "what nobody could have read was dropped"


def test_without_a_terminal_output_is_fed_at_once_and_queries_are_answered(bench: Bench) -> None:
    bench.output.attachment = None
    bench.show(b"\x1b[5n\x1b[6n")
    turn(bench)
    assert bench.pty.typed() == b"\x1b[0n\x1b[1;1R"


def test_with_a_terminal_queries_are_left_to_it(bench: Bench) -> None:
    bench.show(b"\x1b[5n")
    bench.watch.absorb()
    bench.output.attachment = None
    bench.watch.absorb()
    assert bench.pty.typed() == b""


def test_a_wake_up_comes_when_it_was_asked_for(bench: Bench) -> None:
    bench.detector.answers[OutputReceived] = [RequestWakeup(bench.clock.now() + 0.05)]
    bench.show(b"x")
    bench.watch.absorb()
    assert bench.watch.due(bench.clock.now()) == pytest.approx(bench.clock.now() + 0.05)
    turn(bench)
    assert bench.detector.kinds() == ["OutputReceived"]
    bench.clock.advance(0.06)
    turn(bench)
    assert bench.detector.kinds() == ["OutputReceived", "WakeupDue"]


def test_a_wake_up_waits_for_the_output_that_came_meanwhile(bench: Bench) -> None:
    bench.watch.wakeup_at = bench.clock.now()
    bench.show(b"more")
    turn(bench)
    assert bench.detector.kinds() == []
    bench.clock.advance(0.03)
    turn(bench)
    assert bench.detector.kinds() == ["OutputReceived", "WakeupDue"]


def test_a_probe_is_asked_with_the_ages_of_output_and_input(bench: Bench) -> None:
    bench.show(b"x")
    bench.watch.absorb()
    bench.input_writer.type(b"k")
    bench.clock.advance(2.0)
    bench.detector.answers[WakeupDue] = [RequestProbe()]
    bench.watch.handle(WakeupDue())
    assert bench.probe.looks[0] == pytest.approx((2.0, 2.0)) and len(bench.probe.looks) == 1
    assert bench.detector.kinds()[-1] == "ProbeAnswered"


def test_a_tool_that_never_wrote_a_byte_is_looked_at(bench: Bench) -> None:
    fresh = Bench()
    turn(fresh)
    assert fresh.detector.kinds() == ["WakeupDue"]
    fresh.pty.close()


def test_a_prompt_is_told_to_the_hub_and_withdrawn_by_its_own_id(bench: Bench) -> None:
    bench.detector.answers[ProbeAnswered] = [RaisePrompt(PROMPT)]
    bench.detector.answers[WakeupDue] = [RequestProbe()]
    bench.watch.handle(WakeupDue())
    raised = bench.posted[0]
    assert raised["m"] == "raise"
    assert raised["prompt"]["digest"] == "d1"
    bench.detector.answers[OutputReceived] = [WithdrawPrompt("d1", "answered_at_terminal")]
    bench.show(b"y")
    bench.watch.absorb()
    assert bench.posted[1] == {
        "m": "withdraw",
        "prompt_id": raised["prompt_id"],
        "reason": "answered_at_terminal",
    }
    assert bench.watch.opened is None


def test_withdrawing_what_is_not_open_says_nothing(bench: Bench) -> None:
    bench.detector.answers[WakeupDue] = [WithdrawPrompt("other", "moved_on")]
    bench.raise_prompt()
    bench.watch.handle(WakeupDue())
    assert bench.posted == []
    assert bench.watch.opened is not None


def test_keys_and_sizes_are_told_in_order_before_the_output(bench: Bench) -> None:
    bench.watch.keys_typed(b"y")
    bench.watch.resized(30, 100)
    bench.show(b"echo")
    bench.clock.advance(0.03)
    turn(bench)
    assert [event for event, _ in bench.detector.events] == [
        KeysTyped(b"y"),
        Resized(30, 100),
        OutputReceived(b"echo"),
    ]


def test_keys_up_to_the_end_of_a_line_are_told_as_one(bench: Bench) -> None:
    for key in (b"y", b"e", b"s\r", b"n", b"o"):
        bench.watch.keys_typed(key)
    bench.watch.resized(30, 100)
    bench.watch.keys_typed(b"\n")
    bench.watch.keys_typed(b"k")
    bench.watch.absorb()
    assert [event for event, _ in bench.detector.events] == [
        KeysTyped(b"yes\r"),
        KeysTyped(b"no"),
        Resized(30, 100),
        KeysTyped(b"\n"),
        KeysTyped(b"k"),
    ]


def test_the_detectors_time_never_goes_back(bench: Bench) -> None:
    bench.show(b"x")
    bench.clock.advance(1.0)
    bench.watch.keys_typed(b"k")
    bench.watch.absorb()
    times = [at for _, at in bench.detector.events]
    assert times == sorted(times)


def test_a_viewer_is_served_at_most_as_often_as_it_wants(bench: Bench) -> None:
    served: list[float] = []

    def viewer(now: float, screen: object) -> float | None:
        served.append(now)
        return now + 0.1

    bench.watch.add_viewer(viewer)
    turn(bench)
    assert bench.watch.due(bench.clock.now()) == pytest.approx(bench.clock.now() + 0.1)


def test_patterns_are_compiled_while_nothing_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    left = [True, True, False]
    monkeypatch.setattr("atlasbridge.core.host.watchdog.compile_next", lambda: left.pop(0))
    bench.watch.wake()
    bench.watch.rest()
    assert left == []


def test_output_comes_before_the_patterns(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_early() -> bool:
        raise AssertionError("output waits to be looked at")

    monkeypatch.setattr("atlasbridge.core.host.watchdog.compile_next", too_early)
    bench.show(b"much to read")
    bench.watch.wake()
    bench.watch.rest()
    assert bench.ring.size


@pytest.mark.parametrize(
    ("keys", "present"),
    [
        (b"y", True),
        (b"\x1b[A", True),
        (b"\x1b[I", True),  # the window got the focus
        (b"y\x1b[O", False),  # and lost it
        (b"\x1b[?62;4c", False),  # the terminal answers what the tool asked it
        (b"\x1b[12;40R", False),
    ],
)
def test_a_person_is_told_from_what_the_terminal_says_by_itself(bench: Bench, keys: bytes, present: bool) -> None:
    assert bench.watch.typed_age_s is None
    bench.watch.keys_typed(keys)
    bench.watch.absorb()
    bench.clock.advance(3)
    assert bench.watch.typed_age_s == (3.0 if present else None)
