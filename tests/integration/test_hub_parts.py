"""Smaller parts of the hub: the lock, the log, the stream of events, the scheduler, launchers."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.hubs import NO_WEB, hub_process
from tests.support.sessions import end_sessions
from tests.support.waiting import wait_for

from atlasbridge.bootstrap import plan_hub
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.daemon import parts as stream_module
from atlasbridge.core.daemon.log_file import JsonLines
from atlasbridge.core.daemon.parts import EventStream
from atlasbridge.core.daemon.request import HubLock, lock_holder
from atlasbridge.core.errors import AtlasBridgeError, StoreError
from atlasbridge.core.home import Home
from atlasbridge.core.scheduler.service import Scheduler


def test_one_holder_at_a_time_and_its_process_is_known(tmp_path: Path) -> None:
    first, second = HubLock(tmp_path / "lock"), HubLock(tmp_path / "lock")
    assert lock_holder(tmp_path / "lock") is None
    assert first.acquire() and not second.acquire()
    script = (
        "import sys; from pathlib import Path; from atlasbridge.core.daemon.request import lock_holder\n"
        "print(lock_holder(Path(sys.argv[1])))"
    )
    seen = subprocess.run([sys.executable, "-c", script, str(tmp_path / "lock")], capture_output=True, text=True)
    assert int(seen.stdout) == os.getpid()
    first.release()
    assert second.acquire()
    second.release()


def test_the_log_rotates_and_is_private(tmp_path: Path) -> None:
    script = (
        "import logging, sys; from pathlib import Path; from atlasbridge.core.daemon.log_file import open_log\n"
        "open_log(Path(sys.argv[1]), 'info', 10_000, 2, False)\n"
        "[logging.getLogger('atlasbridge.x').info('line %s', 'y' * 100) for _ in range(500)]\n"
        "logging.getLogger('httpx').info('https://api/botSECRET/getMe')\n"
    )
    path = tmp_path / "hub.log"
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    files = sorted(tmp_path.glob("hub.log*"))
    assert [file.name for file in files] == ["hub.log", "hub.log.1", "hub.log.2"]
    assert all(file.stat().st_size <= 10_000 for file in files)
    assert "SECRET" not in "".join(file.read_text() for file in files)


def test_a_warning_of_a_library_is_an_entry_of_the_log() -> None:
    """A line that is not JSON stops whatever reads the log."""
    script = (
        "import os, warnings; from pathlib import Path; from atlasbridge.core.daemon.log_file import open_log\n"
        "open_log(Path(os.devnull), 'info', 0, 0, to_terminal=True, as_json=True)\n"
        "warnings.warn('use another module instead', FutureWarning)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    (entry,) = map(json.loads, done.stderr.splitlines())
    assert entry["level"] == "warning" and "use another module instead" in entry["message"]


def test_a_log_line_cannot_be_forged_by_what_it_quotes() -> None:
    record = logging.LogRecord("atlasbridge.a", logging.INFO, "", 0, "said %s", ('x\n{"level": "error"}\x1b[2J',), None)
    line = JsonLines().format(record)
    assert "\n" not in line and "\x1b" not in line
    assert json.loads(line)["level"] == "info"


async def test_a_listener_that_falls_behind_loses_its_place_and_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "QUEUE_LIMIT", 3)
    stream = EventStream(ManualClock())
    slow, quick = stream.listen(), stream.listen()
    for number in range(5):
        stream.publish("x", number=number)
        assert (await anext(quick))["number"] == number
    assert [event["number"] async for event in slow] == [0, 1, 2]


async def test_what_a_full_disk_put_off_is_done_later() -> None:
    clock, tries = ManualClock(), []
    scheduler = Scheduler(clock)

    def action() -> None:
        tries.append(clock.now())
        if len(tries) == 1:
            raise StoreError("disk full")

    scheduler.set("a", clock.now() + 1, action)
    for _ in range(4):
        clock.advance(3)
        scheduler.run_due()
    assert len(tries) == 2


async def test_an_action_may_cancel_one_that_is_due_at_the_same_moment() -> None:
    clock, done = ManualClock(), []
    scheduler = Scheduler(clock)
    scheduler.set("a", clock.now() + 1, lambda: scheduler.cancel("b"))
    scheduler.set("b", clock.now() + 2, lambda: done.append("b"))
    clock.advance(5)
    assert scheduler.run_due() is None and done == []


def test_a_home_whose_path_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AtlasBridgeError, match="too long for a socket"):
        Home(tmp_path / ("x" * 100)).prepare()


async def test_a_configured_session_can_be_started_from_afar() -> None:
    config = NO_WEB + '[[launchers]]\nname = "nap"\ncommand = ["sleep", "60"]\ncwd = "/"\n'
    with hub_process(config) as hub:
        (launcher,) = plan_hub(hub.home, {}).launchers
        try:
            session_id = await launcher.launch("", (), "noon")
            await asyncio.to_thread(wait_for, lambda: hub.ask("sessions")["sessions"] != [])
            (session,) = hub.ask("sessions")["sessions"]
            assert session["session_id"] == session_id and session["tool"] == "sleep" and session["cwd"] == "/"
        finally:
            end_sessions(hub.home.root)


def test_a_bad_configuration_keeps_run_from_starting_anything(tmp_path: Path) -> None:
    with hub_process("[session]\nkill_grace_seconds = -1\n", start=False) as hub:
        done = hub.cli("run", "--", "touch", str(tmp_path / "touched"))
        assert done.returncode == 2 and "config.toml line 2: session.kill_grace_seconds" in done.stderr
        assert not (tmp_path / "touched").exists() and hub.pid == 0
