"""The two relays of a session on real terminals: keys one way, output the other, and nothing in between."""

from __future__ import annotations

import os
import threading
import tty
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from tests.support.session_fakes import Bench, FakePty
from tests.support.waiting import wait_for

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.host.attachment import Attachment
from atlasbridge.core.host.relay import (
    STATUS_ANSWER,
    STATUS_QUERY,
    DetachKey,
    InputRelay,
    InputWriter,
    OutputRelay,
    Ring,
)
from atlasbridge.core.host.supervisor import Beat


class Keyboard:
    """A person's terminal in front of an input relay that runs in a thread of its own."""

    def __init__(self) -> None:
        self.person, attached_client = os.openpty()
        tty.setraw(attached_client)
        self.attachment = Attachment(os.dup(attached_client), attached_client)
        self.pty = FakePty()
        self.input_writer = InputWriter(self.pty.fileno(), ManualClock(), lambda: self.relay.wake())
        self.told: list[bytes] = []
        self.pauses: list[int] = []  # how many keys were told at each
        self.on_key: Callable[[], None] = lambda: None
        self.left: list[Attachment] = []
        self.lost: list[Attachment] = []
        self.beat = Beat(ManualClock())
        self.relay = InputRelay(
            self.pty,
            self.input_writer,
            DetachKey("^] d"),
            64,
            typed=self._tell,
            paused=lambda: self.pauses.append(len(self.told)),
            left=self._leave,
            lost=self.lost.append,
        )
        self.relay.switch(self.attachment)
        self._got = b""
        self.thread = threading.Thread(target=self.relay.run, args=(self.beat,), daemon=True)
        self.thread.start()

    def _tell(self, data: bytes) -> None:
        self.told.append(data)
        self.on_key()

    def _leave(self, attachment: Attachment) -> None:
        assert self.beat.busy_since is not None, "anyone who leaves may have to wait: that must be seen"
        self.left.append(attachment)
        attachment.closed = True
        self.relay.switch(None)

    def type(self, data: bytes) -> None:
        os.write(self.person, data)

    def got(self, data: bytes) -> bool:
        self._got += self.pty.typed()
        return self._got == data

    def close(self) -> None:
        self.relay.stop()
        self.thread.join()
        self.attachment.close_output()
        os.close(self.person)
        self.pty.close()


@pytest.fixture
def keyboard() -> Iterator[Keyboard]:
    made = Keyboard()
    yield made
    made.close()


def test_keys_go_to_the_tool_one_after_the_other_and_are_told(keyboard: Keyboard) -> None:
    for number in range(1, 5):
        keyboard.type(b"k")
        wait_for(partial(keyboard.got, b"k" * number), "the key")
    wait_for(lambda: keyboard.told == [b"k"] * 4, "the word of it")
    wait_for(lambda: keyboard.beat.busy_since is None, "rest")


def test_nobody_is_called_to_look_before_a_key_can_have_its_echo(
    keyboard: Keyboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyboard.type(b"a")
    wait_for(lambda: keyboard.pauses == [1], "the pause behind the key")
    monkeypatch.setattr("atlasbridge.core.host.relay._ECHO_MS", 600_000)
    for number in range(2, 5):
        keyboard.type(b"b")
        wait_for(lambda number=number: len(keyboard.told) == number, "the word of it")  # type: ignore[misc]
    assert keyboard.pauses == [1]
    keyboard.relay.wake()
    wait_for(lambda: keyboard.pauses == [1, 4], "a call to look, since the keys are left for something else")


def test_keys_that_the_gate_holds_back_are_read_no_further_than_the_backlog(keyboard: Keyboard) -> None:
    with keyboard.input_writer.injection(1.0):
        keyboard.type(b"a" * 64)
        wait_for(lambda: keyboard.input_writer.backlog == 64, "the backlog")
        keyboard.type(b"b")
        keyboard.input_writer.send(b"answer")
        wait_for(lambda: keyboard.got(b"answer"), "the answer")
        assert keyboard.input_writer.backlog == 64
    wait_for(lambda: keyboard.got(b"answer" + b"a" * 64 + b"b"), "the keys, in their order")


def test_what_the_tool_does_not_read_follows_when_it_reads(keyboard: Keyboard) -> None:
    stuffing = b"x" * (1 << 20)
    keyboard.input_writer.send(stuffing)
    assert keyboard.input_writer.waiting
    keyboard.type(b"last")
    received = bytearray()

    def all_is_there() -> bool:
        received.extend(keyboard.pty.typed())
        return len(received) >= len(stuffing) + 4

    wait_for(all_is_there, "the rest")
    assert bytes(received) == stuffing + b"last"


def test_the_detach_key_leaves_and_types_nothing(keyboard: Keyboard) -> None:
    keyboard.type(b"a")
    wait_for(lambda: keyboard.got(b"a"), "the key")
    keyboard.type(b"\x1dd")
    wait_for(lambda: keyboard.left == [keyboard.attachment], "leaving")
    wait_for(lambda: keyboard.attachment.input_fd < 0, "the input closed")
    assert keyboard.got(b"a")


def test_a_terminal_that_is_gone_is_said_once(keyboard: Keyboard) -> None:
    keyboard.type(b"a")
    wait_for(lambda: keyboard.got(b"a"), "the key")
    os.close(keyboard.person)
    keyboard.person = os.open(os.devnull, os.O_RDWR)
    wait_for(lambda: keyboard.lost == [keyboard.attachment], "the loss")


def test_a_relay_that_is_retired_at_a_key_passes_no_second_one(keyboard: Keyboard) -> None:
    keyboard.on_key = lambda: setattr(keyboard.beat, "retired", True)
    keyboard.type(b"a")
    wait_for(lambda: keyboard.got(b"a"), "the key")
    keyboard.thread.join()
    keyboard.type(b"b")
    assert not keyboard.thread.is_alive()
    assert keyboard.got(b"a")


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.pty.close()


@pytest.mark.parametrize("size", [1, 3, 7, len(STATUS_QUERY), 100])
def test_a_status_query_is_answered_once_however_it_arrives(bench: Bench, size: int) -> None:
    data = b"one" + STATUS_QUERY + b"\x1b\\two\x1b[1m" + STATUS_QUERY + b"\x07"
    for start in range(0, len(data), size):
        bench.output.pass_on(-1, data[start : start + size], Beat(bench.clock))
    assert bench.pty.typed() == STATUS_ANSWER * 2
    assert bench.ring.take() == (data, 0)


def test_a_few_full_reads_are_one_write_and_one_entry_of_the_ring(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [bytes([letter]) * 4095 for letter in b"abcdef"]
    reads = [*full[1:4], *full[5:], b"end"]
    monkeypatch.setattr("atlasbridge.core.host.relay.os.read", lambda fd, size: reads.pop(0))
    screen: Any = _Screen()
    bench.output.attachment = screen
    assert bench.output.pass_on(-1, full[0], Beat(bench.clock)) is True, "there is more"
    assert bench.output.pass_on(-1, full[4], Beat(bench.clock)) is False
    assert screen.shown == [b"".join(full[:4]), full[4] + full[5] + b"end"]
    assert bench.ring.take()[0] == b"".join(screen.shown)


class _Screen:
    output_is_terminal = is_terminal = True

    def __init__(self) -> None:
        self.shown: list[bytes] = []

    def write_some(self, data: bytes) -> int:
        self.shown.append(data)
        return len(data)


def test_only_a_looker_who_sleeps_is_woken_by_output() -> None:
    woken: list[int] = []
    ring = Ring(100)
    ring.append(b"unseen")
    ring.on_output = lambda: woken.append(ring.size)
    ring.append(b"seen")
    assert woken == [10], "after the output is there"
    ring.on_output = None
    ring.append(b"unseen")
    assert woken == [10]


def test_the_end_of_output_is_told(bench: Bench) -> None:
    told: list[str] = []
    output = OutputRelay(
        bench.pty,
        bench.input_writer,
        bench.ring,
        bench.clock,
        ended=lambda: told.append("ended"),
        lost=lambda gone: None,
    )
    output.stop()
    output.run(Beat(bench.clock))
    assert told == ["ended"]
