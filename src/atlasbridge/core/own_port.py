"""A port of this machine that is ours alone.  Windows lets another program listen at the same one, or take it over, if
either of them allows it by an option that on Unix only means "also after a restart"."""

from __future__ import annotations

import errno
import os
import socket


def bind_alone(host: str, port: int) -> socket.socket:
    """A socket that is bound there and does not listen yet; 0: at any free port.  Raises OSError."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if alone is None else alone, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def is_taken(fault: OSError) -> bool:
    """Whether another program has the port, and not something else is wrong.  Windows denies the access to a port that
    another has for itself."""
    return fault.errno == errno.EADDRINUSE or (os.name == "nt" and fault.errno == errno.EACCES)
