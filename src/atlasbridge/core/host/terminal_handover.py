"""Sends bytes and descriptors over a Unix socket: how a client passes its terminal and its open files to the host.

`attach_socket` and the fork server receive them. Every client imports this module, so it imports almost nothing.
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
    """Sends all of `data`; the descriptors go with its first byte."""
    packed = b"".join(fd.to_bytes(_INT, sys.byteorder) for fd in fds)
    sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
    if sent < len(data):
        connection.sendall(data[sent:])


def unpack_fds(payload: bytes) -> list[int]:
    """The descriptors of one SCM_RIGHTS message; an incomplete one is ignored."""
    whole = len(payload) - len(payload) % _INT
    return [int.from_bytes(payload[place : place + _INT], sys.byteorder) for place in range(0, whole, _INT)]


def fill_standard_streams() -> None:
    """Opens closed standard streams, because our own sockets would get their numbers otherwise."""
    for standard in (0, 1, 2):
        try:
            os.fstat(standard)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)


def inheritable_fds() -> list[int]:
    """The descriptors that a tool inherits from this process besides its terminal, such as a shell's `9<file`."""
    found = []
    for name in os.listdir("/dev/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the descriptor of the listing itself
    return sorted(found)
