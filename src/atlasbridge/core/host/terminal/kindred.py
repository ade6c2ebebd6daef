"""Whether whoever comes to a session's door was started inside a session: a tool must not be its own person.

Where a process comes from is read by `core.kin`; the hub's own socket has its own list of sessions.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from atlasbridge.core.kin import Household, decide_kin, look_at, trace_line
from atlasbridge.core.peer import Peer, read_peer

_PATIENCE_S = 0.2


def is_kindred(peer: Peer, tool_pid: int, doors: Path, own: Path) -> bool:
    """Also true where it cannot be told: a person's terminal is there as long as the person is."""
    line = trace_line(peer.pid, look_at) if peer.pid > 0 else ()
    if not line:
        return True
    homes = [Household(own.stem, os.getpid(), tool_pid)]
    homes += [Household(door.stem, host, 0) for door in doors.glob("*.sock") if door != own and (host := _holder(door))]
    return bool(decide_kin(line, homes))


def is_inside(peer: Peer, tool_pid: int) -> bool:
    """Whether it is this host's own tool, or was started by it and still hangs on it, as its hooks do.  What a command
    of the tool left behind is the host's own child: it speaks for nobody, nor does whoever is gone meanwhile."""
    line = [process.pid for process in (trace_line(peer.pid, look_at) if peer.pid > 0 else ())]
    return tool_pid in line and os.getpid() in line[line.index(tool_pid) + 1 :]


def _holder(door: Path) -> int:
    """The host behind another session's door; 0: nobody is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        try:
            connection.connect(str(door))
        except OSError:
            return 0
        return read_peer(connection).pid
