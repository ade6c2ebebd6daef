"""Connects to a hub, through its Unix socket or through a loopback TCP port with a key.

A hub chooses one of the two when it starts and creates either the socket or the file with its port. A client looks for
both. Commands, session hosts, integrations and the client library all connect here.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
import time
from pathlib import Path

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.peer import FalsePeer, Peer, own_uid, prove_outside
from atlasbridge.core.system import write_private
from atlasbridge.core.values import frozen

# How a hub learns which process connected to its TCP port on Linux, where the kernel reports peer processes only for
# Unix sockets. Besides its port, the hub listens on an abstract Unix socket. A client that has the key connects to that
# socket as well and names its TCP connection. The kernel then reports the client's process. The tables of open files
# are not needed; our own processes hide them.
#
# The handshake on the port follows further below. What the hub concludes from the process is decided elsewhere.

CARD = 32  # bytes that identify a connection
NOTED = b"\1"
_NAME = 32  # characters of the socket's name; only a process that has the key can compute them


def has_introductions() -> bool:
    return sys.platform == "linux" and hasattr(socket, "AF_UNIX")


def meeting_place(issued: Pass) -> str:
    """The name of the abstract socket. It is unique to this hub, and only a process that has read the hub's file can
    compute it."""
    return "\0atlasbridge-" + _digest(issued, b"atlasbridge introduction\0place").hex()[:_NAME]


def card_of(issued: Pass, of_peer: bytes, of_hub: bytes) -> bytes:
    """Identifies the one connection for which both ends generated these nonces."""
    return _digest(issued, b"atlasbridge introduction\0card", of_peer, of_hub)


def introduce(issued: Pass, of_peer: bytes, of_hub: bytes, patience_s: float) -> Peer | None:
    """Tells the hub which process we are. Returns the hub's process, or None if no hub answers.

    Raises `FalsePeer`, before it sends anything, if a program inside a session wrote the file that led us here.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            link.settimeout(patience_s)
            link.connect(meeting_place(issued))
            hub = prove_outside(link, (own_uid(),))
            link.sendall(card_of(issued, of_peer, of_hub))
            return hub if link.recv(len(NOTED)) == NOTED else None
        except FalsePeer:
            raise
        except OSError:
            return None


def _digest(issued: Pass, purpose: bytes, of_peer: bytes = b"", of_hub: bytes = b"") -> bytes:
    """The digest includes its purpose, so that a proof cannot be replayed to its sender, and the port, so that it
    cannot be relayed from another port."""
    import hmac  # imported late: most hosts never need it

    about = b"\0".join((purpose, str(issued.port).encode(), of_peer + of_hub))
    return hmac.digest(issued.key, about, "sha256")


# A hub on a loopback TCP port: the file that holds its port and key, and the handshake in which both ends prove that
# they have read it. It needs only TCP, so it works on systems without Unix sockets.
#
# The key itself is never sent. Each end sends a digest that is valid for this connection only, and the hub sends first.
# Therefore a foreign program that listens on the port of a dead hub learns nothing, and neither does one that connects
# to the hub.

HOST = "127.0.0.1"
NONCE = 32  # random bytes from each end
PROOF = 32  # bytes of a digest
CHALLENGE = NONCE + PROOF  # the hub sends this first
SUFFIX = ".tcp"
PATIENCE_S = 5.0  # how long to wait for the other end's proof
_LONGEST = 512  # maximum size of the file in bytes
_KEY = 32
_clock = SystemClock()
_TRIES, _TRY_S = 20, 0.05  # on Windows, a file cannot be replaced while another process reads it


@frozen
class Pass:
    """The content of the file."""

    port: int
    key: bytes


class Stranger(ConnectionError):
    """The other end does not have the key."""


def pass_file(socket_path: Path | str) -> Path:
    """The file is next to the path of the hub's socket."""
    return Path(socket_path).with_suffix(SUFFIX)


def new_key() -> bytes:
    return os.urandom(_KEY)


def write_pass(path: Path, issued: Pass) -> None:
    """Writes the file atomically and readable by this user only."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    write_private(draft, f"{issued.port} {issued.key.hex()}\n")
    for tried in range(_TRIES):
        try:
            os.replace(draft, path)
            return
        except PermissionError:
            if tried == _TRIES - 1:
                draft.unlink(missing_ok=True)
                raise
            time.sleep(_TRY_S)


def read_pass(path: Path) -> Pass | None:
    """Returns None if the file is missing or invalid."""
    try:
        with open(path, "rb") as file:
            words = file.read(_LONGEST).decode("ascii", "replace").split()
    except OSError:
        return None
    try:
        port, key = int(words[0]), bytes.fromhex(words[1])
    except (ValueError, IndexError):
        return None
    return Pass(port, key) if len(words) == 2 and 0 < port < 65536 and len(key) == _KEY else None


def hub_proof(issued: Pass, of_peer: bytes, of_hub: bytes) -> bytes:
    return _digest(issued, b"atlasbridge\0hub", of_peer, of_hub)


def peer_proof(issued: Pass, of_peer: bytes, of_hub: bytes) -> bytes:
    return _digest(issued, b"atlasbridge\0peer", of_peer, of_hub)


def is_proof(given: bytes, wanted: bytes) -> bool:
    from hmac import compare_digest

    return compare_digest(given, wanted)


def answer_loopback(link: socket.socket, issued: Pass, patience_s: float = PATIENCE_S) -> bool:
    """The listener's half of the handshake. Returns whether the peer has the key. Raises OSError."""
    until = _clock.now() + patience_s
    theirs, ours = _receive(link, NONCE, until), os.urandom(NONCE)
    link.sendall(ours + hub_proof(issued, theirs, ours))
    return is_proof(_receive(link, PROOF, until), peer_proof(issued, theirs, ours))


def connect_loopback(issued: Pass, timeout_s: float | None) -> socket.socket:
    """Returns a connection on which both ends have proved that they have the key. Raises OSError, and `Stranger` if the
    other end does not have it."""
    return _connect(issued, timeout_s, known=False)[0]


def connect_hub(issued: Pass, timeout_s: float | None) -> tuple[socket.socket, Peer]:
    """Like `connect_loopback`, and also returns the hub's process where the system can tell. Also raises
    `FalsePeer`."""
    return _connect(issued, timeout_s, known=True)


def _connect(issued: Pass, timeout_s: float | None, known: bool) -> tuple[socket.socket, Peer]:
    patience_s = PATIENCE_S if timeout_s is None else min(timeout_s, PATIENCE_S)
    link = socket.create_connection((HOST, issued.port), timeout=patience_s)
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if link.getsockname() == link.getpeername():  # nothing listens, and the system connected us to ourselves
            raise Stranger("no process has the hub's port")
        ours = os.urandom(NONCE)
        link.sendall(ours)
        challenge = _receive(link, CHALLENGE, _clock.now() + patience_s)
        theirs, proof = challenge[:NONCE], challenge[NONCE:]
        if not is_proof(proof, hub_proof(issued, ours, theirs)):
            raise Stranger("another program has the hub's port")
        hub = introduce(issued, ours, theirs, patience_s) if known and has_introductions() else None
        if known and has_introductions() and hub is None:
            raise TimeoutError("the hub did not say in time who it is")
        link.sendall(peer_proof(issued, ours, theirs))
        link.settimeout(timeout_s)
    except BaseException:
        link.close()
        raise
    return link, hub or Peer(0, own_uid())


def _receive(link: socket.socket, size: int, until: float) -> bytes:
    """The timeout applies to the whole message: a peer that sends single bytes slowly cannot extend it."""
    data = b""
    while len(data) < size:
        left_s = until - _clock.now()
        if left_s <= 0:
            raise TimeoutError("the hub's port does not answer as a hub does")
        link.settimeout(left_s)
        more = link.recv(size - len(data))
        if not more:
            raise Stranger("another program has the hub's port")
        data += more
    return data


def has_unix_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def wants_loopback(transport: str) -> bool:
    """Resolves the setting `hub.transport` on this system."""
    return transport == "loopback" or not has_unix_sockets()


def dial(socket_path: Path | str, timeout_s: float | None = None) -> socket.socket:
    """Returns a connected socket to the hub. Raises OSError: BlockingIOError if the hub does not answer, `FalsePeer` if
    another program listens in its place."""
    return dial_hub(socket_path, timeout_s)[0]


def dial_hub(socket_path: Path | str, timeout_s: float | None = None) -> tuple[socket.socket, Peer]:
    """Like `dial`, and also returns the hub's process."""
    issued = read_pass(pass_file(socket_path))
    if issued is not None:
        return connect_hub(issued, timeout_s)
    if not has_unix_sockets():
        raise ConnectionRefusedError("no hub has left its address")
    link = _connect_unix(str(socket_path), timeout_s)
    try:
        return link, prove_outside(link, hub_users(socket_path))
    except BaseException:
        link.close()
        raise


def hub_users(socket_path: Path | str) -> frozenset[int]:
    """The users whose hub is allowed to listen there: this user, or the owner of the folder (for another user's
    hub)."""
    return frozenset({own_uid(), os.stat(os.path.dirname(socket_path) or ".").st_uid})


def _connect_unix(path: str, timeout_s: float | None) -> socket.socket:
    """Lets the kernel apply the timeout. If the hub's backlog is full, a socket with a Python timeout fails at once, as
    if no hub were running; with SO_SNDTIMEO it waits."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if timeout_s is not None:
            limit = struct.pack("ll", int(timeout_s), int(timeout_s % 1 * 1_000_000))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        link.connect(path)
        if timeout_s is not None:
            link.settimeout(timeout_s)
    except OSError:
        link.close()
        raise
    return link


def left_address(socket_path: Path) -> Path | None:
    """Returns the file through which a hub can be found, or None if there is none."""
    return next((path for path in (pass_file(socket_path), socket_path) if path.exists()), None)


# Binds a port exclusively. On Windows another program can listen on the same port, or take it over, if one of the two
# sets SO_REUSEADDR. On Unix that option only allows a bind shortly after a restart.


def bind_alone(host: str, port: int) -> socket.socket:
    """Returns a bound socket that does not listen yet. Port 0 means any free port. Raises OSError."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        alone = getattr(socket, "SO_EXCLUSIVEADDRUSE", None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if alone is None else alone, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def is_taken(fault: OSError) -> bool:
    """Whether the bind failed because another program uses the port. Windows reports "access denied" for a port that
    another program has bound exclusively."""
    return fault.errno == errno.EADDRINUSE or (os.name == "nt" and fault.errno == errno.EACCES)
