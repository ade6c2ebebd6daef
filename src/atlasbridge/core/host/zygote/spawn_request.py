"""A client's request for a host: its format, and how a client sends it to the fork server.

A request contains the command line, the environment, the umask, and the numbers of the client's open files. No argument
and no variable can contain a NUL byte, so nothing needs quoting. The descriptors go with the first byte. Every client
imports this module before its tool can start, so it imports almost nothing.
"""

from __future__ import annotations

import os

from atlasbridge.core.fast_imports import socket
from atlasbridge.core.host.terminal.terminal_handover import fill_standard_streams, inheritable_fds, send_with_fds
from atlasbridge.core.host.zygote.environment_fingerprint import read_fingerprint, server_address, wants_zygote
from atlasbridge.core.peer import prove_outside
from atlasbridge.core.process import hide_memory
from atlasbridge.core.system_setup import find_home_folder
from atlasbridge.core.values import frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST = 8 * 1024 * 1024  # more than the kernel passes to a new program
MOST_FDS = 200  # the kernel passes at most 253 at once
CWD = "cwd"
HERE, GO = b"here\n", b"go\n"  # the host accepts the request; the client still waits for it
_HEAD = 12
_INT = 4
_TIMEOUT_S = 2.0
_NOT_FOR_THE_SERVER = ("-h", "--help", "--backend")  # rare, and not worth a host


@frozen
class SpawnRequest:
    """`fds`: the number that each descriptor has in the client, or `CWD`."""

    fingerprint: bytes
    umask: int
    fds: tuple[str, ...]
    words: tuple[bytes, ...]
    environ: dict[bytes, bytes]


def encode_request(
    fingerprint: bytes, umask: int, fds: Sequence[str], words: Sequence[str], environ: Mapping[bytes, bytes]
) -> bytes:
    head = [fingerprint, b"%o" % umask, " ".join(fds).encode(), b"%d" % len(words)]
    pairs = [name + b"=" + value for name, value in environ.items()]
    body = b"\0".join([*head, *(os.fsencode(word) for word in words), *pairs])
    return b"%*d" % (_HEAD, len(body)) + body


def request_length(data: bytes) -> int:
    """Returns the length of the request that begins with `data`; 0 if more bytes are needed. Raises ValueError if it is
    not a request."""
    if len(data) < _HEAD:
        return 0
    length = int(data[:_HEAD])
    if not 0 < length <= LONGEST:
        raise ValueError("a request of impossible length")
    return _HEAD + length


def parse_request(data: bytes) -> SpawnRequest:
    """Raises ValueError if the data is not a valid request."""
    fingerprint, umask, fds, count, *rest = data[_HEAD:].split(b"\0")
    number = int(count)
    if not 0 < number <= len(rest):
        raise ValueError("a request without a command line")
    pairs = [pair.partition(b"=") for pair in rest[number:]]
    if any(not name or not equals for name, equals, _ in pairs):
        raise ValueError("a variable without a name")
    environ = {name: value for name, _, value in pairs}
    numbers = tuple(fds.decode("ascii").split())
    return SpawnRequest(fingerprint, int(umask, 8) & 0o777, numbers, tuple(rest[:number]), environ)


def request_host(words: Sequence[str], environ: Mapping[str, str]) -> socket.socket | None:
    """Used by the client: returns a connection to the host that runs this command line. Returns None if no fork server
    serves this client: then nothing was started, and the client forks its own host."""
    if not words or any(word.startswith(_NOT_FOR_THE_SERVER) for word in words) or not wants_zygote(environ):
        return None
    fingerprint = read_fingerprint(environ)
    if not fingerprint:
        return None
    fill_standard_streams()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(server_address(find_home_folder(environ), fingerprint))
        prove_outside(connection, (os.getuid(),))  # a tool must not host the sessions of its person
        if _send(connection, fingerprint, words):
            connection.settimeout(None)
            return connection
    except (OSError, ValueError):
        pass  # there is no fork server, or it does not serve this client
    connection.close()
    return None


def _send(connection: socket.socket, fingerprint: bytes, words: Sequence[str]) -> bool:
    hide_memory()
    numbers = [0, 1, 2, *inheritable_fds()]
    if len(numbers) >= MOST_FDS:
        return False
    umask = os.umask(0o077)
    os.umask(umask)
    request = encode_request(fingerprint, umask, [CWD, *map(str, numbers)], words, os.environb)
    folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        send_with_fds(connection, request, (folder, *numbers))
    finally:
        os.close(folder)
    if connection.recv(len(HERE)) != HERE:
        return False
    connection.sendall(GO)  # the host waits for it: a client that gave up must not have its tool started twice
    return True  # the caller imports the rest while the host prepares the session
