"""A task of the session that cannot be kept alive ends the session: with a clear message and a restored terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.sessions import wait_no_session
from tests.support.terminal import Terminal

BROKEN = """
import os
import sys
os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # what is broken here is this process: the host must be forked from it
import atlasbridge.bootstrap as bootstrap
from atlasbridge.core.host.analysis import HostParts
make = bootstrap.host_parts
def broken(*given, **named):
    parts = make(*given, **named)
    def judge(*_):
        raise RuntimeError("no judgement today")
    return HostParts(parts.spawn, judge, parts.encode, parts.start_hub, parts.hub_path)
bootstrap.host_parts = broken
sys.argv = ["atlasbridge", "run", "--no-hub", "--", *sys.argv[1:]]
from atlasbridge.__main__ import main
main()
"""


def test_a_session_whose_watchdog_always_fails_says_so_and_ends(home: Path) -> None:
    with Terminal((sys.executable, "-c", BROKEN, "sh", "-c", "echo ready; exec sleep 1000"), home) as terminal:
        terminal.wait_for("ready")
        assert terminal.wait_exit(60) != 0
        assert "stall_watchdog failed too often; the session was ended" in terminal.text()
        assert terminal.settings() == terminal.settings_before
    log = "".join(path.read_text() for path in (home / "sessions").glob("*.log"))  # one may be of who started a zygote
    assert log.count("stall_watchdog crashed") == 4
    assert "no judgement today" in log
    wait_no_session(home)


def test_a_short_tool_is_not_disturbed_by_a_broken_watchdog(home: Path) -> None:
    with Terminal((sys.executable, "-c", BROKEN, "sh", "-c", "echo fine; exit 3"), home) as terminal:
        assert terminal.wait_exit() == 3
        assert "fine" in terminal.text()
        assert terminal.settings() == terminal.settings_before
