"""The zygote's dress rehearsal: whole sessions that are answered, of which nothing is left but code that has run."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from atlasbridge import bootstrap
from atlasbridge.core.home import Home
from atlasbridge.core.host.edges import HostParts
from atlasbridge.core.host.zygote.dress import rehearse_sessions
from atlasbridge.core.tty import Pty, SpawnRefused
from atlasbridge.core.values import replace


class Stage:
    """The parts of real sessions, and what became of their tools."""

    def __init__(self) -> None:
        self.homes: list[Home] = []
        self.tools: list[Pty] = []

    def parts_of(self, home: Home) -> HostParts:
        parts = bootstrap.host_parts(home, {})

        def spawn(*given: Any) -> Pty:
            self.tools.append(parts.spawn(*given))
            return self.tools[-1]

        self.homes.append(home)
        return replace(parts, spawn=spawn)


def test_every_session_is_answered_and_nothing_is_left() -> None:
    stage = Stage()
    before = (set(os.listdir("/proc/self/fd")), threading.active_count(), signal.getsignal(signal.SIGCHLD))
    assert rehearse_sessions(stage.parts_of)
    assert (set(os.listdir("/proc/self/fd")), threading.active_count(), signal.getsignal(signal.SIGCHLD)) == before
    assert len(stage.tools) > 1
    assert [tool.poll() for tool in stage.tools] == [0] * len(stage.tools), "one of them had to be killed"
    assert not any(home.root.exists() for home in stage.homes)


def test_where_no_tool_starts_there_is_a_zygote_all_the_same() -> None:
    def refuse(*_: object) -> Pty:
        raise SpawnRefused("no pseudo-terminal", "", 1)

    threads = threading.active_count()
    assert rehearse_sessions(lambda home: replace(bootstrap.host_parts(home, {}), spawn=refuse))
    assert threading.active_count() == threads


def test_where_no_folder_can_be_made_there_is_a_zygote_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/no/such/folder")
    stage = Stage()
    assert rehearse_sessions(stage.parts_of)
    assert stage.homes == []
