"""Host, hub and commands hide their memory from other programs of the same user; the tool is as it ever was."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.support.hubs import hub_process
from tests.support.sessions import end_sessions, host_pids
from tests.support.waiting import wait_for, written

# Root may look into everything, and nobody into root: here all give such rights up, and only the user's number is left.
PLAIN = """
import ctypes, os, sys
for capability in range(64):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
PEEK = """
import sys
for pid in sys.argv[1:]:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            print("open" if file.read() else "empty")
    except PermissionError:
        print("hidden")
"""


def plainly(*command: str) -> list[str]:
    return [sys.executable, "-ISc", PLAIN, *command]


def peek(*pids: int) -> list[str]:
    """What another program of this user, with no rights beyond that, sees of these processes."""
    command = plainly(sys.executable, "-ISc", PEEK, *map(str, pids))
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_hub_host_and_command_are_hidden_and_the_tool_is_not() -> None:
    with hub_process(start=False, cold=True) as hub:
        product = hub.command
        hub.command = lambda *words: plainly(*product(*words))  # type: ignore[method-assign]
        assert hub.cli("run", "--detach", "--", "sleep", "60").returncode == 0
        (session,) = hub.ask("sessions")["sessions"]
        (host,) = host_pids(hub.home.root)
        following = hub.popen("events", "--json", "--follow")
        wait_for(lambda: peek(following.pid) == ["hidden"])
        assert peek(hub.pid, host, session["pid"]) == ["hidden", "hidden", "open"]
        following.terminate()
        following.communicate()
        end_sessions(hub.home.root)


def test_the_tool_knows_its_session_and_nothing_else_of_ours() -> None:
    with hub_process(cold=True) as hub:
        show = (
            'import os, json; print(json.dumps({n: v for n, v in os.environ.items() if n.startswith("ATLASBRIDGE")}))'
        )
        shown = hub.cli("run", "--no-hub", "--", sys.executable, "-c", show)
        told = json.loads(shown.stdout)
        assert list(told) == ["ATLASBRIDGE_SESSION"] and len(told["ATLASBRIDGE_SESSION"]) == 36


def test_an_orphan_of_the_tool_becomes_the_hosts_child_and_leaves_no_zombie(tmp_path: Path) -> None:
    """Also when it ends long after its parent, while the session goes on."""
    noted, go = tmp_path / "orphan", tmp_path / "go"
    linger = f"echo $$ > '{noted}'; until [ -e '{go}' ]; do sleep 0.05; done"
    leave = f"(setsid sh -c {shlex.quote(linger)} &) ; exec sleep 60"
    with hub_process(cold=True) as hub:
        assert hub.cli("run", "--detach", "--", "sh", "-c", leave).returncode == 0
        orphan = int(written(noted))
        (host,) = host_pids(hub.home.root)
        with open(f"/proc/{orphan}/stat") as file:
            parent = int(file.read().rpartition(")")[2].split()[1])
        assert parent == host
        go.touch()
        wait_for(lambda: not os.path.exists(f"/proc/{orphan}"))
        assert host_pids(hub.home.root) == [host]
        end_sessions(hub.home.root)
