"""Who is at the other end of a Unix socket: the user and the process that connected to it, or that listens there.

The kernel notes a process number when a socket connects or listens.  A number can be given to another process later, so
it is no proof by itself.  Linux (from 6.5) also hands out a descriptor of that very process: while the descriptor can
be signalled, the number still belongs to it, and number and start time together name one process for good.  Before 6.5
both ends exchange nonces.  macOS has a version of the number in the audit token.  A client makes sure here who listens
before it says a word; what a caller may do is decided by the hub, the host or the zygote.
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
    from typing import Any, Protocol

    class Link(Protocol):
        """A socket, of the public module or of its C half."""

        def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...

    class Talk(Link, Protocol):
        """The same, to speak over."""

        def setsockopt(self, level: int, option: int, value: int, /) -> None: ...
        def gettimeout(self) -> float | None: ...
        def settimeout(self, value: float | None, /) -> None: ...
        def sendall(self, data: bytes, /) -> None: ...
        def recv(self, size: int, flags: int = ..., /) -> bytes: ...
        def recvmsg(
            self, size: int, room: int = ..., flags: int = ..., /
        ) -> tuple[bytes, list[tuple[int, int, bytes]], int, Any]: ...


_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _LOCAL_PEERTOKEN = 0, 0x001, 0x002, 0x006  # of macOS; BSDs have the first
_INT = 4
_SO_PEERPIDFD = 77  # Linux 6.5
_AUDIT_TOKEN = 8  # words of four bytes: the sixth is the process, the last the version of its number
_PATIENCE_S = 2.0
_NONCE = 32  # bytes; the client's begins with 0, as no line of ours does
NOBODY = -1
GONE = -1  # as `started`: the process has ended, and its number can be another's
UNPROVEN = -2  # as `started`: this kernel gives only a number, and the process did not answer a nonce


class FalsePeer(ConnectionError):
    """Another program listens there than the one that was meant."""


@frozen
class Peer:
    """`pid` is 0 and `uid` is -1 where the system does not say.

    `started` tells the process from a later one of that number; 0: the system does not say, `GONE`: it has ended,
    `UNPROVEN`: nothing but its number is known.  A process that is gone or not proven decides nothing.
    """

    pid: int
    uid: int
    started: int = 0


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
        return Peer(pid, uid, UNPROVEN)
    if held < 0:
        return Peer(pid, uid, GONE)
    try:
        started = started_at(pid)
        return Peer(pid, uid, started if _has_its_number(held) else GONE)
    finally:
        os.close(held)


def meet(link: Talk, listens: bool = False) -> Peer:
    """As `read_peer`; before Linux 6.5 each end also answers a nonce of the other's.

    The process is looked at before it gets the nonce and after it has sent it back, and the kernel names the sender of
    the answer.  The same process was there at both looks, so the number was no other's in between.  `listens`: we are
    the one that was called; a caller that does not begin with a nonce stays unproven.
    """
    peer = read_peer(link)
    if peer.started != UNPROVEN:
        return peer
    started, patience_s = started_at(peer.pid), link.gettimeout()
    try:
        link.settimeout(_PATIENCE_S)
        if listens and link.recv(1, socket.MSG_PEEK) != b"\0":
            return peer
        link.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        sender = _answer_then_ask(link) if listens else _ask_then_answer(link)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    except OSError:
        return peer
    finally:
        link.settimeout(patience_s)
    return Peer(peer.pid, peer.uid, started if sender == peer.pid and started_at(peer.pid) == started else GONE)


def _ask_then_answer(link: Talk) -> int:
    ours = b"\0" + os.urandom(_NONCE - 1)
    link.sendall(ours)
    said, sender = _receive(link, 2 * _NONCE)
    if not said.startswith(ours):
        return NOBODY
    link.sendall(said[_NONCE:])
    return sender


def _answer_then_ask(link: Talk) -> int:
    theirs, ours = _receive(link, _NONCE)[0], os.urandom(_NONCE)
    link.sendall(theirs + ours)
    said, sender = _receive(link, _NONCE)
    return sender if said == ours else NOBODY


def _receive(link: Talk, size: int) -> tuple[bytes, int]:
    """So many bytes and the process that has sent them; `NOBODY`: more than one has."""
    data, senders = b"", set[int]()
    while len(data) < size:
        more, beside, _, _ = link.recvmsg(size - len(data), socket.CMSG_SPACE(3 * _INT))
        if not more:
            raise ConnectionResetError("the other end hung up")
        said = [_words(one)[0] for _, kind, one in beside if kind == socket.SCM_CREDENTIALS]
        data, senders = data + more, senders | set(said or [NOBODY])
    return data, senders.pop() if len(senders) == 1 else NOBODY


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
    return Peer(pid, uid, started if version_of(pid) == version else GONE)


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
    if peer.pid <= 0 or peer.started < 0:
        return ()
    line = trace_ancestry(peer.pid, look_at)
    same = not peer.started or not line or line[0].started == peer.started
    return line if same else ()


def prove_outside(link: Talk, users: Collection[int]) -> Peer:
    """Whoever listens at the other end is one of these users' and was not started inside a session.

    Raises `FalsePeer`: what a session's tool has put in the place of the hub, or of a zygote, hears nothing from us.
    """
    peer = meet(link)
    if peer.uid not in users:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    line = line_of(peer)
    if peer.pid and not line:
        raise FalsePeer("the program that listened there has ended, or does not show which process it is")
    if is_inside(line) and not is_vouched_for(line):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_host(link: Talk) -> Peer:
    """For attaching: whoever listens there is not a program that a session's tool has put in a host's place.

    Whoever is inside a session itself may reach what was started there: it is one tool's own business.
    """
    peer = meet(link)
    if peer.uid != own_uid() and own_uid() != 0:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    line = line_of(peer)
    if peer.pid and not line:
        raise FalsePeer("the program that listened there has ended, or does not show which process it is")
    below = line and (line[0].mark or is_inside(line[1:]))
    if below and not is_inside(trace_ancestry(os.getpid(), look_at)):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_above(link: Link) -> None:
    """For what a host has started: whoever listens there is above us.  A number that an ancestor of ours has was nobody
    else's since before we began, so nothing more has to be shown."""
    peer = read_peer(link)
    if peer.started == GONE or peer.pid not in {process.pid for process in trace_ancestry(os.getpid(), look_at)[1:]}:
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
        said = meet(link)
    except OSError:
        return False
    finally:
        link.close()
    return (said.pid, said.started) == (line[1].pid, line[1].started)
