"""Who is at the other end of a Unix socket: user and process, as the kernel noted them when it connected."""

from __future__ import annotations

import os
import socket
import struct
import sys
from typing import Protocol

from atlasbridge.core.values import frozen

_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 0x001, 0x002  # of macOS; the BSDs have the first
_XUCRED = "IIh"  # version, uid, group count
NOBODY = -1


class _Link(Protocol):
    """A socket, of the public module or of its C half."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


@frozen
class Peer:
    """`pid` is 0 and `uid` is -1 where the system does not say.  `started` tells it from a later one of that number."""

    pid: int
    uid: int
    started: int = 0


def own_uid() -> int:
    """This user's number; 0 where users have none."""
    return os.getuid() if hasattr(os, "getuid") else 0


def read_peer(link: _Link) -> Peer:
    try:
        if sys.platform == "linux":
            credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid, uid, _ = struct.unpack("3i", credentials)
            return Peer(pid, uid)
        uid = struct.unpack_from(_XUCRED, link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 256))[1]
    except OSError:
        return Peer(0, NOBODY)
    return Peer(_peer_pid(link), int(uid))


def _peer_pid(link: _Link) -> int:
    try:
        return int(struct.unpack("i", link.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, 4))[0])
    except OSError:
        return 0
