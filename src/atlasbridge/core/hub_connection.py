"""The one way to a hub: by its Unix socket, or by a port of this machine with a key.

The hub decides which when it starts and leaves either its socket or the file with its port: who comes looks what is
there.  Commands, session hosts, doors and the library all connect here.
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
from atlasbridge.core.system import OWN_FILE
from atlasbridge.core.values import frozen

# Which process comes to a hub's port, where the system tells it only of Unix sockets (Linux): beside its port the hub
# listens at a Unix socket that has a name and no file, and who proves at the port that it has the key says there, too,
# which connection is its own.  The kernel notes who said so; tables of open files, which our own processes hide, are
# not
# needed.
#
# The port's handshake is `loopback`'s; what the hub makes of a process is decided elsewhere.

CARD = 32  # bytes that say which connection is meant
NOTED = b"\1"
_NAME = 32  # letters of the socket's name that only those who have the key can know


def has_introductions() -> bool:
    return sys.platform == "linux" and hasattr(socket, "AF_UNIX")


def meeting_place(port: int, key: bytes) -> str:
    """Unlike any other hub's, and nobody's who has not read this one's file."""
    return "\0atlasbridge-" + _digest(port, key, b"place").hex()[:_NAME]


def card_of(port: int, key: bytes, of_peer: bytes, of_hub: bytes) -> bytes:
    """Good for the one connection on which these two numbers were made up."""
    return _digest(port, key, b"card", of_peer, of_hub)


def introduce(port: int, key: bytes, of_peer: bytes, of_hub: bytes, patience_s: float) -> Peer | None:
    """The hub's process, once it has noted who we are; None: nobody is there.  Raises `FalsePeer` where a session's own
    program has left the file that led us here, before it is told anything."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        try:
            link.settimeout(patience_s)
            link.connect(meeting_place(port, key))
            hub = prove_outside(link, (own_uid(),))
            link.sendall(card_of(port, key, of_peer, of_hub))
            return hub if link.recv(len(NOTED)) == NOTED else None
        except FalsePeer:
            raise
        except OSError:
            return None


def _digest(port: int, key: bytes, about: bytes, of_peer: bytes = b"", of_hub: bytes = b"") -> bytes:
    import hmac  # not before it is needed: most hosts never come here

    words = b"\0".join((b"atlasbridge introduction", about, str(port).encode(), of_peer + of_hub))
    return hmac.digest(key, words, "sha256")


# A hub at a port of this machine: the file that says where it is and with which key, and how both ends prove that they
# have read it.  Needs nothing but TCP, so it works where there are no Unix sockets.
#
# Nobody sends the key.  Each end shows a digest of it that is good for this connection alone, the hub first: a stranger
# on a dead hub's port learns nothing, and one that comes to the hub's port neither.

HOST = "127.0.0.1"
NONCE = 32  # bytes that each end makes up
PROOF = 32  # bytes of a digest
CHALLENGE = NONCE + PROOF  # what a hub says first
SUFFIX = ".tcp"
PATIENCE_S = 5.0  # for the other end's proof
_LONGEST = 512  # bytes of the file
_KEY = 32
_clock = SystemClock()
_TRIES, _TRY_S = 20, 0.05  # on Windows a file that somebody reads at this moment cannot be replaced


@frozen
class Pass:
    """What the file says."""

    port: int
    key: bytes


class Stranger(ConnectionError):
    """Whoever is at the other end does not know the key."""


def pass_file(socket_path: Path | str) -> Path:
    """Beside the place where the hub's socket would be."""
    return Path(socket_path).with_suffix(SUFFIX)


def new_key() -> bytes:
    return os.urandom(_KEY)


def write_pass(path: Path, issued: Pass) -> None:
    """All of it or nothing, for this user alone."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
    with os.fdopen(fd, "w", encoding="ascii", newline="\n") as file:
        file.write(f"{issued.port} {issued.key.hex()}\n")
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
    """None: there is none, or it is not one."""
    try:
        with open(path, "rb") as file:
            words = file.read(_LONGEST).decode("ascii", "replace").split()
    except OSError:
        return None
    return parse_pass(words)


def parse_pass(words: list[str]) -> Pass | None:
    try:
        port, key = int(words[0]), bytes.fromhex(words[1])
    except (ValueError, IndexError):
        return None
    return Pass(port, key) if len(words) == 2 and 0 < port < 65536 and len(key) == _KEY else None


def hub_proof(issued: Pass, theirs: bytes, ours: bytes) -> bytes:
    return _digest_loopback(issued, b"hub", theirs, ours)


def peer_proof(issued: Pass, ours: bytes, theirs: bytes) -> bytes:
    return _digest_loopback(issued, b"peer", ours, theirs)


def _digest_loopback(issued: Pass, who: bytes, of_peer: bytes, of_hub: bytes) -> bytes:
    """Says who speaks, so that neither can be handed its own words; and where, so that nobody can stand between."""
    import hmac  # not before it is needed: most hosts never come here

    about = b"\0".join((b"atlasbridge", who, str(issued.port).encode(), of_peer + of_hub))
    return hmac.digest(issued.key, about, "sha256")


def is_proof(given: bytes, wanted: bytes) -> bool:
    from hmac import compare_digest

    return compare_digest(given, wanted)


def answer_loopback(link: socket.socket, issued: Pass, patience_s: float = PATIENCE_S) -> bool:
    """The other half, for who listens: whether the peer has the key.  Raises OSError."""
    until = _clock.now() + patience_s
    theirs, ours = _receive(link, NONCE, until), os.urandom(NONCE)
    link.sendall(ours + hub_proof(issued, theirs, ours))
    return is_proof(_receive(link, PROOF, until), peer_proof(issued, theirs, ours))


def connect_loopback(issued: Pass, timeout_s: float | None) -> socket.socket:
    """A connection on which both ends have proved that they have the key.  Raises OSError; `Stranger` where the other
    one has not."""
    return _connect(issued, timeout_s, known=False)[0]


def connect_hub(issued: Pass, timeout_s: float | None) -> tuple[socket.socket, Peer]:
    """The same, and which processes they are, where the system tells.  Raises also `FalsePeer`."""
    return _connect(issued, timeout_s, known=True)


def _connect(issued: Pass, timeout_s: float | None, known: bool) -> tuple[socket.socket, Peer]:
    patience_s = PATIENCE_S if timeout_s is None else min(timeout_s, PATIENCE_S)
    link = socket.create_connection((HOST, issued.port), timeout=patience_s)
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if link.getsockname() == link.getpeername():  # nobody listens, and the system connected us to ourselves
            raise Stranger("no process has the hub's port")
        ours = os.urandom(NONCE)
        link.sendall(ours)
        challenge = _receive(link, CHALLENGE, _clock.now() + patience_s)
        theirs, proof = challenge[:NONCE], challenge[NONCE:]
        if not is_proof(proof, hub_proof(issued, ours, theirs)):
            raise Stranger("another program has the hub's port")
        hub = introduce(issued.port, issued.key, ours, theirs, patience_s) if known and has_introductions() else None
        if known and has_introductions() and hub is None:
            raise TimeoutError("the hub did not say in time who it is")
        link.sendall(peer_proof(issued, ours, theirs))
        link.settimeout(timeout_s)
    except BaseException:
        link.close()
        raise
    return link, hub or Peer(0, own_uid())


def _receive(link: socket.socket, size: int, until: float) -> bytes:
    """All in all within its time: who sends a byte now and then keeps nobody."""
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


LOOPBACK, AUTO = "loopback", "auto"


def has_unix_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def wants_loopback(transport: str) -> bool:
    """What `hub.transport` means here."""
    return transport == LOOPBACK or not has_unix_sockets()


def dial(socket_path: Path | str, timeout_s: float | None = None) -> socket.socket:
    """A connected socket to the hub that listens there.  Raises OSError: BlockingIOError where it does not answer,
    `FalsePeer` where something else has taken its place."""
    return dial_hub(socket_path, timeout_s)[0]


def dial_hub(socket_path: Path | str, timeout_s: float | None = None) -> tuple[socket.socket, Peer]:
    """The same, and the hub's process."""
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
    """Whose hub may listen there: this user's own, or the one's to whom the folder belongs (a hub of another user)."""
    return frozenset({own_uid(), os.stat(os.path.dirname(socket_path) or ".").st_uid})


def _connect_unix(path: str, timeout_s: float | None) -> socket.socket:
    """A hub before whose door many stand is waited for by the kernel: a socket with a time limit of Python's own would
    be turned away at once, as if no hub were there."""
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
    """The file by which a hub can be found; None: no hub has left one."""
    return next((path for path in (pass_file(socket_path), socket_path) if path.exists()), None)


# A port of this machine that is ours alone.  Windows lets another program listen at the same one, or take it over, if
# either of them allows it by an option that on Unix only means "also after a restart".


def bind_alone(host: str, port: int) -> socket.socket:
    """A socket that is bound there and does not listen yet; 0: at any free port.  Raises OSError."""
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
    """Whether another program has the port, and not something else is wrong.  Windows denies the access to a port that
    another has for itself."""
    return fault.errno == errno.EADDRINUSE or (os.name == "nt" and fault.errno == errno.EACCES)
