"""Whose end of a TCP connection on this machine it is: its socket in the kernel's tables, then the process that has it.

Of a page's browser on Linux only; elsewhere nobody can tell, and the token alone decides.  Where a process comes from
is `core.kin`'s.  A connection of this machine that no process can be seen to have is nobody's: its descriptor may be on
its way between two processes, or with one that hides its files.
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
from atlasbridge.core.ancestry_windows import owner_of
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.values import frozen

_PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")
_NETLINK_DIAG, _BY_FAMILY, _REQUEST, _ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")  # length, type, flags, number, process
_WANTED = struct.Struct("=BBBBI")  # family, protocol, extensions, padding, states
_FOUND = struct.Struct("=4x48x4x4x4xII")  # after its state and addresses: user and inode
_PORTS = struct.Struct("!HH")
_NO_COOKIE = b"\xff" * 8
_PATIENCE_S = 2.0
_TRIES = 3
_PIDFD_GETFD = 438  # Linux 5.6, on every kind of processor
_MOST_FILES = 4096

Address = tuple[str, int]


@frozen
class Socket:
    """A connected socket of this machine; `inode` 0: no process has it any more."""

    uid: int
    inode: int


@frozen
class Owner:
    """Who is at the other end.  `kin`: the session from inside of which it connected; "": from elsewhere, None: nobody
    can tell.  `uid` -1: another machine's."""

    inside_session: str | None
    uid: int = -1


def find_session_of(
    client: Address, server: Address, households: Iterable[SessionProcesses], users: Collection[int]
) -> Owner:
    """`users`: whose sessions there are.  What another user has opened (a proxy of the system) no tool has, and its
    files cannot be seen."""
    if not _tells_sockets():
        return Owner("")
    found = look_up(client, server)
    if found is None:
        return Owner(None if is_of_this_machine(client[0]) else "")
    if found.inode == 0:
        return Owner(None, found.uid)
    inside_session = _session_of_peer(found, tuple(households))
    return Owner("" if inside_session is None and found.uid not in users else inside_session, found.uid)


def find_peer(client: Address, server: Address, households: Iterable[SessionProcesses]) -> Peer:
    """The process at the other end.  Where several have that socket it is the one inside a session, if any is."""
    if sys.platform == "win32":
        return Peer(owner_of(client, server), own_uid())
    found = look_up(client, server) if _tells_sockets() else None
    if found is None or found.inode == 0:
        return Peer(0, own_uid())  # gone since, or the system does not tell: it had the key, no more is known
    owners = _owners(found)
    near = tuple(households)
    inside = [pid for pid in owners if decide_inside_session(trace_ancestry(pid, look_at), near)]
    pid = next(iter([*inside, *owners]), 0)
    return Peer(pid, found.uid)


def is_of_this_machine(host: str) -> bool:
    """Whether that address is one of ours: only those can be listened at.  Also true of what is no address."""
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


def _session_of_peer(found: Socket, households: tuple[SessionProcesses, ...]) -> str | None:
    owners = _owners(found)
    for pid in owners:
        line = trace_ancestry(pid, look_at)
        inside_session = decide_inside_session(line, households) if line else None
        if inside_session is None or inside_session:
            return inside_session
    return "" if owners else None


def _owners(found: Socket) -> list[int]:
    """Who has the socket: first who is its user, then all others, then each thread, which may have files of its own."""
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
    """The same of a process of another user, whose list of files is not shown to us.  A hub of its own user may take a
    copy of each of its descriptors (CAP_SYS_PTRACE), which tells what they are."""
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
    """Of a descriptor, which is closed again; 0: there was none."""
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
    """The client's own end.  The kernel is asked for this one connection; its whole table, which may leave out what
    comes and goes while it is read, is looked at only where it cannot be asked."""
    try:
        return ask_kernel(_plain(client), _plain(server))
    except OSError:
        for _ in range(_TRIES):
            tables = [table for name in _TABLES if (table := _read(_PROC / name))]
            if (found := find_socket(tables, client, server)) is not None:
                return found
        return None


def ask_kernel(client: Address, server: Address) -> Socket | None:
    """None: there is no such connection.  Raises OSError where such questions are not answered."""
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
    """The client's own end, whose far end is the server's."""
    wanted = (_plain(client), _plain(server))
    for table in tables:
        for line in table.splitlines()[1:]:
            words = line.split()
            if len(words) > 9 and (parse_address(words[1]), parse_address(words[2])) == wanted:
                return Socket(int(words[7]), int(words[9]))
    return None


def parse_address(text: str) -> Address:
    """As the kernel writes it: words of four bytes, each in the machine's order, then the port."""
    address, _, port = text.partition(":")
    raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
    whole = IPv4Address(raw) if len(raw) == 4 else IPv6Address(raw)
    return _plain((str(whole), int(port, 16)))


def _plain(address: Address) -> Address:
    """One spelling: an IPv4 address that came in an IPv6 one's clothes is itself."""
    host = ip_address(address[0])
    mapped = host.ipv4_mapped if isinstance(host, IPv6Address) else None
    return str(mapped or host), address[1]


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir(_PROC) if entry.isdigit()]


def _uid(pid: int) -> int:
    for line in _read(_PROC / str(pid) / "status").splitlines():
        if line.startswith("Uid:"):
            return int(line.split()[2])  # in effect
    return -1


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
