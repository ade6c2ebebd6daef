"""The documents' figures that hold on any machine; medians, so that one slow moment does not count."""

from __future__ import annotations

import json
import statistics
import sys
import time
from datetime import datetime
from functools import partial
from pathlib import Path

from tests.support.hubs import HubProcess, hub_process
from tests.support.terminal import ATLASBRIDGE, Terminal

FLOOD = "head -c 2000000 /dev/urandom | base64; printf 'Continue? (y/n) '; read answer"
MOST_KB = 50 * 1024


def test_a_session_under_a_flood_stays_below_fifty_megabytes() -> None:
    command = (*ATLASBRIDGE, "run", "--", "sh", "-c", FLOOD)
    with hub_process(cold=True) as hub, Terminal(command, hub.home.root, env=hub.environ) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt behind the flood")
        (session,) = hub.ask("sessions")["sessions"]
        status = Path(f"/proc/{session['host_pid']}/status").read_text()
        most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert most < MOST_KB
        terminal.type("y\r")
        assert terminal.wait_exit() == 0


def test_output_reaches_the_terminal_within_fifty_milliseconds() -> None:
    """There and back: a key to the tool, and the tool's own answer to it."""
    echo = "stty raw -echo; printf ready; exec cat"
    took_s = []
    with hub_process(cold=True) as hub:
        command = (*ATLASBRIDGE, "run", "--", "sh", "-c", echo)
        with Terminal(command, hub.home.root, env=hub.environ) as terminal:
            terminal.wait_for("ready")
            for number in range(40):
                word = f"<{number}>"
                began = time.monotonic()
                terminal.type(word)
                while not terminal.output.endswith(word.encode()):
                    terminal.pump()
                took_s.append(time.monotonic() - began)
    assert statistics.median(took_s) < 0.050


def is_asked(hub: HubProcess, wanted: str) -> bool:
    return wanted in str(hub.ask("prompts"))


def test_a_reply_is_typed_within_a_hundred_milliseconds() -> None:
    asking = "for number in range(10): input(f'Continue with {number}? (y/n) ')"
    with hub_process(cold=True) as hub:
        command = (*ATLASBRIDGE, "run", "--", sys.executable, "-c", asking)
        with Terminal(command, hub.home.root, env=hub.environ) as terminal:
            for number in range(10):
                wanted = f"Continue with {number}?"
                terminal.wait_until(partial(is_asked, hub, wanted), wanted)
                (prompt,) = hub.ask("prompts")["prompts"]
                assert hub.cli("reply", prompt["prompt_id"], "y").returncode == 0
            assert terminal.wait_exit() == 0
        entries = [json.loads(line) for line in (hub.home.root / "audit.log").read_text().splitlines()]
    at = {
        name: {one["prompt_id"]: datetime.fromisoformat(one["ts"]) for one in entries if one["event"] == name}
        for name in ("REPLY_RECEIVED", "REPLY_INJECTED")
    }
    assert len(at["REPLY_INJECTED"]) == 10
    took_s = [(typed - at["REPLY_RECEIVED"][one]).total_seconds() for one, typed in at["REPLY_INJECTED"].items()]
    assert statistics.median(took_s) < 0.100
