"""A client's request for a host: its format, and how a client sends it to the fork server.

A request contains the command line, the environment, the umask, and the numbers of the client's open files. No argument
and no variable can contain a NUL byte, so nothing needs quoting. The descriptors go with the first byte. Every client
imports this module before its tool can start, so it imports almost nothing.
"""

from __future__ import annotations

import os
import sys

from atlasbridge import __version__
from atlasbridge.core import wire
from atlasbridge.core.fast_imports import socket
from atlasbridge.core.peer import MARK, prove_outside
from atlasbridge.core.process import (
    fill_standard_streams,
    hide_memory,
    inheritable_fds,
    inherited_numbers,
    send_with_fds,
)
from atlasbridge.core.system_setup import find_home_folder
from atlasbridge.core.values import frozen

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


# The properties that a process inherits and a client cannot pass on: user, groups, capabilities, limits, priority,
# cgroup, namespaces.
#
# A fork server serves only clients with the same fingerprint: then its forked host is equal to the host that the client
# would have forked. The fingerprint is also the server's address.

SWITCH = "ATLASBRIDGE_SESSION_ZYGOTE"
_OFF = ("0", "off", "no", "false")
_FORMAT = 1  # of the request; see `spawn_request`
FOLDER = "run"
# These variables change how an interpreter and its C library behave from their first instruction on.
_OF_THE_INTERPRETER = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_", "LANG")
_OF_THE_STATUS = (
    *("Uid", "Gid", "Groups", "NStgid", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"),
    *("Seccomp_filters", "Speculation_Store_Bypass", "SpeculationIndirectBranch", "THP_enabled", "Cpus_allowed"),
    "Mems_allowed",
)
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid_for_children", "time_for_children", "user", "uts")
_FILES = (
    *("cgroup", "limits", "personality", "attr/current", "loginuid", "sessionid", "coredump_filter", "timerslack_ns"),
    "oom_score_adj",
)


def wants_zygote(environ: Mapping[str, str]) -> bool:
    """False inside a session, where the outer host must stay the ancestor of everything, and if it is turned off."""
    return sys.platform == "linux" and MARK not in environ and environ.get(SWITCH, "").lower() not in _OFF


def read_fingerprint(environ: Mapping[str, str]) -> bytes:
    """One property per line. Empty if the system does not report enough, or this interpreter has options of its own."""
    if sys.platform != "linux" or _has_options():
        return b""
    try:
        return "\n".join([*_of_the_program(environ), *_of_the_process()]).encode("utf-8", "surrogateescape")
    except OSError:
        return b""


def server_address(folder: str, fingerprint: bytes) -> str:
    """The socket of the server for this fingerprint. The server compares the whole fingerprint, not this number."""
    number = int.from_bytes(fingerprint, "big") % ((1 << 61) - 1)
    return os.path.join(folder, FOLDER, f"{number:016x}.sock")


def interpreter_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that the server itself needs; the rest comes with each request."""
    return {name: value for name, value in sorted(environ.items()) if name.startswith(_OF_THE_INTERPRETER)}


def _has_options() -> bool:
    flags = sys.flags
    options = (flags.optimize, flags.dev_mode, flags.isolated, flags.ignore_environment, flags.no_site, flags.debug)
    return any(options) or bool(sys.warnoptions) or bool(sys._xoptions)


def _of_the_program(environ: Mapping[str, str]) -> list[str]:
    binary = os.stat(sys.executable)
    return [
        f"{__version__} {_FORMAT} {wire.PROTOCOL} {os.path.dirname(os.path.abspath(__file__))}",
        f"{sys.executable} {binary.st_ino} {binary.st_mtime_ns} {sys.getfilesystemencoding()}",
        repr(interpreter_environ(environ)),
        _read("/proc/sys/kernel/random/boot_id"),
    ]


def _of_the_process() -> list[str]:
    facts = [line for line in _read("/proc/self/status").split("\n") if line.partition(":")[0] in _OF_THE_STATUS]
    # Only the nesting depth of the pid namespaces, because the pids in them differ for each process.
    facts[:] = [f"NStgid {len(line.split())}" if line.startswith("NStgid") else line for line in facts]
    facts += [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES if os.path.exists(f"/proc/self/ns/{name}")]
    facts += [f"{name} {_read_if_there(f'/proc/self/{name}')}" for name in _FILES]
    root = os.stat("/")
    facts.append(f"{root.st_dev} {root.st_ino} {os.getpriority(os.PRIO_PROCESS, 0)} {os.sched_getscheduler(0)}")
    facts.append(f"{inherited_numbers()}")
    return facts


def _read(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return file.read().decode("utf-8", "surrogateescape")


def _read_if_there(path: str) -> str:
    try:
        return _read(path)
    except OSError:
        return ""  # this kernel has no such file; both sides get the same result


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
