"""Bytes and descriptors over one Unix socket: how a client lends its terminal, and hands over what it has open.

`caller` and the fork server receive them.  Every client imports this module, so it imports next to nothing.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.fast_imports import socket

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Sequence


_INT = 4


def send_with_fds(connection: socket.socket, data: bytes, fds: Sequence[int]) -> None:
    """All of `data`; the descriptors go with its first byte."""
    packed = b"".join(fd.to_bytes(_INT, sys.byteorder) for fd in fds)
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
    if sent < len(data):
        connection.sendall(data[sent:])


def unpack_fds(payload: bytes) -> list[int]:
    """The descriptors of one SCM_RIGHTS message; what was cut off is left out."""
    whole = len(payload) - len(payload) % _INT
    return [int.from_bytes(payload[place : place + _INT], sys.byteorder) for place in range(0, whole, _INT)]


def fill_standard_streams() -> None:
    """A closed standard stream would make our own sockets take its place."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def inheritable_fds() -> list[int]:
    """What a tool inherits from this process beside its terminal, such as a shell's `9<file`."""
    found = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the listing's own descriptor
    return sorted(found)
