"""What a process inherits and nobody can hand over: user, groups, capabilities, limits, priority, cgroup, namespaces.

A zygote serves only callers whose surroundings are its own, word for word: then what it forks is what the caller would
have forked.  They are its address, so that every kind of caller has its own.  Light: read by every client.
"""

from __future__ import annotations

import os
import sys

from atlasbridge import __version__
from atlasbridge.core import wire
from atlasbridge.core.kin import MARK
from atlasbridge.core.shield import inherited_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "ATLASBRIDGE_SESSION_ZYGOTE"
_OFF = ("0", "off", "no", "false")
FORMAT = 1  # of the letter; see `letter.py`
FOLDER = "run"
# What decides how an interpreter and its C library behave, from their first instruction on.
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
    """Not inside a session, whose host must stay above all that its tool starts; nor where somebody said no."""
    return sys.platform == "linux" and MARK not in environ and environ.get(SWITCH, "").lower() not in _OFF


def read_surroundings(environ: Mapping[str, str]) -> bytes:
    """One fact per line; empty where the system does not tell enough, or the interpreter was started in its own way."""
    if sys.platform != "linux" or _is_unusual():
        return b""
    try:
        return "\n".join([*_of_the_program(environ), *_of_the_process()]).encode("utf-8", "surrogateescape")
    except OSError:
        return b""


def address(folder: str, surroundings: bytes) -> str:
    """The socket of the zygote for these surroundings.  It compares them whole: a short name is only where it is."""
    number = int.from_bytes(surroundings, "big") % ((1 << 61) - 1)
    return os.path.join(folder, FOLDER, f"{number:016x}.sock")


def interpreter_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that the zygote itself lives with; everything else comes with each letter."""
    return {name: value for name, value in sorted(environ.items()) if name.startswith(_OF_THE_INTERPRETER)}


def _is_unusual() -> bool:
    flags = sys.flags
    options = (flags.optimize, flags.dev_mode, flags.isolated, flags.ignore_environment, flags.no_site, flags.debug)
    return any(options) or bool(sys.warnoptions) or bool(sys._xoptions)


def _of_the_program(environ: Mapping[str, str]) -> list[str]:
    binary = os.stat(sys.executable)
    return [
        f"{__version__} {FORMAT} {wire.PROTOCOL} {os.path.dirname(os.path.abspath(__file__))}",
        f"{sys.executable} {binary.st_ino} {binary.st_mtime_ns} {sys.getfilesystemencoding()}",
        repr(interpreter_environ(environ)),
        _read("/proc/sys/kernel/random/boot_id"),
    ]


def _of_the_process() -> list[str]:
    facts = [line for line in _read("/proc/self/status").split("\n") if line.partition(":")[0] in _OF_THE_STATUS]
    facts[:] = [_depth(line) if line.startswith("NStgid") else line for line in facts]
    facts += [os.readlink(f"/proc/self/ns/{name}") for name in _NAMESPACES if os.path.exists(f"/proc/self/ns/{name}")]
    facts += [f"{name} {_read_if_there(f'/proc/self/{name}')}" for name in _FILES]
    root = os.stat("/")
    facts.append(f"{root.st_dev} {root.st_ino} {os.getpriority(os.PRIO_PROCESS, 0)} {os.sched_getscheduler(0)}")
    facts.append(f"{inherited_numbers()}")
    return facts


def _depth(line: str) -> str:
    """How many process namespaces stand above each other; the numbers in them are each process's own."""
    return f"NStgid {len(line.split()) - 1}"


def _read(path: str) -> str:
    with open(path, "rb", buffering=0) as file:
        return file.read().decode("utf-8", "surrogateescape")


def _read_if_there(path: str) -> str:
    try:
        return _read(path)
    except OSError:
        return ""  # this kernel has none; both sides see the same
