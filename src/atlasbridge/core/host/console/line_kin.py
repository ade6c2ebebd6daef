"""Whether whoever came over a session's line is a person's console, or speaks for the session's own tool.

The same rules as at a socket (`terminal.kindred`); who is at the other end is found by the system's tables.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from atlasbridge.core.host.console.line_door import Whose
from atlasbridge.core.kin import Household, Look, Process, decide_kin, look_at, trace_line
from atlasbridge.core.loopback import HOST, SUFFIX, pass_file, read_pass
from atlasbridge.core.peer import Peer
from atlasbridge.core.values import replace

_PATIENCE_S = 0.5


def is_kindred(peer: Peer, tool_pid: int, own: Path, whose: Whose, look: Look = look_at) -> bool:
    """Whether it was started inside a session; also true where that cannot be told.  `own`: this session's door."""
    line = trace_line(peer.pid, look) if peer.pid > 0 else ()
    if not line:
        return True
    homes = [Household(own.stem, os.getpid(), tool_pid)]
    for file in own.parent.glob(f"*{SUFFIX}"):
        if file != pass_file(own) and (host := _holder(file, whose)):
            homes.append(Household(file.stem, host, 0))
    return bool(decide_kin(line, homes))


def is_inside(peer: Peer, tool_pid: int, look: Look = look_at) -> bool:
    """Whether it is this session's tool, or was started by it and still hangs on it, as its hooks do.  What is above
    this process is not asked: whoever started it may be gone."""
    here = os.getpid()

    def look_up_to_us(pid: int) -> Process | None:
        found = look(pid)
        return found if found is None or pid != here else replace(found, parent=0)

    line = [process.pid for process in (trace_line(peer.pid, look_up_to_us) if peer.pid > 0 else ())]
    return tool_pid in line and here in line[line.index(tool_pid) + 1 :]


def _holder(file: Path, whose: Whose) -> int:
    """The host behind another session's line; 0: nobody is there."""
    issued = read_pass(file)
    if issued is None:
        return 0
    try:
        with socket.create_connection((HOST, issued.port), _PATIENCE_S) as link:
            return whose(link.getpeername(), link.getsockname()).pid
    except OSError:
        return 0
