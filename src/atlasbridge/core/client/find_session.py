"""Finds a running session's door by its id, or the first characters of it.  The sockets themselves are the truth."""

from __future__ import annotations

import socket
from pathlib import Path

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home


class NoSuchSession(AtlasBridgeError):
    pass


def find_session(home: Home, name: str) -> socket.socket:
    """A connection to the host of the session that `name` means; "" means the only one."""
    prefix = name.strip().lower()
    doors = [path for path in sorted(home.sessions.glob("*.sock")) if _matches(path.stem, prefix)]
    connected = [(path, connection) for path in doors if (connection := _connect(path)) is not None]
    if len(connected) == 1:
        return connected[0][1]
    for _, connection in connected:
        connection.close()
    if not connected:
        raise NoSuchSession(f"no running session {name!r}" if name else "no session runs", "list them: atlasbridge ps")
    names = ", ".join(path.stem for path, _ in connected)
    raise NoSuchSession(f"{name!r} means several sessions" if name else "several sessions run", f"say which: {names}")


def open_doors(home: Home) -> list[str]:
    """The short ids of the sessions whose host listens."""
    found = [(path.stem, _connect(path)) for path in sorted(home.sessions.glob("*.sock"))]
    for _, connection in found:
        if connection is not None:
            connection.close()
    return [stem for stem, connection in found if connection is not None]


def _matches(stem: str, prefix: str) -> bool:
    return stem.startswith(prefix) if len(prefix) <= len(stem) else prefix.startswith(stem)


def _connect(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(path))
    except ConnectionRefusedError:
        connection.close()
        path.unlink(missing_ok=True)  # its host was killed
        return None
    except OSError:
        connection.close()
        return None
    return connection
