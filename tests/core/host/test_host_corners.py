"""An adversary's view of the session: effects judged too early, a link that is replaced, a hub that hangs up."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.session_fakes import Bench

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.host.hub_link import HubLink
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.typed import Outcome
from atlasbridge.core.session.settings import SessionSettings


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with tempfile.TemporaryDirectory(prefix="ab-") as folder:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.bind(str(Path(folder) / "s"))
        made.listen()
        made.settimeout(60)
        yield made
        made.close()


def link_to(listener: socket.socket) -> HubLink:
    def greet(say: Any) -> None:
        say({"m": "hello"})

    path = listener.getsockname()
    return HubLink(path, SystemClock(), SessionSettings(), greet, lambda message: None, lambda: None)


def start(link: HubLink) -> tuple[Beat, threading.Thread]:
    beat = Beat(SystemClock())
    thread = threading.Thread(target=link.run, args=(beat,), daemon=True)
    thread.start()
    return beat, thread


def hear(peer: socket.socket, kind: str) -> dict[str, Any]:
    buffer = wire.LineBuffer()
    peer.settimeout(60)
    while True:
        data = peer.recv(65536)
        assert data, "the host went away"
        for message in buffer.feed(data):
            if message["m"] == kind:
                return message


def test_an_effect_is_not_judged_while_the_answer_is_still_being_typed() -> None:
    bench = Bench()
    bench.raise_prompt()
    bench.watch.begin_typing("p1", "d1", several=True)
    bench.clock.advance(bench.settings.effect_timeout_s + 1)
    bench.watch.step(bench.clock.now())
    assert bench.posted == []
    assert bench.watch.due(bench.clock.now()) is None
    bench.watch.end_typing("p1", Outcome("typed"))
    bench.clock.advance(bench.settings.effect_timeout_s + 1)
    bench.watch.step(bench.clock.now())
    assert bench.posted == [{"m": "effect", "prompt_id": "p1", "outcome": "still_there"}]
    bench.pty.close()


def test_a_link_that_was_replaced_does_not_silence_its_successor(listener: socket.socket) -> None:
    link = link_to(listener)
    old_beat, old_thread = start(link)
    old, _ = listener.accept()
    hear(old, "hello")
    old_beat.retired = True  # it was taken for stuck
    start(link)
    new, _ = listener.accept()
    hear(new, "hello")
    old.close()  # now the old thread notices, and leaves
    old_thread.join()
    assert not old_thread.is_alive()
    assert link.connected
    link.post({"m": "raise"})
    assert hear(new, "raise") == {"m": "raise"}
    link.stop()
    new.close()


def test_a_hub_that_hangs_up_at_once_is_not_hammered(listener: socket.socket) -> None:
    clock = SystemClock()
    link = link_to(listener)
    start(link)
    began = clock.now()
    for _ in range(4):
        peer, _ = listener.accept()
        peer.close()
    link.stop()
    assert clock.now() - began >= 3 * SessionSettings().hub_retry_min_s * 0.8
