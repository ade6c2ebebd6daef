"""The session's side of the hub: hello, what is dropped and what is said again, what the hub may ask for."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.session_fakes import Bench
from tests.support.waiting import wait_for

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.detection.events import WakeupDue, WithdrawPrompt
from atlasbridge.core.host.hub_link import HubSide
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.typist import Typist, Walk
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.session.model import SessionRecord

RECORD = SessionRecord("s" * 36, "tool", ("tool",), "/", 1, 2, "2026-01-01T00:00:00.000000+00:00")


class FakeHub:
    """Listens on a socket and speaks the wire."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(60)
        self.path = path
        self._buffer = wire.LineBuffer()
        self._ready: list[dict[str, Any]] = []
        self.peer, _ = self._listener.accept()
        self.peer.settimeout(60)

    def accept_again(self) -> None:
        self.peer.close()
        self.peer, _ = self._listener.accept()
        self.peer.settimeout(60)
        self._buffer, self._ready = wire.LineBuffer(), []

    def next(self) -> dict[str, Any]:
        while not self._ready:
            data = self.peer.recv(65536)
            assert data, "the host went away"
            self._ready += self._buffer.feed(data)
        return self._ready.pop(0)

    def say(self, **message: Any) -> None:
        self.peer.sendall(wire.encode(message))

    def die(self) -> None:
        self.peer.close()
        self._listener.close()
        self.path.unlink()


class Side:
    def __init__(self, path: Path) -> None:
        self.bench = Bench(clock=SystemClock())  # type: ignore[arg-type]
        self.started: list[bool] = []
        self.killed: list[bool] = []

        def encode(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
            return (Step(b"y\r"),)

        bench = self.bench
        typist = Typist(Walk(bench.watch, bench.input_writer, bench.pty, bench.clock, bench.settings), encode)
        self.hub = HubSide(
            RECORD, str(path), 7.0, bench.watch, typist, bench.clock, bench.settings, lambda: self.started.append(True)
        )
        self.hub.end_tool = self.killed.append
        self.beat = Beat(bench.clock)
        self.thread = threading.Thread(target=self.hub.run, args=(self.beat,), daemon=True)
        self.thread.start()


@pytest.fixture
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ab") as folder:
        yield Path(folder) / "hub.sock"


@pytest.fixture
def side(path: Path) -> Iterator[Side]:
    made = Side(path)
    yield made
    made.beat.retired = True
    made.hub._link.stop()
    made.thread.join()
    made.bench.pty.close()


def test_a_missing_hub_is_started_once_and_waited_for(side: Side, path: Path) -> None:
    wait_for(lambda: side.started, "the start of a hub")
    hub = FakeHub(path)
    hello = hub.next()
    assert hello["m"] == "hello"
    assert hello["session"]["session_id"] == RECORD.session_id
    assert (hello["open"], hello["typed"], hello["ttl_s"]) == (None, [], 7.0)
    assert side.started == [True]
    hub.die()


def test_a_new_hub_is_told_what_is_open_and_what_was_typed(side: Side, path: Path) -> None:
    first = FakeHub(path)
    first.next()
    side.bench.raise_prompt()
    first.die()
    second = FakeHub(path)
    hello = second.next()
    assert hello["open"]["prompt_id"] == "p1"
    second.say(m="type", prompt_id="p1", answer={"kind": "yes", "value": ""})
    assert second.next() == {"m": "typed", "prompt_id": "p1", "outcome": "typed", "detail": ""}
    second.die()
    third = FakeHub(path)
    assert third.next()["typed"] == [["p1", "typed"]]
    third.say(m="type", prompt_id="p1", answer={"kind": "no", "value": ""})
    assert third.next()["outcome"] == "typed"
    assert side.bench.pty.typed() == b"y\r"
    third.die()


def test_asking_about_an_unknown_prompt_is_answered_with_none(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    hub.say(m="ask", prompt_id="p9")
    assert hub.next() == {"m": "typed", "prompt_id": "p9", "outcome": "none", "detail": ""}
    hub.die()


def test_a_known_effect_is_told_again(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    side.bench.raise_prompt()
    assert hub.next()["m"] == "raise"
    hub.say(m="type", prompt_id="p1", answer={"kind": "yes", "value": ""})
    hub.next()
    with side.bench.watch.lock:
        side.bench.detector.answers[WakeupDue] = [WithdrawPrompt("d1", "answered")]
        side.bench.watch.handle(WakeupDue())
    assert hub.next()["outcome"] == "taken"
    hub.say(m="ask", prompt_id="p1")
    assert [hub.next()["outcome"], hub.next()["outcome"]] == ["typed", "taken"]
    hub.die()


def test_the_screen_can_be_captured(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    side.bench.show(b"\x1b[1mhello")
    hub.say(m="capture", request="r1", styled=False)
    screen = hub.next()
    assert (screen["m"], screen["request"], screen["lines"][0]) == ("screen", "r1", "hello")
    hub.say(m="capture", request="r2", styled=True)
    assert hub.next()["styled"][0] == [["hello", None, None, 1]]
    hub.die()


def test_what_scrolled_off_is_captured_with_its_colours_and_without_its_secrets(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    key = "sk-ant-" + "a1b2c3d4" * 5
    side.bench.show(f"\x1b[32mfirst\x1b[m\r\nexport API_KEY={key}\r\n".encode() + b"x\r\n" * 60)
    hub.say(m="capture", request="r1", styled=True, past=True)
    screen = hub.next()
    assert screen["past"][0] == [["first", 2, None, 0]]
    assert key not in repr(screen)
    assert len(screen["styled"]) == screen["rows"]
    hub.say(m="capture", request="r2", styled=True)
    assert "past" not in hub.next()
    hub.die()


def test_a_screen_says_how_keys_are_to_be_sent(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    side.bench.show(b"\x1b[?1h\x1b[?2004h\x1b[?1000h")
    hub.say(m="capture", request="r1", styled=True)
    screen = hub.next()
    assert (screen["modes"], screen["alternate"]) == ([1, 2004], False)
    hub.die()


def test_keys_are_typed_and_kill_is_passed_on(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    hub.say(m="keys", data="\x1b[A\xe9")
    hub.say(m="kill", force=True)
    wait_for(lambda: side.killed, "the kill")
    assert side.killed == [True]
    assert side.bench.pty.typed() == b"\x1b[A\xe9"
    hub.die()


def test_a_hub_that_talks_nonsense_is_left_and_tried_again(side: Side, path: Path) -> None:
    hub = FakeHub(path)
    hub.next()
    hub.peer.sendall(b"this is not JSON\n")
    hub.accept_again()
    assert hub.next()["m"] == "hello"
    hub.die()


def test_the_end_is_told_even_to_a_hub_that_comes_back_late(side: Side, path: Path) -> None:
    waiter = threading.Thread(target=side.hub.say_farewell, args=(-15, side.bench.clock.now() + 600), daemon=True)
    wait_for(lambda: side.started, "the first try")
    waiter.start()
    hub = FakeHub(path)
    assert hub.next()["m"] == "hello"
    end = hub.next()
    assert (end["m"], end["exit_code"], end["status"]) == ("end", 143, -15)
    assert waiter.is_alive(), "until the hub has recorded it"
    hub.say(m="over")
    waiter.join()
    hub.die()
