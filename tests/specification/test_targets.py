"""The documents' figures that hold on any machine; the others are measured by `make bench`."""

from __future__ import annotations

from pathlib import Path

from tests.support.hubs import hub_process
from tests.support.terminal import ATLASBRIDGE, Terminal

FLOOD = "head -c 5000000 /dev/urandom | base64; printf 'Continue? (y/n) '; read answer"
MOST_KB = 50 * 1024


def test_a_session_under_a_flood_stays_below_fifty_megabytes() -> None:
    command = (*ATLASBRIDGE, "run", "--", "sh", "-c", FLOOD)
    with hub_process() as hub, Terminal(command, hub.home.root, env=hub.environ) as terminal:
        terminal.wait_until(hub.is_asked, "the prompt behind the flood")
        (session,) = hub.ask("sessions")["sessions"]
        status = Path(f"/proc/{session['host_pid']}/status").read_text()
        most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
        assert most < MOST_KB
        terminal.type("y\r")
        assert terminal.wait_exit() == 0
