"""The one way to a hub: by its Unix socket, or by a port of this machine with a key.

The hub decides which when it starts and leaves either its socket or the file with its port: who comes looks what is
there.  Commands, session hosts, doors and the library all connect here.
"""

from __future__ import annotations

import socket
import struct
from pathlib import Path

from atlasbridge.core.loopback import connect_loopback, pass_file, read_pass

LOOPBACK, AUTO = "loopback", "auto"


def has_unix_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def wants_loopback(transport: str) -> bool:
    """What `hub.transport` means here."""
    return transport == LOOPBACK or not has_unix_sockets()


def dial(socket_path: Path | str, timeout_s: float | None = None) -> socket.socket:
    """A connected socket to the hub that listens there.  Raises OSError: BlockingIOError where it does not answer."""
    issued = read_pass(pass_file(socket_path))
    if issued is not None:
        return connect_loopback(issued, timeout_s)
    if not has_unix_sockets():
        raise ConnectionRefusedError("no hub has left its address")
    return _connect_unix(str(socket_path), timeout_s)


def _connect_unix(path: str, timeout_s: float | None) -> socket.socket:
    """A hub before whose door many stand is waited for by the kernel: a socket with a time limit of Python's own would
    be turned away at once, as if no hub were there."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if timeout_s is not None:
            limit = struct.pack("ll", int(timeout_s), int(timeout_s % 1 * 1_000_000))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        link.connect(path)
        if timeout_s is not None:
            link.settimeout(timeout_s)
    except OSError:
        link.close()
        raise
    return link


def left_address(socket_path: Path) -> Path | None:
    """The file by which a hub can be found; None: no hub has left one."""
    return next((path for path in (pass_file(socket_path), socket_path) if path.exists()), None)
