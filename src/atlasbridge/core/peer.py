"""Identifies the peer of a Unix socket: the user and the process that connected, or that listens.

The kernel records a pid when a socket connects or listens. Pids are reused, so a pid alone proves nothing. Linux (from
6.5) also provides a descriptor of that process: as long as it can be signalled, the pid still belongs to the process,
and pid and start time together identify it for good. Before 6.5 both ends exchange nonces. macOS puts a version of the
pid into the audit token. A client of a hub, a session or a zygote verifies its peer here before it sends anything. The
permissions of a caller are decided elsewhere.
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
        """A socket from the public module or from its C half."""

        def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _LOCAL_PEERTOKEN = 0, 0x001, 0x002, 0x006  # macOS; the BSDs have the first
_INT = 4
_SO_PEERPIDFD = 77  # Linux 6.5
_AUDIT_TOKEN = 8  # four-byte words: the sixth is the pid, the last is the version of the pid
_PATIENCE_S = 2.0
_NONCE = 32  # bytes; the client's begins with 0, as no line of ours does
UNKNOWN = -1
GONE = -1  # a value of `started`: the process has ended, and its pid can belong to another process
UNPROVEN = -2  # a value of `started`: this kernel reports a pid alone, and the process did not answer a nonce


class FalsePeer(ConnectionError):
    """A different program listens there than expected."""


@frozen
class Peer:
    """`pid` is 0 and `uid` is -1 if the system does not report them.

    `started` distinguishes the process from a later one with the same pid; 0 if the system does not report it, `GONE`
    if the process has ended, `UNPROVEN` if only its pid is known. A process that is gone or unproven decides nothing.
    """

    pid: int
    uid: int
    started: int = 0


def own_uid() -> int:
    """This user's uid; 0 on systems without uids."""
    return os.getuid() if hasattr(os, "getuid") else 0


def read_peer(link: Link) -> Peer:
    """Returns the process at the other end: the one that connected, or the one that listens."""
    try:
        return _read_on_linux(link) if sys.platform == "linux" else _read_elsewhere(link)
    except OSError:
        return Peer(0, UNKNOWN)


def _read_on_linux(link: Link) -> Peer:
    pid, uid, _ = _words(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 3 * _INT))
    if pid <= 0:
        return Peer(0, uid)  # the peer is in another pid namespace
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


def meet(link: socket.socket, listens: bool = False) -> Peer:
    """Like `read_peer`; before Linux 6.5 each end also answers a nonce of the other end.

    We look at the process before it gets the nonce and after it has sent the nonce back, and the kernel names the
    sender of the answer. If the same process had the pid both times, no other process had it in between. `listens`: we
    are the listener; a caller that does not begin with a nonce stays unproven.
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


def _ask_then_answer(link: socket.socket) -> int:
    ours = b"\0" + os.urandom(_NONCE - 1)
    link.sendall(ours)
    said, sender = _receive(link, 2 * _NONCE)
    if not said.startswith(ours):
        return UNKNOWN
    link.sendall(said[_NONCE:])
    return sender


def _answer_then_ask(link: socket.socket) -> int:
    theirs, ours = _receive(link, _NONCE)[0], os.urandom(_NONCE)
    link.sendall(theirs + ours)
    said, sender = _receive(link, _NONCE)
    return sender if said == ours else UNKNOWN


def _receive(link: socket.socket, size: int) -> tuple[bytes, int]:
    """Returns that many bytes and the process that has sent them, or `UNKNOWN` if several processes have."""
    data, senders = b"", set[int]()
    while len(data) < size:
        more, beside, _, _ = link.recvmsg(size - len(data), socket.CMSG_SPACE(3 * _INT))
        if not more:
            raise ConnectionResetError("the other end hung up")
        said = [_words(one)[0] for _, kind, one in beside if kind == socket.SCM_CREDENTIALS]
        data, senders = data + more, senders | set(said or [UNKNOWN])
    return data, senders.pop() if len(senders) == 1 else UNKNOWN


def _process_of(link: Link) -> int | None:
    """Returns a descriptor of the process, -1 if it has ended, or None if this kernel provides none."""
    try:
        return _words(link.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, _INT))[0]
    except OSError as error:
        import errno

        # kernels before 6.16 report these errors for a process that was reaped
        return -1 if error.errno in (errno.ESRCH, errno.ENODATA, errno.EINVAL) else None


def _has_its_number(held: int) -> bool:
    """A reaped process cannot be signalled; until it is reaped, its pid is not reused."""
    try:
        signal.pidfd_send_signal(held, 0)  # type: ignore[attr-defined,unused-ignore]  # Linux has it
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it belongs to another user
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
    """Returns the pid and its version. Pids are reused, but never with the same version."""
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
    """The peer and its ancestors, nearest first. Empty if the peer is unknown or has ended."""
    if peer.pid <= 0 or peer.started < 0:
        return ()
    line = trace_ancestry(peer.pid, look_at)
    same = not peer.started or not line or line[0].started == peer.started
    return line if same else ()


def _meet_listener(link: socket.socket, users: Collection[int] | None) -> tuple[Peer, tuple[Process, ...]]:
    """The listener and its ancestors. Raises `FalsePeer` if it is of another user (None: any will do) or unknown."""
    peer = meet(link)
    if users is not None and peer.uid not in users:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    line = line_of(peer)
    if peer.pid and not line:
        raise FalsePeer("the program that listened there has ended, or does not show which process it is")
    return peer, line


def prove_outside(link: socket.socket, users: Collection[int]) -> Peer:
    """Checks that the listener belongs to one of these users and was not started inside a session.

    Raises `FalsePeer`, so that we send nothing to a program that a session's tool has put in the place of the hub or of
    a zygote.
    """
    peer, line = _meet_listener(link, users)
    if is_inside(line) and not is_vouched_for(line):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_host(link: socket.socket) -> Peer:
    """Used by `attach`: checks that the listener is not a program that a session's tool has put in the host's place.

    A caller inside a session is allowed to reach processes that were started inside a session.
    """
    peer, line = _meet_listener(link, (own_uid(),) if own_uid() else None)
    below = line and (line[0].mark or is_inside(line[1:]))
    if below and not is_inside(trace_ancestry(os.getpid(), look_at)):
        raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")
    return peer


def prove_above(link: Link) -> None:
    """Used by a process that a host has started: checks that the listener is one of our ancestors. No further proof is
    needed, because an ancestor's pid cannot have been reused since we started."""
    peer = read_peer(link)
    if peer.started == GONE or peer.pid not in {process.pid for process in trace_ancestry(os.getpid(), look_at)[1:]}:
        raise FalsePeer(f"process {peer.pid}, which listens there, is not the host of this session")


# A host that starts a hub is the hub's parent, and a host also adopts its tool's orphans. The kernel shows no
# difference between the two. So the host confirms which child is the hub by listening on a name that contains the hub's
# pid and start time.


def voucher(host: int, hub: Process) -> str:
    return f"\0atlasbridge-hub-{host}-{hub.pid}-{hub.started}"


def is_vouched_for(line: tuple[Process, ...]) -> bool:
    """Whether a host that is itself outside every session confirms that it started this hub."""
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
