"""Finds the process at the other end of a local TCP connection: its socket in the kernel's tables, then the process
that has it.

For a page's browser this works only on Linux; elsewhere the process is unknown, and the token alone decides.
`core.ancestry` finds the ancestors of a process. If no process visibly has a local connection, its owner is unknown:
the descriptor can be in transit between two processes, or belong to one that hides its files.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from atlasbridge.core.ancestry import SessionProcesses, decide_inside_session, look_at, trace_ancestry
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.process_table import owner_of
from atlasbridge.core.values import frozen

_PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")
_NETLINK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, pid
_WANTED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_FOUND = struct.Struct("=4x48x4x4x4xII")  # after state and addresses: uid and inode
_PORTS = struct.Struct("!HH")
_NO_COOKIE = b"\xff" * 8
_PATIENCE_S = 2.0
_TRIES = 3
_PIDFD_GETFD = 438  # Linux 5.6, the same number on all architectures
_MOST_FILES = 4096

Address = tuple[str, int]


@frozen
class Socket:
    """A connected socket of this machine; `inode` 0 means that no process has it any more."""

    uid: int
    inode: int


@frozen
class Owner:
    """The process at the other end. `inside_session`: the session inside which it connected; "" if none, None if
    unknown. `uid` is -1 for another machine."""

    inside_session: str | None
    uid: int = -1


def find_session_of(
    client: Address, server: Address, sessions: Iterable[SessionProcesses], users: Collection[int]
) -> Owner:
    """`users` are the users who have sessions. A socket of another user (such as a system proxy) cannot belong to a
    tool, and its files are not visible."""
    if not _tells_sockets():
        return Owner("")
    found = look_up(client, server)
    if found is None:
        return Owner(None if is_of_this_machine(client[0]) else "")
    if found.inode == 0:
        return Owner(None, found.uid)
    inside_session = _session_of_peer(found, tuple(sessions))
    return Owner("" if inside_session is None and found.uid not in users else inside_session, found.uid)


def find_peer(client: Address, server: Address, sessions: Iterable[SessionProcesses]) -> Peer:
    """The process at the other end. If several have that socket, one inside a session takes precedence."""
    if sys.platform == "win32":
        return Peer(owner_of(client, server), own_uid())
    found = look_up(client, server) if _tells_sockets() else None
    if found is None or found.inode == 0:
        return Peer(0, own_uid())  # it is gone, or the system does not tell: only the key is proven
    owners = _owners(found)
    near = tuple(sessions)
    inside = [pid for pid in owners if decide_inside_session(trace_ancestry(pid, look_at), near)]
    pid = next(iter([*inside, *owners]), 0)
    return Peer(pid, found.uid)


def is_of_this_machine(host: str) -> bool:
    """Whether the address belongs to this machine: only then can a socket be bound to it. True if it is no address."""
    try:
        address = ip_address(_plain((host, 0))[0])
    except ValueError:
        return True
    if address.is_loopback:
        return True
    with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((str(address), 0))
        except OSError:
            return False
    return True


def _session_of_peer(found: Socket, sessions: tuple[SessionProcesses, ...]) -> str | None:
    owners = _owners(found)
    for pid in owners:
        line = trace_ancestry(pid, look_at)
        inside_session = decide_inside_session(line, sessions) if line else None
        if inside_session is None or inside_session:
            return inside_session
    return "" if owners else None


def _owners(found: Socket) -> list[int]:
    """The processes that have the socket: first those of its user, then all others, then single threads, which can have
    files of their own."""
    name = f"socket:[{found.inode}]"
    pids = _pids()
    own = [pid for pid in pids if _uid(pid) == found.uid]
    others = [pid for pid in pids if pid not in set(own)]
    for group in (own, others):
        if owners := [pid for pid in group if _has(name, _PROC / str(pid) / "fd")]:
            return owners
    if found.uid != own_uid() and (owners := [pid for pid in own if _holds(pid, found.inode)]):
        return owners
    return [pid for pid in pids if any(_has(name, folder) for folder in (_PROC / str(pid)).glob("task/*/fd"))]


def _has(name: str, folder: Path) -> bool:
    try:
        return name in _links(folder)
    except OSError:
        return False  # it has ended, or hides its files


def _holds(pid: int, inode: int) -> bool:
    """Like `_has`, for a process of another user, whose list of files is hidden from us. A system hub can copy its
    descriptors (CAP_SYS_PTRACE) and inspect the copies."""
    from ctypes import CDLL

    held = -1
    try:
        held = os.pidfd_open(pid)
        call = CDLL(None).syscall
        return any(_inode(call(_PIDFD_GETFD, held, number, 0)) == inode for number in range(_table_size(pid)))
    except OSError:
        return False
    finally:
        if held >= 0:
            os.close(held)


def _inode(copy: int) -> int:
    """The inode of a copied descriptor, which is closed; 0 if there is none."""
    if copy < 0:
        return 0
    try:
        return os.fstat(copy).st_ino
    finally:
        os.close(copy)


def _table_size(pid: int) -> int:
    found = [line for line in _read(_PROC / str(pid) / "status").splitlines() if line.startswith("FDSize:")]
    return min(int(found[0].split()[1]), _MOST_FILES) if found else 0


def _links(folder: Path) -> Iterator[str]:
    for entry in os.listdir(folder):
        try:
            yield os.readlink(folder / entry)
        except FileNotFoundError:
            continue


def _tells_sockets() -> bool:
    return sys.platform == "linux" and os.access(_PROC / _TABLES[0], os.R_OK)


def look_up(client: Address, server: Address) -> Socket | None:
    """Finds the client's end. The kernel is asked for this one connection. Its whole table, which can miss connections
    that change while it is read, is only a fallback."""
    try:
        return ask_kernel(_plain(client), _plain(server))
    except OSError:
        for _ in range(_TRIES):
            tables = [table for name in _TABLES if (table := _read(_PROC / name))]
            if (found := find_socket(tables, client, server)) is not None:
                return found
        return None


def ask_kernel(client: Address, server: Address) -> Socket | None:
    """Returns None if there is no such connection. Raises OSError if the kernel does not support the request."""
    packed = [ip_address(host).packed for host, _ in (client, server)]
    family = socket.AF_INET if len(packed[0]) == 4 else socket.AF_INET6
    both = b"".join(address.ljust(16, b"\0") for address in packed)
    body = _WANTED.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    body += _PORTS.pack(client[1], server[1]) + both + struct.pack("=I", 0) + _NO_COOKIE
    request = _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _REQUEST, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_DIAG) as link:
        link.settimeout(_PATIENCE_S)
        link.sendto(request, (0, 0))
        answer = link.recv(8192)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        fault = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if fault == errno.ENOENT:
            return None
        raise OSError(fault, "the kernel does not tell of connections")
    uid, inode = _FOUND.unpack_from(answer, _HEADER.size)
    return Socket(uid, inode)


def find_socket(tables: Iterable[str], client: Address, server: Address) -> Socket | None:
    """Finds the client's end, whose remote end is the server."""
    wanted = (_plain(client), _plain(server))
    for table in tables:
        for line in table.splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and (parse_address(words[1]), parse_address(words[2])) == wanted:
                return Socket(int(words[7]), int(words[9]))
    return None


def parse_address(text: str) -> Address:
    """Parses the kernel's format: four-byte words in native byte order, then the port."""
    address, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    whole = IPv4Address(raw) if len(raw) == 4 else IPv6Address(raw)
    return _plain((str(whole), int(port, 16)))


def _plain(address: Address) -> Address:
    """Normalises an address: an IPv4 address mapped into IPv6 becomes IPv4."""
    host = ip_address(address[0])
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return str(mapped or host), address[1]


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]


def _uid(pid: int) -> int:
    for line in _read(_PROC / str(pid) / "status").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[2])  # the effective uid
    return -1


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
