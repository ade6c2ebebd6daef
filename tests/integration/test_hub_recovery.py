"""A hub that is killed while a real tool waits: a new one takes over, and the answer is typed once."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

from tests.support.hubs import HubProcess, hub_process
from tests.support.sessions import end_sessions
from tests.support.waiting import wait_for

from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.peer import read_peer

ASK = 'read -p "Continue? (y/n) " a; echo "got=$a" >> "$OUT"; read -p "Really? (y/n) " b; echo "got=$b" >> "$OUT"'


def is_asked(hub: HubProcess) -> bool:
    try:
        return hub.is_asked()
    except HubUnavailable:
        return False


def test_a_new_hub_takes_over_by_itself_and_an_answer_is_typed_once(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with hub_process() as hub:
        hub.environ["OUT"] = str(out)
        assert hub.cli("run", "--detach", "--", "bash", "-c", ASK).returncode == 0
        try:
            wait_for(lambda: is_asked(hub))
            (before,) = hub.ask("prompts")["prompts"]
            killed = hub.pid
            os.kill(killed, signal.SIGKILL)
            wait_for(lambda: hub.pid not in (0, killed) and is_asked(hub))
            (after,) = hub.ask("prompts")["prompts"]
            assert after["prompt_id"] == before["prompt_id"]
            wait_for(lambda: hub.cli("reply", before["prompt_id"], "y").returncode == 0)
            wait_for(lambda: out.exists() and out.read_text() == "got=y\n")
            refused = hub.cli("reply", before["prompt_id"], "y", "--json")
            assert refused.returncode == 3 and json.loads(refused.stdout)["reason"] == "not_open"
            assert hub.json("audit", "verify")["ok"] is True
        finally:
            end_sessions(hub.home.root)


def test_a_hub_that_was_stopped_on_purpose_stays_stopped() -> None:
    with hub_process() as hub:
        assert hub.cli("run", "--detach", "--", "sleep", "60").returncode == 0
        try:
            wait_for(lambda: hub.ask("sessions")["sessions"] != [])
            assert hub.cli("hub", "stop").returncode == 0
            done = hub.cli("hub", "status")  # takes longer than a host would take to start one
            assert done.returncode == 1 and hub.pid == 0
            hub.start()
            wait_for(lambda: hub.ask("sessions")["sessions"] != [])
        finally:
            end_sessions(hub.home.root)


def test_the_kernel_says_who_is_at_the_other_end() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs:
        assert read_peer(ours).uid == os.getuid()
