"""Sockets of this machine, from the kernel's socket diagnostics (NETLINK_SOCK_DIAG, no privilege needed): which side
sent last on a TCP connection, whether a socket waits for calls, what is at its other end, and whose it is.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterable
from ipaddress import ip_address

from atlasbridge.core.values import frozen

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST, _REQUEST_DUMP = 0x001, 0x301
_DONE, _ERROR = 3, 2
_INFO = 2  # attribute with struct tcp_info
_ESTABLISHED, _SYN_SENT, _LISTEN = 1, 2, 10
_STATES = 1 << _ESTABLISHED | 1 << _SYN_SENT | 1 << _LISTEN
_MAX_MESSAGES = 200  # of up to 32 KB; a busy server has too many sockets for a long look
_UNIX_SHOW_PEER, _UNIX_PEER = 4, 2
_PATIENCE_S = 1.0
_STREAMING_MS = 300
_NO_COOKIE = b"\xff" * 8


@frozen
class Connection:
    inode: int
    state: int
    local: bytes  # port and address
    remote: bytes
    sent_ms: int = 0  # since data was last sent
    received_ms: int = 0
    unanswered: bool = False  # sent something, never received a byte


def pending(inodes: set[int], since_ms: float) -> str:
    """Why work is in progress on one of these sockets; "" if none waits for an answer.

    Only requests sent within `since_ms` count. Sockets that these programs accepted, and connections among them, are
    not requests.
    """
    if not inodes:
        return ""
    ours = [connection for connection in connections() if connection.inode in inodes]
    served = {one.local[:2] for one in ours if one.state == _LISTEN}
    ends = {one.local for one in ours}
    for one in ours:
        if one.state != _LISTEN and one.local[:2] not in served and one.remote not in ends:
            why = _waiting_for(one, since_ms)
            if why:
                return why
    return ""


def listens(inodes: Iterable[int]) -> bool:
    """Whether one of these TCP sockets listens."""
    wanted = {inode for inode in inodes if inode}
    return bool(wanted) and any(
        connection.state == _LISTEN and connection.inode in wanted for connection in connections()
    )


def awaits_calls(inodes: Iterable[int]) -> bool:
    """Whether one of these TCP or Unix sockets listens."""
    known = set(inodes)
    return listens(known) or any(_unix_state(inode)[2:3] == bytes([_LISTEN]) for inode in known)


def answering(inodes: set[int], partners: set[int]) -> set[int]:
    """Those of these sockets that listen, or whose other end is one of the partners."""
    if not inodes:
        return set()
    known = connections()
    ends = {one.local for one in known if one.inode in partners and one.state != _LISTEN}
    found = {one.inode for one in known if one.inode in inodes and (one.state == _LISTEN or one.remote in ends)}
    return found | {inode for inode in inodes - found if unix_peer(inode) in partners}


def _waiting_for(one: Connection, since_ms: float) -> str:
    if one.state == _SYN_SENT:
        return "a connection is being made"
    if one.sent_ms <= since_ms and (one.unanswered or one.sent_ms < one.received_ms):
        return f"a request of {one.sent_ms} ms ago has no answer yet"
    if one.received_ms < min(_STREAMING_MS, since_ms) and not one.unanswered:
        return "an answer is streaming in"
    return ""


def connections() -> list[Connection]:
    """TCP sockets of this network namespace; empty if the kernel does not answer."""
    found: list[Connection] = []
    try:
        with _open() as netlink:
            for family in (socket.AF_INET, socket.AF_INET6):
                body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _STATES)
                netlink.send(_message(body, _REQUEST_DUMP))
                for message in _replies(netlink):
                    found.append(parse_connection(message))
    except OSError:
        return found
    return found


def _open() -> socket.socket:
    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
    netlink.settimeout(_PATIENCE_S)
    return netlink


def _message(body: bytes, flags: int) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), _SOCK_DIAG_BY_FAMILY, flags, 1, 0) + body


def _ask_one(body: bytes) -> bytes:
    """The answer about one socket, with its attributes. Raises OSError with the kernel's reason if there is none."""
    with _open() as netlink:
        netlink.send(_message(body, _REQUEST))
        data = netlink.recv(8192)
    if struct.unpack_from("=H", data, 4)[0] == _ERROR:
        fault = -struct.unpack_from("=i", data, 16)[0]
        raise OSError(fault, os.strerror(fault))
    return data[16:]


def _replies(netlink: socket.socket) -> list[bytes]:
    bodies: list[bytes] = []
    for _ in range(_MAX_MESSAGES):
        data = netlink.recv(65536)
        while len(data) >= 16:
            size, kind = struct.unpack_from("=IH", data)
            if kind in (_DONE, _ERROR) or size < 16:
                return bodies
            bodies.append(data[16:size])
            data = data[(size + 3) & ~3 :]
    return bodies


def parse_connection(body: bytes) -> Connection:
    """One struct inet_diag_msg with its attributes."""
    family, state = body[0], body[1]
    local = body[4:6] + _address(body[8:24], family)
    remote = body[6:8] + _address(body[24:40], family)
    (inode,) = struct.unpack_from("=I", body, 68)
    info = _attribute(body[72:], _INFO)
    if info is None or len(info) < 60:
        return Connection(inode, state, local, remote)
    sent, received = struct.unpack_from("=I4xI", info, 44)
    acknowledged, got = struct.unpack_from("=QQ", info, 120) if len(info) >= 136 else (0, 1)
    return Connection(inode, state, local, remote, sent, received, unanswered=acknowledged > 1 and got == 0)


def _address(field: bytes, family: int) -> bytes:
    """Four bytes for IPv4, also for an IPv4-mapped IPv6 address."""
    if family == socket.AF_INET:
        return field[:4]
    return field[12:] if field[:12] == b"\0" * 10 + b"\xff\xff" else field


def _attribute(data: bytes, wanted: int) -> bytes | None:
    while len(data) >= 4:
        size, kind = struct.unpack_from("=HH", data)
        if size < 4:
            return None
        if kind == wanted:
            return data[4:size]
        data = data[(size + 3) & ~3 :]
    return None


def unix_peer(inode: int) -> int:
    """The inode at the other end of a Unix socket; 0 if there is none or it is unknown."""
    peer = _attribute(_unix_state(inode)[16:], _UNIX_PEER)
    return struct.unpack("=I", peer)[0] if peer and len(peer) == 4 else 0


def _unix_state(inode: int) -> bytes:
    """One struct unix_diag_msg with its attributes; empty if there is none or it is unknown."""
    body = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, inode, _UNIX_SHOW_PEER, 0xFFFFFFFF, 0xFFFFFFFF)
    try:
        return _ask_one(body)
    except OSError:
        return b""


@frozen
class Socket:
    """A connected socket of this machine; `inode` 0 means that no process has it any more."""

    uid: int
    inode: int


def find_connection(client: tuple[str, int], server: tuple[str, int]) -> Socket | None:
    """The client's end of this TCP connection; None if there is none. Raises OSError if the kernel does not answer."""
    packed = [ip_address(host).packed for host, _ in (client, server)]
    family = socket.AF_INET if len(packed[0]) == 4 else socket.AF_INET6
    both = b"".join(address.ljust(16, b"\0") for address in packed)
    ends = struct.pack("!HH", client[1], server[1]) + both + struct.pack("=I", 0) + _NO_COOKIE
    try:
        data = _ask_one(struct.pack("=BBBBI", family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise
    return Socket(*struct.unpack_from("=II", data, 64))


def socket_inode(link: str) -> int:
    """The inode in "socket:[123]", 0 for anything else."""
    return int(link[8:-1]) if link.startswith("socket:[") else 0


def inodes_of(links: dict[int, str]) -> set[int]:
    return {inode for link in links.values() if (inode := socket_inode(link))}
