"""The session hosts of a test's own home and the tools they run: found by their sockets, looked at, ended."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
from pathlib import Path

from tests.support.waiting import wait_for

from atlasbridge.core.peer import MARK


def host_pids(home: Path) -> list[int]:
    """The processes that listen on the attach sockets of this home's sessions."""
    return [pid for path in sorted((home / "sessions").glob("*.sock")) if (pid := _holder(path))]


def _holder(path: Path) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return 0
        return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def tool_pid(home: Path) -> int:
    """The child of the session's host that leads a session of its own."""
    (host,) = host_pids(home)
    children = Path(f"/proc/{host}/task/{host}/children").read_text().split()
    (pid,) = [int(child) for child in children if os.getsid(int(child)) == int(child)]
    return pid


def terminal_is_lent(home: Path) -> bool:
    """Whether the tool, a shell, has given its terminal to a job: the keys that follow are the job's."""
    tool = tool_pid(home)
    foreground = Path(f"/proc/{tool}/stat").read_text().rpartition(")")[2].split()[5]
    return int(foreground) not in (tool, -1)


def stop_process(pid: int) -> None:
    """SIGSTOP, and wait until each of its threads stands: until then one of them can still answer."""
    os.kill(pid, signal.SIGSTOP)
    threads = Path(f"/proc/{pid}/task")
    wait_for(lambda: all(") T " in path.read_text() for path in threads.glob("*/stat")), "all threads to stand")


def end_sessions(home: Path) -> None:
    """The tool dies with its terminal, which dies with the host."""
    for pid in host_pids(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def end_all(home: Path) -> None:
    """Whatever was started for this home, a hub that is just coming up included: its environment says whose it is."""
    marks, hosts = _marks(home), host_pids(home)
    end_sessions(home)
    # One that was forked has not this home in its environment. It can start a hub until it is gone, so it comes first.
    while pids := [*(pid for pid in hosts if _lives(pid)), *_marked(marks)]:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def processes_of(home: Path) -> list[int]:
    return _marked(_marks(home))


def _marks(home: Path) -> list[bytes]:
    tools = [f"{MARK}={path.stem}".encode() for path in (home / "sessions").glob("*.sock")]  # and what they left
    return [f"ATLASBRIDGE_HOME={home}\0".encode(), *tools]


def _marked(marks: list[bytes]) -> list[int]:
    return [pid for pid in _processes() if any(mark in _environ(pid) + b"\0" for mark in marks)]


def _processes() -> list[int]:
    """None where the system does not list them as files."""
    found = Path("/proc").glob("[0-9]*")
    return [pid for path in found if (pid := int(path.name)) != os.getpid()]


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def wait_no_session(home: Path) -> None:
    wait_for(lambda: not host_pids(home), "the session to end")
