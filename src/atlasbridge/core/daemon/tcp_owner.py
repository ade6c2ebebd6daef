"""Whose end of a TCP connection on this machine it is: its socket in the kernel's tables, then the process that has it.

Of a page's browser on Linux only; elsewhere nobody can tell, and the token alone decides.  Where a process comes from
is `core.kin`'s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from atlasbridge.core.ancestry import SessionProcesses, decide_inside_session, look_at, trace_ancestry
from atlasbridge.core.ancestry_windows import owner_of
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.values import frozen

_PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")

Address = tuple[str, int]


@frozen
class Socket:
    """A connected socket of this machine; `inode` 0: no process has it any more."""

    uid: int
    inode: int


def find_session_of(client: Address, server: Address, households: Iterable[SessionProcesses]) -> str | None:
    """The session from inside of which the client connected; "": from elsewhere; None: nobody can tell."""
    tables = [table for name in _TABLES if (table := _read(_PROC / name))]
    if not tables:
        return ""
    found = find_socket(tables, client, server)
    if found is None:
        return None if ip_address(client[0]).is_loopback else ""  # another machine's
    return None if found.inode == 0 else _session_of_peer(found, tuple(households))


def find_peer(client: Address, server: Address, households: Iterable[SessionProcesses]) -> Peer:
    """The process at the other end.  Where several have that socket it is the one inside a session, if any is."""
    if sys.platform == "win32":
        return Peer(owner_of(client, server), own_uid())
    tables = [table for name in _TABLES if (table := _read(_PROC / name))]
    found = find_socket(tables, client, server)
    if found is None or found.inode == 0:
        return Peer(0, own_uid())  # gone since, or the system does not tell: it had the key, no more is known
    owners, _ = _owners(found, _pids())
    near = tuple(households)
    inside = [pid for pid in owners if decide_inside_session(trace_ancestry(pid, look_at), near)]
    pid = next(iter([*inside, *owners]), 0)
    return Peer(pid, found.uid)


def _session_of_peer(found: Socket, households: tuple[SessionProcesses, ...]) -> str | None:
    processes = {pid: process for pid in _pids() if (process := look_at(pid)) is not None}
    owners, hidden = _owners(found, processes)
    for pid in owners:
        if inside_session := decide_inside_session(trace_ancestry(pid, processes.get), households):
            return inside_session
    if owners:
        return ""
    hosts = {home.host_pid for home in households}
    inside = [
        pid
        for pid in hidden
        if pid not in hosts and decide_inside_session(trace_ancestry(pid, processes.get), households)
    ]
    return None if inside else ""  # a tunnel's end hides its files, too; only one inside a session is suspect


def _owners(found: Socket, processes: Iterable[int]) -> tuple[list[int], list[int]]:
    """Who has the socket, and whose files cannot be seen though it is the same user's."""
    name = f"socket:[{found.inode}]"
    owners, hidden = [], []
    for pid in processes:
        try:
            if name in _links(_PROC / str(pid) / "fd"):
                owners.append(pid)
        except PermissionError:
            if _uid(pid) == found.uid:
                hidden.append(pid)
        except OSError:
            continue  # it has ended
    return owners, hidden


def _links(folder: Path) -> Iterator[str]:
    for entry in os.listdir(folder):
        try:
            yield os.readlink(folder / entry)
        except FileNotFoundError:
            continue


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
            return int(line.split()[1])
    return -1


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
