"""The properties that a process inherits and a client cannot pass on: user, groups, capabilities, limits, priority,
cgroup, namespaces.

A fork server serves only clients with the same fingerprint: then its forked host is equal to the host that the client
would have forked. The fingerprint is also the server's address. Every client imports this module, so it imports almost
nothing.
"""

from __future__ import annotations

import os
import sys

from atlasbridge import __version__
from atlasbridge.core import wire
from atlasbridge.core.ancestry import MARK
from atlasbridge.core.process import inherited_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

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
