"""Takes from AtlasBridge, in every process that finds this folder on its path, what Python has on Unix only.

Its modules see an `os`, `socket`, `select`, `signal` and `subprocess` without those names; the standard library and
others keep theirs.  Where Windows has the same name for something else, using it as on Unix is an error here.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib
import inspect
import os
import subprocess
import sys
from types import ModuleType
from typing import Any

MISSING_MODULES = {"fcntl", "termios", "resource", "pwd", "grp", "tty", "pty", "_posixsubprocess"}
KNOWS_SIGNAL_0 = {"atlasbridge.core.system", "atlasbridge.core.peer"}  # they ask first which system it is
BINARY = 1 << 29
MISSING = {
    "os": {
        *("fork", "forkpty", "openpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "getpgrp", "getpgid"),
        *("getsid", "setsid", "setpgid", "setuid", "killpg", "waitid", "WNOHANG", "WNOWAIT", "WEXITED", "WUNTRACED"),
        *("P_ALL", "pwrite", "pread", "fchmod", "fchown", "chown", "posix_spawn", "mkfifo", "uname", "O_CLOEXEC"),
        *("O_NONBLOCK", "O_NOFOLLOW", "O_DIRECTORY", "O_NOCTTY", "O_PATH", "ttyname", "tcgetpgrp", "tcsetpgrp"),
        *("ctermid", "environb", "register_at_fork", "sched_getaffinity", "getloadavg", "statvfs", "set_blocking"),
        *("get_blocking", "nice", "sync", "fstatvfs", "getpriority", "waitstatus_to_exitcode_of_signals"),
        "getppid",  # there, but under Wine it ends the process
    },
    "socket": {
        *("AF_UNIX", "SO_PEERCRED", "SCM_RIGHTS", "CMSG_SPACE", "CMSG_LEN", "MSG_CMSG_CLOEXEC", "send_fds", "recv_fds"),
        *("MSG_DONTWAIT", "SO_SNDTIMEO", "SO_RCVTIMEO"),
    },
    "select": {"poll", "epoll", "POLLIN", "POLLOUT", "POLLERR", "POLLHUP", "POLLPRI"},
    "signal": {
        *("SIGHUP", "SIGQUIT", "SIGKILL", "SIGCHLD", "SIGWINCH", "SIGTSTP", "SIGCONT", "SIGPIPE", "SIGUSR1", "SIGUSR2"),
        *("SIGALRM", "SIGTTIN", "SIGTTOU", "SIGSTOP", "pthread_sigmask", "sigwait", "alarm", "setitimer", "SIG_BLOCK"),
    },
    "subprocess": set(),
    "asyncio": {"start_unix_server", "open_unix_connection"},
}


def _open(path: Any, flags: int, mode: int = 0o777) -> int:
    assert flags & BINARY or path == os.devnull, f"{path} would be opened as text"
    return os.open(path, flags & ~BINARY, mode)


def _kill(pid: int, number: int) -> None:
    here = inspect.currentframe()
    assert here is not None and here.f_back is not None
    assert number or here.f_back.f_globals["__name__"] in KNOWS_SIGNAL_0, "signal 0 is Ctrl-C there"
    os.kill(pid, number)


def _access(path: Any, mode: int, *, follow_symlinks: bool = True) -> bool:
    if not follow_symlinks:
        raise NotImplementedError("access: follow_symlinks unavailable on this platform")
    return os.access(path, mode)


def _execve(*_: Any) -> None:
    raise AssertionError("anyone who waits for this process would go on there")


class _Popen(subprocess.Popen[Any]):
    def __init__(self, *given: Any, **how: Any) -> None:
        assert not how.get("pass_fds") and not how.get("preexec_fn"), "Windows hands no descriptor over"
        super().__init__(*given, **how)


def _select(readers: Any, writers: Any, others: Any, timeout: float | None = None) -> Any:
    import select
    import stat

    assert readers or writers or others, "there must be something to wait for"
    for watched in (*readers, *writers, *others):
        number = watched if isinstance(watched, int) else watched.fileno()
        assert stat.S_ISSOCK(os.fstat(number).st_mode), "only sockets can be waited for"
    return select.select(readers, writers, others, timeout)


OTHER: dict[str, dict[str, Any]] = {
    "os": {
        "open": _open,
        "kill": _kill,
        "access": _access,
        "execve": _execve,
        "supports_follow_symlinks": set(),
        "O_BINARY": BINARY,
    },
    "select": {"select": _select},
    "subprocess": {"Popen": _Popen},
}


class Poorer(ModuleType):
    """A module as it is on Windows."""

    def __init__(self, whole: ModuleType) -> None:
        super().__init__(whole.__name__, whole.__doc__)
        self.__dict__["whole"] = whole

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__["__name__"]
        if name in MISSING[own]:
            raise AttributeError(f"module {own!r} has no attribute {name!r} on Windows")
        other = OTHER.get(own, {})
        return other[name] if name in other else getattr(self.__dict__["whole"], name)


_poorer = {name: Poorer(importlib.import_module(name)) for name in MISSING}
_import = builtins.__import__


def _import_poorer(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:  # named as Python calls them
    asker = str((globals or {}).get("__name__", ""))
    if asker.startswith("atlasbridge") and level == 0:
        if name in MISSING_MODULES:
            raise ImportError(f"No module named {name!r} on Windows", name=name)
        if name == "msvcrt":  # by that name the standard library would take this for Windows
            return importlib.import_module("played_msvcrt")
        if name in _poorer:
            return _poorer[name]
    return _import(name, globals, locals, fromlist, level)


def _no_handler(*_: Any) -> None:
    raise NotImplementedError


if sys.platform != "win32":
    builtins.__import__ = _import_poorer
    asyncio.SelectorEventLoop.add_signal_handler = _no_handler  # type: ignore[assignment]
