"""Who is at the other end of a Unix socket: the user and the process that connected to it, or that listens there.

The kernel notes a process number when a socket connects or listens.  A number can be given to another process later, so
it is no proof by itself.  Linux (from 6.5) also hands out a descriptor of that very process: while the descriptor can
be signalled, the number still belongs to it, and number and start time together name one process for good.  macOS has
a version of the number in the audit token.  Whoever connects to a hub, a session or a zygote makes sure here who it is
before a word is said; what a caller may do is decided by whoever was called.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.ancestry import HOST_NAME, Process, is_inside, look_at, started_at, trace_ancestry, version_of
from atlasbridge.core.fast_imports import signal, socket
from atlasbridge.core.values import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol

    class Link(Protocol):
        """A socket, of the public module or of its C half."""

        def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _LOCAL_PEERTOKEN = 0, 0x001, 0x002, 0x006  # of macOS; BSDs have the first
_INT = 4
_SO_PEERPIDFD = 77  # Linux 6.5
_AUDIT_TOKEN = 8  # words of four bytes: the sixth is the process, the last the version of its number
_PATIENCE_S = 2.0
NOBODY = -1
GONE = -1  # as `started`: the process has ended, and its number can be another's


class FalsePeer(ConnectionError):
    """Another program listens there than the one that was meant."""


@frozen
class Peer:
    """`pid` is 0 and `uid` is -1 where the system does not say.

    `started` tells the process from a later one of that number; 0: the system does not say, `GONE`: it has ended.
    `proven`: the kernel has shown that the number was still its own when `started` was read.
    """

    pid: int
    uid: int
    started: int = 0
    proven: bool = False


def own_uid() -> int:
    """This user's number; 0 where users have none."""
    return os.getuid() if hasattr(os, "getuid") else 0


def read_peer(link: Link) -> Peer:
    """The process that connected (for who listens), or that listens (for who connected), as far as it is certain."""
    try:
        return _read_on_linux(link) if sys.platform == "linux" else _read_elsewhere(link)
    except OSError:
        return Peer(0, NOBODY)


def _read_on_linux(link: Link) -> Peer:
    pid, uid, _ = _words(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _INT))
    if pid <= 0:
        return Peer(0, uid)  # of another namespace
    held = _process_of(link)
    if held is None:
        return Peer(pid, uid, started_at(pid))
    if held < 0:
        return Peer(pid, uid, GONE, proven=True)
    try:
        started = started_at(pid)
        return Peer(pid, uid, started if _has_its_number(held) else GONE, proven=True)
    finally:
        os.close(held)


def _process_of(link: Link) -> int | None:
    """A descriptor of the process; -1: it has ended; None: this kernel hands out none."""
    try:
        return _words(link.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, _INT))[0]
    except OSError as error:
        import errno

        # before 6.16 a kernel says so of a process that was reaped
        return -1 if error.errno in (errno.ESRCH, errno.ENODATA, errno.EINVAL) else None


def _has_its_number(held: int) -> bool:
    """A process that was reaped cannot be signalled; until then nobody else gets its number."""
    try:
        signal.pidfd_send_signal(held, 0)  # type: ignore[attr-defined,unused-ignore]  # Linux has it
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True


def _read_elsewhere(link: Link) -> Peer:
    uid = _words(link.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 256)[: 2 * _INT])[1]
    try:
        pid, version = read_audit_token(link.getsockopt(_SOL_LOCAL, _LOCAL_PEERTOKEN, _AUDIT_TOKEN * _INT))
    except OSError:
        return Peer(_peer_pid(link), uid)
    started = started_at(pid)
    return Peer(pid, uid, started if version_of(pid) == version else GONE, proven=True)


def read_audit_token(token: bytes) -> tuple[int, int]:
    """Process and version of its number: the number is given away again, the two together are not."""
    words = _words(token)
    if len(words) != _AUDIT_TOKEN:
        raise OSError("this is no audit token")
    return words[5], words[7]


def _peer_pid(link: Link) -> int:
    try:
        return _words(link.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, _INT))[0]
    except OSError:
        return 0


def _words(data: bytes) -> list[int]:
    places = range(0, len(data), _INT)
    return [int.from_bytes(data[place : place + _INT], sys.byteorder, signed=True) for place in places]


def line_of(peer: Peer) -> tuple[Process, ...]:
    """The peer and its ancestors, nearest first.  Empty: it is not known who it is, or it has ended."""
    if peer.pid <= 0 or peer.started == GONE:
        return ()
    line = trace_ancestry(peer.pid, look_at)
    same = not peer.started or not line or line[0].started == peer.started
    return line if same else ()


def prove_outside(link: Link, users: Collection[int]) -> Peer:
    """Whoever listens at the other end is one of these users' and was not started inside a session.

    Raises `FalsePeer`: what a session's tool has put in the place of the hub, or of a zygote, hears nothing from us.
    """
    peer = read_peer(link)
    if peer.uid not in users:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    line = line_of(peer)
    if peer.pid and not line:
        raise FalsePeer("the program that listened there has ended")
    if is_inside(line) and not is_vouched_for(line):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_host(link: Link) -> Peer:
    """For attaching: whoever listens there is not a program that a session's tool has put in a host's place.

    Whoever is inside a session itself may reach what was started there: it is one tool's own business.
    """
    peer = read_peer(link)
    if peer.uid != own_uid() and own_uid() != 0:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    line = line_of(peer)
    if peer.pid and not line:
        raise FalsePeer("the program that listened there has ended")
    below = line and (line[0].mark or is_inside(line[1:]))
    if below and not is_inside(trace_ancestry(os.getpid(), look_at)):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_above(link: Link) -> None:
    """For what a host has started: whoever listens there is above us.  A number that an ancestor of ours has was nobody
    else's since before we began, so nothing more has to be shown."""
    peer = read_peer(link)
    if peer.pid not in {process.pid for process in trace_ancestry(os.getpid(), look_at)[1:]}:
        raise FalsePeer(f"process {peer.pid}, which listens there, is not the host of this session")


# A host that starts a hub is its parent, and a host adopts what its tool leaves behind: to the kernel the two look the
# same.  So the host says which one is the hub, by listening at a name that only this very process can be meant by.


def voucher(host: int, hub: Process) -> str:
    return f"\0atlasbridge-hub-{host}-{hub.pid}-{hub.started}"


def is_vouched_for(line: tuple[Process, ...]) -> bool:
    """Started by a host that is outside of every session itself, and that says so."""
    if sys.platform != "linux" or len(line) < 2 or line[1].name != HOST_NAME:
        return False
    if line[0].mark or line[1].mark or is_inside(line[2:]):
        return False
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(_PATIENCE_S)
        link.connect(voucher(line[1].pid, line[0]))
        said = read_peer(link)
    except OSError:
        return False
    finally:
        link.close()
    return (said.pid, said.started) == (line[1].pid, line[1].started)
