"""Which process comes to a hub's port, where the system tells it only of Unix sockets (Linux): beside its port the hub
listens at a Unix socket that has a name and no file, and who proves at the port that it has the key says there, too,
which connection is its own.  The kernel notes who said so; tables of open files, which our own processes hide, are not
needed.

The port's handshake is `loopback`'s; what the hub makes of a process is decided elsewhere.
"""

from __future__ import annotations

import socket
import sys

CARD = 32  # bytes that say which connection is meant
NOTED = b"\1"
_NAME = 32  # letters of the socket's name that only those who have the key can know


def has_introductions() -> bool:
    return sys.platform == "linux" and hasattr(socket, "AF_UNIX")


def meeting_place(port: int, key: bytes) -> str:
    """Unlike any other hub's, and nobody's who has not read this one's file."""
    return "\0atlasbridge-" + _digest(port, key, b"place").hex()[:_NAME]


def card_of(port: int, key: bytes, of_peer: bytes, of_hub: bytes) -> bytes:
    """Good for the one connection on which these two numbers were made up."""
    return _digest(port, key, b"card", of_peer, of_hub)


def introduce(port: int, key: bytes, of_peer: bytes, of_hub: bytes, patience_s: float) -> bool:
    """Whether the hub has noted who we are; False: it is an older one, or too busy, and finds out as well as it can."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            link.settimeout(patience_s)
            link.connect(meeting_place(port, key))
            link.sendall(card_of(port, key, of_peer, of_hub))
            return link.recv(len(NOTED)) == NOTED
        except OSError:
            return False


def _digest(port: int, key: bytes, about: bytes, of_peer: bytes = b"", of_hub: bytes = b"") -> bytes:
    import hmac  # not before it is needed: most hosts never come here

    words = b"\0".join((b"atlasbridge introduction", about, str(port).encode(), of_peer + of_hub))
    return hmac.digest(key, words, "sha256")
