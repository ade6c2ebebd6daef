"""A hub at a port of this machine: the file that says where it is and with which key, and how both ends prove that they
have read it.  Needs nothing but TCP, so it works where there are no Unix sockets.

Nobody sends the key.  Each end shows a digest of it that is good for this connection alone, the hub first: a stranger
on a dead hub's port learns nothing, and one that comes to the hub's port neither.
"""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

from atlasbridge.core.calling_card import has_introductions, introduce
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.system import OWN_FILE
from atlasbridge.core.values import frozen

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
    return _digest(issued, b"hub", theirs, ours)


def peer_proof(issued: Pass, ours: bytes, theirs: bytes) -> bytes:
    return _digest(issued, b"peer", ours, theirs)


def _digest(issued: Pass, who: bytes, of_peer: bytes, of_hub: bytes) -> bytes:
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
    """A connection on which both ends have proved themselves.  Raises OSError; `Stranger` where it is not our hub."""
    patience_s = PATIENCE_S if timeout_s is None else min(timeout_s, PATIENCE_S)
    link = socket.create_connection((HOST, issued.port), timeout=patience_s)
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if link.getsockname() == link.getpeername():  # nobody listens, and the system connected us to ourselves
            raise Stranger("nobody has the hub's port")
        ours = os.urandom(NONCE)
        link.sendall(ours)
        challenge = _receive(link, CHALLENGE, _clock.now() + patience_s)
        theirs, proof = challenge[:NONCE], challenge[NONCE:]
        if not is_proof(proof, hub_proof(issued, ours, theirs)):
            raise Stranger("another program has the hub's port")
        if has_introductions():
            introduce(issued.port, issued.key, ours, theirs, patience_s)
        link.sendall(peer_proof(issued, ours, theirs))
        link.settimeout(timeout_s)
    except BaseException:
        link.close()
        raise
    return link


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
