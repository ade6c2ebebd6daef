"""Identifies processes: the peer of a Unix socket (that connected, or that listens), and whether a session's tool is
among its ancestors.

Reading is separate from deciding: `decide_inside_session` is pure, and the hub and the integrations decide about the
consequences. A client of a hub, a session or a zygote verifies its peer here before it sends anything.
"""

from __future__ import annotations

import os
import sys
import time

from atlasbridge.core.fast_imports import signal, socket
from atlasbridge.core.values import frozen, replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from typing import Protocol

    class Link(Protocol):
        """A socket from the public module or from its C half."""

        def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


MARK = "ATLASBRIDGE_SESSION"  # set in the environment of a session's tool, and inherited by everything it starts
HOST_NAME = "atlas-session"  # a session host's name in the kernel's process list; only the process itself can change it
ELSEWHERE = "unknown"  # used instead of an id for a session that this hub does not know
_LONGEST_ANCESTRY = 512
_TRIES = 4
_PROC = "/proc"
_LIMIT = 10  # RLIMIT_LOCKS
_HIGHEST_LIMIT = 1 << 62


@frozen
class Process:
    pid: int
    parent: int  # 0: none that is visible to us
    started: int = 0  # in ticks since the machine started; 0: unknown
    tty: str = ""  # its controlling terminal as the system names it; "": none
    mark: str = ""  # the session id in its environment, if that is readable; `ELSEWHERE` by its limit alone
    name: str = ""  # the name that the process has set


@frozen
class SessionProcesses:
    """The processes of a session. Everything below its host belongs to its tool."""

    session_id: str
    host_pid: int
    tool_pid: int
    host_started: int = 0  # distinguishes them from later processes with the same pids; 0: unknown
    tool_started: int = 0
    tty: str = ""


if TYPE_CHECKING:
    Look = Callable[[int], Process | None]
else:
    Look = object


def trace_ancestry(pid: int, look: Look) -> tuple[Process, ...]:
    """Returns the process and its ancestors, nearest first. Empty if it has ended or its ancestry could not be
    followed.

    A parent can end during the walk, and its pid can be reused. So every process is read twice: if its parent is the
    same before and after the parent was read, it was that parent's child the whole time.
    """
    for _ in range(_TRIES):
        ancestry = _walk(pid, look)
        if ancestry and not ancestry[0].mark and has_lowered_limit(pid):
            ancestry = (replace(ancestry[0], mark=ELSEWHERE), *ancestry[1:])
        if ancestry and all(_is_unchanged(process, look) for process in ancestry):
            return ancestry
    return ()


def _walk(pid: int, look: Look) -> tuple[Process, ...]:
    ancestry: list[Process] = []
    while pid > 0 and len(ancestry) < _LONGEST_ANCESTRY:
        process = look(pid)
        if process is None or (ancestry and process.started > ancestry[-1].started):
            return ()
        ancestry.append(process)
        pid = process.parent
    return tuple(ancestry)


def _is_unchanged(process: Process, look: Look) -> bool:
    again = look(process.pid)
    return again is not None and (again.parent, again.started) == (process.parent, process.started)


def decide_inside_session(ancestry: Iterable[Process], sessions: Iterable[SessionProcesses]) -> str:
    """Returns the session to which one of these processes belongs by its ancestry, terminal or environment; "" if
    none."""
    ancestry = tuple(ancestry)
    pids, terminals = {process.pid for process in ancestry}, {process.tty for process in ancestry if process.tty}
    near = [
        session
        for session in sessions
        if session.host_pid in pids or session.tool_pid in pids or session.tty in terminals
    ]
    for process in ancestry:
        for session in near:
            if _belongs(process, session):
                return session.session_id
    marks = [process.mark for process in ancestry if process.mark]
    if marks:
        return next((mark for mark in marks if mark != ELSEWHERE), ELSEWHERE)
    return ELSEWHERE if any(process.name == HOST_NAME for process in ancestry) else ""


def _belongs(process: Process, session: SessionProcesses) -> bool:
    if session.tty and process.tty == session.tty:
        return True
    if process.pid == session.host_pid:
        return _is_same(process, session.host_started, process.name in (HOST_NAME, ""))
    return process.pid == session.tool_pid and _is_same(process, session.tool_started, not process.name)


def _is_same(process: Process, started: int, otherwise: bool) -> bool:
    """A pid alone proves nothing after its process has ended: on a busy machine, a person's command can get it next."""
    return process.started == started if started and process.started else otherwise


def is_inside(ancestry: Iterable[Process]) -> bool:
    """Whether an ancestry leads into any session of any home and hub, by an environment mark or by a host above it.

    For callers without a list of sessions. A host is not inside its own session, but everything it started is.
    """
    return any(process.mark or process.name == HOST_NAME for process in ancestry)


# A tool can empty its environment and kill its host. It cannot get rid of a hard resource limit: every process that it
# starts inherits the limit, and only root can raise it. Linux has not enforced the limit on file locks since 2.4.


def session_limits() -> tuple[tuple[int, int], ...]:
    """The resource limits of a session's tool, as (number, value). They are lower than our own."""
    if sys.platform != "linux":
        return ()
    import resource

    hard = resource.getrlimit(_LIMIT)[1]
    return ((_LIMIT, max(0, (_HIGHEST_LIMIT if hard < 0 else hard) - 1)),)


def has_lowered_limit(pid: int) -> bool:
    """Whether the limit of a process shows that it was started inside a session.

    We compare it with our own limit, which an administrator can have set. If we are inside a session, any limit counts.
    """
    if sys.platform != "linux":
        return False
    try:
        after = _read(f"{_PROC}/{pid}/limits").partition(b"Max file locks")[2].split(None, 2)
        limit = int(after[1])
    except (OSError, ValueError, IndexError):
        return False  # it is gone, hidden, or unlimited
    import resource

    own = resource.getrlimit(_LIMIT)[1]
    return own < 0 or own > _HIGHEST_LIMIT // 2 or limit < own


def own_tool(pid: int, host_pid: int, integration: object = None, look: Look | None = None) -> int:
    """Returns the process that a host names as its tool, if it is a descendant of the host; otherwise the host itself.

    Without this check a caller could name any process as a tool, such as a person's shell, and then all commands of
    that shell would count as the tool's. For an MCP server, the process that started it is accepted.
    """
    ancestry = trace_ancestry(pid, look or look_at)
    if not ancestry or any(process.pid == host_pid for process in ancestry):
        return pid  # it has ended, or is a descendant of its host
    host = (look or look_at)(host_pid) if integration == "mcp" else None
    return pid if host is not None and host.parent == pid > 1 else host_pid


def look_at(pid: int) -> Process | None:
    """Returns one process as the system describes it; None if it has ended."""
    if sys.platform == "win32":
        from atlasbridge.core.process_table import look_on_windows

        told = look_on_windows(pid)
        return None if told is None else Process(pid, told[0], told[1], name=told[2])
    if sys.platform == "darwin":
        from atlasbridge.core.process_table import look_on_macos

        shown = look_on_macos(pid)
        if shown is None:
            return None
        return Process(pid, shown.parent, shown.started, shown.terminal, name=shown.command)
    return _look_in_proc(pid)


def _look_in_proc(pid: int) -> Process | None:
    try:
        text = _read(f"{_PROC}/{pid}/stat").decode("utf-8", "replace")
    except FileNotFoundError:
        return Process(pid, 0) if _hidden(pid) else None
    except OSError:
        return None
    return parse_stat(pid, text, _mark_of(pid))


def _hidden(pid: int) -> bool:
    """Whether the process exists but is hidden from us (`hidepid`): it belongs to another user, so our ancestry ends
    here."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def parse_stat(pid: int, text: str, mark: str = "") -> Process | None:
    """Parses /proc/PID/stat. The name in parentheses can contain anything, so the fields are read after the last
    one."""
    before, _, after = text.rpartition(")")
    words = after.split()
    if len(words) < 20:
        return None
    name = before.partition("(")[2]
    return Process(pid, int(words[1]), int(words[19]), words[4] if words[4] != "0" else "", mark, name)


def _mark_of(pid: int) -> str:
    try:
        data = _read(f"{_PROC}/{pid}/environ")
    except OSError:
        return ""  # it belongs to another user, or is one of ours that hides its memory
    begin = f"\0{MARK}=".encode()
    at = (b"\0" + data).find(begin)
    if at < 0:
        return ""
    value = data[at + len(begin) - 1 :].partition(b"\0")[0]
    return value.decode("ascii", "replace")[:64] or "unknown"


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def started_at(pid: int) -> int:
    """The start time, which distinguishes a process from a later one with the same pid; 0 if the system does not report
    it."""
    found = look_at(pid) if pid > 0 else None
    return found.started if found else 0


def version_of(pid: int) -> int:
    """The version of the pid, where the system counts how often it was reused (macOS); otherwise 0."""
    if sys.platform != "darwin":
        return 0
    from atlasbridge.core.process_table import number_version

    return number_version(pid)


# The kernel records a pid when a socket connects or listens. Pids are reused, so a pid alone proves nothing. Linux
# (from 6.5) also provides a descriptor of that process: as long as it can be signalled, the pid still belongs to the
# process, and pid and start time together identify it for good. Before 6.5 both ends exchange nonces. macOS puts a
# version of the pid into the audit token.

_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID, _LOCAL_PEERTOKEN = 0, 0x001, 0x002, 0x006  # macOS; the BSDs have the first
_INT = 4
_SO_PEERPIDFD = 77  # Linux 6.5
_AUDIT_TOKEN = 8  # four-byte words: the sixth is the pid, the last is the version of the pid
_PATIENCE_S = 2.0
_LOOKS, _LOOK_EVERY_S = 50, 0.02
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


def ancestry_of(peer: Peer) -> tuple[Process, ...]:
    """The peer and its ancestors, nearest first. Empty if the peer is unknown or has ended."""
    if peer.pid <= 0 or peer.started < 0:
        return ()
    ancestry = trace_ancestry(peer.pid, look_at)
    same = not peer.started or not ancestry or ancestry[0].started == peer.started
    return ancestry if same else ()


def _meet_listener(link: socket.socket, users: Collection[int] | None) -> tuple[Peer, tuple[Process, ...]]:
    """The listener and its ancestors. Raises `FalsePeer` if it is of another user (None: any will do) or unknown."""
    peer = meet(link)
    if users is not None and peer.uid not in users:
        raise FalsePeer(f"the program that listens there is of another user ({peer.uid})")
    ancestry = ancestry_of(peer)
    if peer.pid and not ancestry:
        raise FalsePeer("the program that listened there has ended, or does not show which process it is")
    return peer, ancestry


def prove_outside(link: socket.socket, users: Collection[int]) -> Peer:
    """Checks that the listener belongs to one of these users and was not started inside a session.

    Raises `FalsePeer`, so that we send nothing to a program that a session's tool has put in the place of the hub or of
    a zygote.
    """
    peer, ancestry = _meet_listener(link, users)
    for _ in range(_LOOKS):
        if not is_inside(ancestry) or is_vouched_for(ancestry):
            return peer
        if len(ancestry) < 2 or ancestry[1].name != HOST_NAME:
            break
        time.sleep(_LOOK_EVERY_S)  # a host that just ends no longer confirms its hub, and is still its parent
        if not (ancestry := ancestry_of(peer)):
            break
    raise FalsePeer(f"process {peer.pid}, which was started inside a session, listens there")


def prove_host(link: socket.socket) -> Peer:
    """Used by `attach`: checks that the listener is not a program that a session's tool has put in the host's place.

    A caller inside a session is allowed to reach processes that were started inside a session.
    """
    peer, ancestry = _meet_listener(link, (own_uid(),) if own_uid() else None)
    below = ancestry and (ancestry[0].mark or is_inside(ancestry[1:]))
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


def is_vouched_for(ancestry: tuple[Process, ...]) -> bool:
    """Whether a host that is itself outside every session confirms that it started this hub."""
    if sys.platform != "linux" or len(ancestry) < 2 or ancestry[1].name != HOST_NAME:
        return False
    if ancestry[0].mark or ancestry[1].mark or is_inside(ancestry[2:]):
        return False
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.settimeout(_PATIENCE_S)
        link.connect(voucher(ancestry[1].pid, ancestry[0]))
        said = meet(link)
    except OSError:
        return False
    finally:
        link.close()
    return (said.pid, said.started) == (ancestry[1].pid, ancestry[1].started)
