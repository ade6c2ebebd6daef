"""The small parts of a session: ring, gate, detach key, supervisor, redraw."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from tests.support.waiting import wait_for

from atlasbridge.core.clock import ManualClock, SystemClock
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.host.relay import DetachKey, GateTimeout, InputWriter, ReturnStripper, Ring
from atlasbridge.core.host.supervisor import Beat, SessionLog, Supervisor
from atlasbridge.core.screen.redraw import SAFE_RESET, render_farewell, render_screen
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.session.settings import Plan, SessionSettings, child_environ


def test_the_ring_keeps_the_latest_and_counts_the_rest() -> None:
    ring = Ring(10)
    for chunk in (b"aaaa", b"bbbb", b"cccc", b"dddd"):
        ring.append(chunk)
    assert ring.flooded
    assert ring.take() == (b"bbbbccccdddd", 4), "not less than it is made for"
    assert ring.take() == (b"", 0)


def test_after_megabytes_a_look_costs_no_more_than_the_last_of_it() -> None:
    ring = Ring(256 << 10)
    for number in range(1600):
        ring.append(b"%04d" % number * 1024)
    ring.append(b"Continue? ")
    data, lost = ring.take()
    assert data.endswith(b"1599Continue? ")
    assert 64 << 10 <= len(data) < 72 << 10
    assert lost + len(data) == 1600 * 4096 + len(b"Continue? ")


def test_mode_switches_that_fell_out_of_the_ring_are_kept() -> None:
    ring = Ring(10)
    ring.append(b"x\x1b[?1049hy\x1b[?2004h")
    ring.append(b"0123456789")
    data, lost = ring.take()
    assert data == b"\x1b[?1049h\x1b[?2004h0123456789"
    assert lost == 18


def test_a_chunk_larger_than_the_ring_is_kept_whole() -> None:
    ring = Ring(4)
    ring.append(b"0123456789")
    assert ring.take() == (b"0123456789", 0)


@pytest.mark.parametrize(
    ("reads", "typed", "leaves"),
    [
        ([b"abc"], b"abc", False),
        ([b"\x1dd"], b"", True),
        ([b"ab\x1ddcd"], b"ab", True),
        ([b"\x1d", b"d"], b"", True),
        ([b"\x1d\x1d"], b"\x1d", False),
        ([b"\x1d", b"\x1d", b"d"], b"\x1dd", False),
        ([b"\x1dx"], b"\x1dx", False),
        ([b"\x1b[93;5u", b"d"], b"", True),
        ([b"\x1b[27;5;93~d"], b"", True),
        ([b"\x1b[93;5u\x1b[93;5:3u\x1b[100u"], b"\x1b[93;5:3u", True),
        ([b"\x1b[93;5ux"], b"\x1b[93;5ux", False),
        ([b"\x1b[A\x1b[200~paste\x1b[201~"], b"\x1b[A\x1b[200~paste\x1b[201~", False),
    ],
)
def test_the_detach_key_is_found(reads: list[bytes], typed: bytes, leaves: bool) -> None:
    key = DetachKey("^] d")
    out, left = b"", False
    for read in reads:
        more, left = key.feed(read)
        out += more
    assert (out, left) == (typed, leaves)


@pytest.mark.parametrize("code", range(256))
def test_every_byte_but_the_prefix_passes_as_it_is(code: int) -> None:
    key, typed = DetachKey("^] d"), bytes([code])
    if typed != key.prefix:
        assert key.feed(typed) == (typed, False)
    else:
        assert key.feed(typed) == (b"", False)
    assert key.pending == (typed == b"\x1d")


def test_the_detach_key_is_pending_until_the_next_key() -> None:
    key = DetachKey("^] d")
    assert not key.pending
    assert key.feed(b"\x1d") == (b"", False)
    assert key.pending
    assert key.feed(b"x") == (b"\x1dx", False)
    assert not key.pending


def test_another_detach_key_can_be_chosen() -> None:
    key = DetachKey("Ctrl-\\ q")
    assert key.feed(b"\x1cq") == (b"", True)
    assert key.name == "Ctrl-\\ q"


@pytest.mark.parametrize("spec", ["", "d", "^]", "^] dd", "x d"])
def test_a_detach_key_that_cannot_be_read_is_refused(spec: str) -> None:
    with pytest.raises(ConfigError):
        DetachKey(spec)


def test_what_the_tool_does_not_take_is_queued_in_order() -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    woken: list[bool] = []
    input_writer = InputWriter(write_fd, ManualClock(), lambda: woken.append(True))
    data = bytes(range(256)) * 1024
    input_writer.type(data)
    input_writer.type(b"end")
    assert input_writer.waiting
    assert woken
    got = b""
    while len(got) < len(data) + 3:
        got += os.read(read_fd, 65536)
        input_writer.flush()
    assert got == data + b"end"
    assert not input_writer.waiting
    os.close(read_fd)
    os.close(write_fd)


def test_the_gate_holds_keys_back_and_lets_them_follow() -> None:
    read_fd, write_fd = os.pipe()
    input_writer = InputWriter(write_fd, ManualClock(), lambda: None)
    with input_writer.injection(1.0):
        input_writer.type(b"person")
        input_writer.send(b"answer")
    assert os.read(read_fd, 100) == b"answerperson"
    os.close(read_fd)
    os.close(write_fd)


def test_an_answer_waits_for_a_key_that_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    read_fd, write_fd = os.pipe()
    input_writer = InputWriter(write_fd, ManualClock(), lambda: None)
    write = os.write

    def inject() -> None:
        with input_writer.injection(10.0):
            input_writer.send(b"answer")

    answering = threading.Thread(target=inject)

    def write_late(fd: int, data: bytes) -> int:
        if data == b"k":
            answering.start()
            answering.join(0.05)
        return write(fd, data)

    monkeypatch.setattr("atlasbridge.core.host.relay.os.write", write_late)
    input_writer.type(b"k")
    answering.join()
    assert os.read(read_fd, 100) == b"kanswer"
    assert input_writer.type(b"l")
    assert os.read(read_fd, 100) == b"l"
    os.close(read_fd)
    os.close(write_fd)


def test_no_key_ever_stands_inside_an_answer() -> None:
    read_fd, write_fd = os.pipe()
    os.set_blocking(write_fd, False)
    input_writer = InputWriter(write_fd, ManualClock(), lambda: None)
    got = bytearray()
    done = threading.Event()

    def read() -> None:
        while chunk := os.read(read_fd, 65536):
            got.extend(chunk)

    def answer() -> None:
        for _ in range(500):
            with input_writer.injection(10.0):
                input_writer.send(b"<")
                input_writer.send(b">")
        done.set()

    threads = [threading.Thread(target=read), threading.Thread(target=answer)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        keys = 0
        while not done.is_set():
            input_writer.type(b"k")
            keys += 1
            if input_writer.waiting:
                input_writer.flush()
    finally:
        sys.setswitchinterval(interval)
    threads[1].join()
    while input_writer.waiting:
        input_writer.flush()
    os.close(write_fd)
    threads[0].join()
    os.close(read_fd)
    assert got.count(b"<>") == 500
    assert got.replace(b"<>", b"") == b"k" * keys


def test_what_the_terminal_itself_answers_passes_the_gate() -> None:
    """A tool that asks for the cursor's place while an answer is typed would wait for it, and we for the tool."""
    read_fd, write_fd = os.pipe()
    input_writer = InputWriter(write_fd, ManualClock(), lambda: None)
    with input_writer.injection(1.0):
        input_writer.send(b"\x1b[B")
        input_writer.type(b"ab\x1b[12;40Rc")
        assert os.read(read_fd, 100) == b"\x1b[B\x1b[12;40R"
        input_writer.send(b"\r")
    assert os.read(read_fd, 100) == b"\rabc"
    os.close(read_fd)
    os.close(write_fd)


@pytest.mark.parametrize("gesture", [b"\x1b[27u", b"\x1b[13;2u", b"\x1b[<0;5;5M", b"\x1b[I", b"\x1b[A"])
def test_what_the_person_does_at_the_terminal_waits_behind_the_gate_however_it_is_written(gesture: bytes) -> None:
    read_fd, write_fd = os.pipe()
    input_writer = InputWriter(write_fd, ManualClock(), lambda: None)
    with input_writer.injection(1.0):
        input_writer.type(gesture)
        input_writer.send(b"y\r")
    assert os.read(read_fd, 100) == b"y\r" + gesture
    os.close(read_fd)
    os.close(write_fd)


def test_a_second_injection_waits_only_so_long() -> None:
    input_writer = InputWriter(-1, ManualClock(), lambda: None)
    with input_writer.injection(1.0), pytest.raises(GateTimeout), input_writer.injection(0.01):
        pass


def test_the_gate_opens_after_a_failure() -> None:
    input_writer = InputWriter(-1, ManualClock(), lambda: None)
    with pytest.raises(ValueError), input_writer.injection(1.0):
        raise ValueError
    with input_writer.injection(0.01):
        assert input_writer.backlog == 0


def test_returns_of_the_terminal_are_taken_back_across_chunks() -> None:
    stripper = ReturnStripper()
    parts = [b"a\r", b"\nb\r\r", b"\nc\r"]
    out = b"".join(stripper.feed(part, True) for part in parts) + stripper.finish()
    assert out == b"a\nb\r\nc\r"


def test_a_raw_terminal_adds_no_returns_so_none_are_taken() -> None:
    assert ReturnStripper().feed(b"a\r\nb", False) == b"a\r\nb"


def _supervisor(clock: ManualClock | SystemClock, path: Path | None = None, **changes: float) -> Supervisor:
    settings = SessionSettings(restart_delay_s=0.0, **changes)  # type: ignore[arg-type]
    return Supervisor(clock, settings, SessionLog(path, clock))


def test_a_crashed_task_is_restarted_and_its_crash_is_logged(tmp_path: Path) -> None:
    supervisor = _supervisor(SystemClock(), tmp_path / "log")
    runs = []
    done = threading.Event()

    def loop(beat: Beat) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise RuntimeError("broken\x1b[2J")
        done.set()

    supervisor.start("stdin_relay", loop)
    wait_for(lambda: supervisor.check() is not None and done.is_set(), "the third run")
    assert not supervisor.failed
    log = (tmp_path / "log").read_text()
    assert log.count("stdin_relay crashed") == 2
    assert "\x1b" not in log


def test_a_task_that_keeps_crashing_fails_the_session() -> None:
    supervisor = _supervisor(SystemClock())
    runs = []

    def loop(beat: Beat) -> None:
        runs.append(1)
        raise RuntimeError

    supervisor.start("pty_reader", loop)
    pauses: list[float] = []
    wait_for(lambda: pauses.append(supervisor.check()) or supervisor.failed, "the failure")
    assert (supervisor.failed, pauses[-1]) == ("pty_reader", 0.0), "and the session ends at once"
    assert len(runs) == 1 + SessionSettings().max_task_restarts


def test_a_stuck_task_is_retired_and_replaced() -> None:
    clock = ManualClock()
    supervisor = _supervisor(clock)
    beats: list[Beat] = []
    release = threading.Event()

    def loop(beat: Beat) -> None:
        beats.append(beat)
        if len(beats) == 1:
            release.wait()
        beat.rest()
        while not beat.retired:
            release.wait(0.01)

    supervisor.start("response_consumer", loop)
    wait_for(lambda: len(beats) == 1, "the first run")
    clock.advance(31)
    supervisor.check()
    wait_for(lambda: len(beats) == 2, "the replacement")
    assert beats[0].retired
    supervisor.stop()
    release.set()


def test_a_task_at_rest_is_never_stuck() -> None:
    clock = ManualClock()
    supervisor = _supervisor(clock)
    resting = threading.Event()
    runs = []

    def loop(beat: Beat) -> None:
        runs.append(1)
        beat.rest()
        resting.set()
        while not beat.retired:
            threading.Event().wait(0.01)

    supervisor.start("stdin_relay", loop)
    resting.wait()
    clock.advance(10_000)
    supervisor.check()
    assert runs == [1]
    supervisor.stop()


def test_a_redrawn_screen_looks_and_behaves_like_the_first() -> None:
    first = Screen(10, 40)
    first.feed(b"\x1b]2;my title\x07\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[>5u")
    first.feed("\x1b[3;5H\x1b[1;38;2;10;20;30;48;5;200mw\u4e16ide\x1b[m plain \x1b[7mreverse\x1b[m".encode())
    first.feed(b"\x1b[10;1H" + b"x" * 40 + b"\x1b[?25l\x1b[4;2H")
    second = Screen(10, 40)
    second.feed(render_screen(first))
    assert second.lines() == first.lines()
    assert [second.spans(row) for row in range(10)] == [first.spans(row) for row in range(10)]
    assert second.cursor == first.cursor
    assert (second.cursor_visible, second.alternate, second.title) == (False, True, "my title")
    assert {1000, 1006, 2004, 1} <= set(second.modes)
    assert second.application_keypad
    assert second.kitty_flags == 5


def test_the_farewell_takes_back_exactly_what_was_on() -> None:
    screen = Screen(10, 40)
    assert render_farewell(screen) == b""
    screen.feed(b"shell$ tool\r\n\x1b[?1049h\x1b[?1003h\x1b[?1004h\x1b[?2004h\x1b[>1u\x1b[?25l\x1b[2;5r\x1b[5;5Hfull")
    copy = Screen(10, 40)
    copy.feed(b"shell$ tool\r\n\x1b[?1049h\x1b[?1003h\x1b[?1004h\x1b[?2004h\x1b[>1u\x1b[?25l\x1b[2;5r\x1b[5;5Hfull")
    copy.feed(render_farewell(screen))
    assert not copy.alternate
    assert not {1003, 1004, 2004} & set(copy.modes)
    assert copy.cursor_visible
    assert copy.kitty_flags == 0
    assert copy.cursor == (1, 0)
    assert render_farewell(copy) == b""


def test_the_safe_reset_leaves_a_plain_screen_as_it_is() -> None:
    screen = Screen(10, 40)
    screen.feed(b"one\r\ntwo \x1b[1mbold")
    before = (screen.lines(), screen.cursor)
    screen.feed(SAFE_RESET)
    assert (screen.lines(), screen.cursor) == before


def test_only_atlasbridges_own_variables_are_taken_from_the_environment() -> None:
    environ = {"ATLASBRIDGE_HOME": "/x", "ATLASBRIDGE_TOKEN": "t", "PATH": "/bin", "MY_ATLASBRIDGE_X": "1"}
    assert child_environ(environ) == {"PATH": "/bin", "MY_ATLASBRIDGE_X": "1"}


def test_a_tool_is_named_by_its_file() -> None:
    assert Plan(("/usr/local/bin/claude", "-p"), "id").tool == "claude"
    assert Plan(("claude",), "id").tool == "claude"
