"""Ensures that only a person decides: checks whether a command comes from a program inside a session, and refuses it.

`core.peer` reads the ancestors of a process. The table in `core/operations.py` defines which operations need a
person.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Final

from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.receipts import RefusalLog
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import (
    Look,
    Peer,
    Process,
    SessionProcesses,
    decide_inside_session,
    look_at,
    own_uid,
    trace_ancestry,
)
from atlasbridge.core.process_table import owner_of
from atlasbridge.core.prompt.gate import OTHER_USER, UNTRACED, refuse_inside_session
from atlasbridge.core.prompt.model import Reject
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.sockdiag import Socket, find_connection
from atlasbridge.core.values import frozen, replace

LONGEST_LABEL: Final = 120
ASKERS: Final = {UNTRACED: "from a program of unknown origin", OTHER_USER: "from another user"}  # on the card
UNIX: Final = "unix:"  # prefix of a peer's address at the page's Unix socket: its pid and start time
# people are notified of one session's attempts at most once in this time; the audit log has all of them
QUIET_S: Final = 60.0


class CallerCheck:
    """`guests`: other users whose sessions use this hub. `members`: those of them who decide like the hub's own
    user."""

    def __init__(
        self,
        hub: HubParts,
        refusals: RefusalLog,
        look: Look = look_at,
        guests: Callable[[], frozenset[int]] = frozenset,
        members: Callable[[], frozenset[int]] = frozenset,
    ) -> None:
        self._hub = hub
        self._refusals = refusals
        self._look = look
        self._guests = guests
        self._members = members
        self._quiet_until: dict[str, float] = {}

    def of(self, peer: Peer | None) -> str:
        """Returns "" for a person's own command, the session of a program inside one, or the reason why it is
        unknown."""
        if peer is None:
            return UNTRACED
        ancestry = trace_ancestry(peer.pid, self._look) if peer.pid > 0 else ()
        known = ancestry and peer.started in (0, ancestry[0].started)
        inside_session = decide_inside_session(ancestry, self._near(ancestry)) if known else UNTRACED
        return OTHER_USER if inside_session in ("", UNTRACED) and not self._decides(peer.uid) else inside_session

    def _decides(self, uid: int) -> bool:
        """Whether a program of this user is a person's, where no session is behind it."""
        return uid == own_uid() or uid in self._members()

    def session_of_asker(self, peer: Peer) -> str:
        """Returns the session inside which a question was asked, whichever user's; "" if none is visible."""
        if peer.pid <= 0:
            return ""
        ancestry = trace_ancestry(peer.pid, self._look)
        if not ancestry or peer.started not in (0, ancestry[0].started):
            return UNTRACED
        others = [
            session for session in self._near(ancestry) if session.host_pid != peer.pid
        ]  # without its own other questions
        # a host is not inside its own session
        return decide_inside_session((replace(ancestry[0], name=""), *ancestry[1:]), others)

    async def peer_of(self, client: tuple[str, int], server: tuple[str, int]) -> Peer:
        """Returns the peer of a loopback connection that has proved that it has the key; pid 0 if it is unknown."""
        return await asyncio.to_thread(find_peer, client, server, self._all_sessions())

    async def of_connection(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        """Like `of`, for a network connection. It inspects every process, so it runs in another thread.

        A relay of another user on this machine hides who uses it, so it decides nothing. A proxy that the configuration
        names reports the address for which it asks. If that address is on this machine, a tool could have sent it.
        """
        if client[0].startswith(UNIX):
            pid, _, started = client[0].removeprefix(UNIX).partition(":")
            return self.of(Peer(int(pid), own_uid(), int(started)))
        found = await asyncio.to_thread(find_session_of, client, server, self._all_sessions(), self._users())
        if found.inside_session != "":
            return UNTRACED if found.inside_session is None else found.inside_session
        if forwarded is not None and not same_user:
            return UNTRACED if is_of_this_machine(forwarded) else ""
        return "" if self._decides(found.uid) or (found.uid < 0 and not same_user) else OTHER_USER

    def mark(self, label: str, inside_session: str) -> str:
        """Adds a mark to a label from inside a session. The mark comes first, so that the label cannot hide it."""
        label = escape_controls(label, keep_lines=False)[:LONGEST_LABEL]
        if not inside_session:
            return label
        if asker := ASKERS.get(inside_session):
            return f"{asker}{': ' + label if label else ''}"
        session = self._hub.ledger.session(inside_session)
        name = f" ({escape_controls(session.label or session.tool, keep_lines=False)})" if session else ""
        return f"in session {short_id(inside_session)}{name}{': ' + label if label else ''}"

    def _users(self) -> frozenset[int]:
        return frozenset({own_uid(), *self._guests(), *(link.uid for link in self._hub.hosts.all())})

    def _near(self, ancestry: tuple[Process, ...]) -> list[SessionProcesses]:
        """The sessions that can be related to this ancestry; usually one or none."""
        terminals = {process.tty for process in ancestry if process.tty}
        here = [link.session_id for link in self._hub.hosts.all() if link.tty in terminals] if terminals else []
        return self._with_links(self._hub.ledger.processes([process.pid for process in ancestry], here))

    def _all_sessions(self) -> list[SessionProcesses]:
        return self._with_links(self._hub.ledger.processes())

    def _with_links(self, sessions: list[tuple[str, int, int]]) -> list[SessionProcesses]:
        found = []
        for session_id, host_pid, tool_pid in sessions:
            link = self._hub.hosts.get(session_id)
            started = (0, 0, "") if link is None else (link.host_started, link.tool_started, link.tty)
            found.append(SessionProcesses(session_id, host_pid, tool_pid, *started))
        return found

    def refuse(self, inside_session: str, op: str, prompt_id: str = "", pid: int = 0) -> Reject:
        """Writes the attempt to the audit log, notifies people, and returns the refusal."""
        session = self._hub.ledger.session(inside_session)
        session_id = session.session_id if session else ""
        self._refusals.record_attempt(identity_of(inside_session), session_id, prompt_id, op=op, pid=pid)
        self._hub.stream.publish("self.refused", session_id=session_id, prompt_id=prompt_id, op=op, pid=pid)
        self._tell(inside_session, session, op)
        return refuse_inside_session(inside_session)

    def _tell(self, inside_session: str, session: SessionRecord | None, op: str) -> None:
        now = self._hub.clock.now()
        if now < self._quiet_until.get(inside_session, now):
            return
        self._quiet_until = {key: until for key, until in self._quiet_until.items() if until > now}
        self._quiet_until[inside_session] = now + QUIET_S
        self._hub.router.notify(_sentence(session, op))  # in every channel, whatever the session's own settings say


def _sentence(session: SessionRecord | None, op: str) -> str:
    if session is None:
        who = "A command that no person can be seen behind"
    else:
        who = f"The program in session {session.label or session.tool} ({short_id(session.session_id)})"
    return f"{who} tried to decide by itself ({_DEEDS.get(op, op)}). It was refused."


def identity_of(inside_session: str) -> str:
    return _NAMELESS.get(inside_session) or f"tool:{short_id(inside_session)}"


_NAMELESS: Final = {UNTRACED: "tool:unknown", OTHER_USER: "tool:of-another-user"}
_DEEDS: Final = {
    "reply": "answer a prompt",
    "kill": "end a session",
    "reload": "reload the configuration",
    "stop": "stop the hub",
    "page": "let a browser in",
    "login": "log in to the page",
}

# The process at the other end of a local TCP connection: its socket in the kernel's tables, then the process that has
# it.
#
# For a page's browser this works only on Linux; elsewhere the process is unknown, and the token alone decides. If no
# process visibly has a local connection, its owner is unknown: the descriptor can be in transit between two processes,
# or belong to one that hides its files.

_PROC = Path("/proc")
_TABLES = ("net/tcp", "net/tcp6")
_TRIES = 3
_PIDFD_GETFD = 438  # Linux 5.6, the same number on all architectures
_MOST_FILES = 4096

Address = tuple[str, int]


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
    """A process can end before its ancestors are read. For example, a child of a person's browser has the browser's
    sockets until it executes its program. Then we look again at who has the socket."""
    for _ in range(_TRIES):
        ancestries = [trace_ancestry(pid, look_at) for pid in _owners(found)]
        for ancestry in ancestries:
            if ancestry and (inside_session := decide_inside_session(ancestry, sessions)):
                return inside_session
        if ancestries and all(ancestries):
            return ""
    return None


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
        return find_connection(_plain(client), _plain(server))
    except OSError:
        for _ in range(_TRIES):
            tables = [table for name in _TABLES if (table := _read(_PROC / name))]
            if (found := find_socket(tables, client, server)) is not None:
                return found
        return None


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
