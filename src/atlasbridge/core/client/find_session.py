"""Finds a running session's socket by its id. It relies only on the sockets themselves."""

from __future__ import annotations

import socket
from pathlib import Path

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import SUFFIX, Stranger, connect_loopback, has_unix_sockets, read_pass
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import FalsePeer, prove_host

_PATIENCE_S = 5.0


class NoSuchSession(AtlasBridgeError):
    pass


def find_session(home: Home, session_id: str) -> socket.socket:
    """Returns a connection to the session's host. The short id is enough: a socket has no other name."""
    for path in _attach_sockets(home):
        if path.stem == short_id(session_id) and (connection := _connect(path)) is not None:
            return connection
    raise NoSuchSession(f"no running session {session_id!r}", "list them with: atlasbridge ps")


def is_port(connection: socket.socket) -> bool:
    """Whether it leads to a session on a TCP port: no terminal can be passed over it."""
    return connection.family == socket.AF_INET


def listening_sessions(home: Home) -> list[str]:
    """The short ids of the sessions whose host listens."""
    found = [(path.stem, _connect(path)) for path in _attach_sockets(home)]
    for _, connection in found:
        if connection is not None:
            connection.close()
    return [stem for stem, connection in found if connection is not None]


def _attach_sockets(home: Home) -> list[Path]:
    """Unix sockets, if the system has them, and ports with a key, which sessions on a Windows console use."""
    kinds = (".sock", SUFFIX) if has_unix_sockets() else (SUFFIX,)
    return sorted(path for kind in kinds for path in home.sessions.glob(f"*{kind}"))


def _connect(path: Path) -> socket.socket | None:
    return _connect_port(path) if path.suffix == SUFFIX else _connect_socket(path)


def _connect_port(path: Path) -> socket.socket | None:
    issued = read_pass(path)
    if issued is None:
        return None
    try:
        connection = connect_loopback(issued, _PATIENCE_S)
    except (ConnectionRefusedError, Stranger):
        path.unlink(missing_ok=True)  # its host was killed, and the port is free or used by another program
        return None
    except OSError:
        return None
    connection.settimeout(None)
    return connection


def _connect_socket(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
        prove_host(connection)
    except FalsePeer:
        connection.close()  # a tool has created it: we send nothing to it
        return None
    except ConnectionRefusedError:
        connection.close()
        path.unlink(missing_ok=True)  # its host was killed
        return None
    except OSError:
        connection.close()
        return None
    return connection
