"""Starts one program on a pseudo-terminal of its own, synchronously, and says at once whether it runs.

No asyncio here: the pool and other programs stand on this. Reading, writing and ending the child are left to others
(see `termination` for the last).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
import signal
import struct
import sys
import termios
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn

from ptypool.errors import SpawnFailed, SpawnStage
from ptypool.job import hold_job
from ptypool.terminal import TermiosAttributes, above_stdio, open_terminal

_STAGES: tuple[SpawnStage, ...] = ("terminal", "cwd", "program")
_REPORT = struct.Struct("=Bi")
_RESETTABLE = tuple(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})
_FD_CEILING = 1 << 20
_FORK_WARNS = sys.version_info >= (3, 12)
_FORKING = threading.Lock()  # the filters of `warnings` belong to the whole process


class SpawnedProcess(NamedTuple):
    """A running child and the terminal's master side (close-on-exec, blocking); both belong to the caller."""

    pid: int
    master_fd: int


class _Program(NamedTuple):
    """All that the child needs, in bytes, so that it has nothing left to compute between fork and exec."""

    candidates: tuple[bytes, ...]
    argv: tuple[bytes, ...]
    env: dict[bytes, bytes]
    cwd: bytes | None
    close_fds: bool
    lifeline: int | None


def spawn_process(
    argv: Sequence[str | bytes],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    size: tuple[int, int] | tuple[int, int, int, int] = (24, 80),
    termios_attrs: TermiosAttributes | None = None,
    close_fds: bool = True,
    lifeline: int | None = None,
) -> SpawnedProcess:
    """Start `argv` as the leader of a new session whose controlling terminal is a new PTY of `size`
    (rows and columns, or these and the width and height in pixels).

    `env` is the child's whole environment (None: a copy of ours); its PATH is the one searched. The child starts with
    default signal handlers and an empty mask. With a `lifeline`, the reading end of a pipe, Ctrl-Z stops the program as
    it would a shell's job, until the pipe's end (see `job`). Raises SpawnFailed when the program could not be executed.
    """
    program = _prepare(argv, env, cwd, close_fds, lifeline)
    master, slave = open_terminal(size, termios_attrs)
    try:
        pid, failure = _fork_and_exec(program, slave)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    if failure is not None:
        os.close(master)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise _explain(program, *failure)
    return SpawnedProcess(pid, master)


def _prepare(
    argv: Sequence[str | bytes],
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    close_fds: bool,
    lifeline: int | None,
) -> _Program:
    if isinstance(argv, str | bytes) or not argv or not argv[0]:
        raise SpawnFailed("no program was named", errno.EINVAL)
    arguments = tuple(os.fsencode(word) for word in argv)
    environ = {os.fsencode(key): os.fsencode(value) for key, value in (os.environ if env is None else env).items()}
    if any(b"\0" in word for word in (*arguments, *environ, *environ.values())):
        raise SpawnFailed("an argument or an environment variable holds a NUL byte", errno.EINVAL)
    if any(not key or b"=" in key for key in environ):
        raise SpawnFailed("the name of an environment variable is empty or holds '='", errno.EINVAL)
    folder = None if cwd is None else os.fsencode(cwd)
    if folder is not None and b"\0" in folder:
        raise SpawnFailed("the working directory's name holds a NUL byte", errno.EINVAL, "cwd")
    return _Program(_candidates(arguments[0], environ), arguments, environ, folder, close_fds, lifeline)


def _candidates(name: bytes, environ: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    if b"/" in name:
        return (name,)
    search = environ.get(b"PATH", os.fsencode(os.defpath))
    return tuple(os.path.join(folder, name) for folder in search.split(b":"))


def _fork_and_exec(program: _Program, slave: int) -> tuple[int, tuple[SpawnStage, int] | None]:
    """Fork, and wait until the child has executed its program (None) or has reported what failed."""
    try:
        report_in, report_out = (above_stdio(fd) for fd in os.pipe())
    except OSError as error:
        raise SpawnFailed(f"no pipe to the child: {error.strerror}", error.errno, "terminal") from error
    # A signal that the child takes before exec would run our handlers there, and write to our wake-up descriptor.
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _RESETTABLE)
    try:
        with _without_thread_warning():
            pid = os.fork()
        if pid == 0:
            _become(program, slave, report_out)
        os.close(report_out)
        report_out = -1
        report = os.read(report_in, _REPORT.size)
    except OSError as error:
        raise SpawnFailed(f"no new process: {error.strerror}", error.errno, "fork") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        os.close(report_in)
        if report_out >= 0:
            os.close(report_out)
    if not report:
        return pid, None
    stage, number = _REPORT.unpack(report)
    return pid, (_STAGES[stage], number)


@contextlib.contextmanager
def _without_thread_warning() -> Iterator[None]:
    """CPython warns of fork() beside threads since 3.12; our child takes no lock and imports nothing before exec."""
    if not _FORK_WARNS or threading.active_count() == 1:
        yield
        return
    with _FORKING, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def _become(program: _Program, slave: int, report_out: int) -> NoReturn:
    """In the child: turn into the program, or report the failing stage and end."""
    stage = 0
    number = errno.EIO
    try:
        gc.disable()  # no finalizer of the parent's objects may run here
        os.setsid()
        between = 0 if program.lifeline is None else hold_job(program.lifeline)
        _take_terminal(slave)
        if program.close_fds:
            report_out = _close_all_but(report_out)
        stage = 1
        if program.cwd is not None:
            os.chdir(program.cwd)
        stage = 2
        for signal_number in _RESETTABLE:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if between:
            os.waitpid(between, 0)  # not sooner: it was at work beside us
        number = _exec_first(program)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        try:
            os.write(report_out, _REPORT.pack(stage, number))
        finally:
            os._exit(127)


def _take_terminal(slave: int) -> None:
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(slave, standard)


def _close_all_but(report_out: int) -> int:
    if report_out != 3:
        os.dup2(report_out, 3, inheritable=False)
    limit = os.sysconf("SC_OPEN_MAX")  # -1 means that there is none
    os.closerange(4, limit if 0 < limit < _FD_CEILING else _FD_CEILING)  # one system call where close_range(2) is
    return 3


def _exec_first(program: _Program) -> int:
    """Try every place the program may be in, as execvp does; returns the errno that describes the failure best."""
    best = errno.ENOENT
    for path in program.candidates:
        try:
            os.execve(path, program.argv, program.env)
        except OSError as error:
            if error.errno == errno.ENOEXEC and _looks_like_script(path):
                os.execve(b"/bin/sh", (b"/bin/sh", path, *program.argv[1:]), program.env)
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                return error.errno or errno.EIO
            if error.errno == errno.EACCES:
                best = errno.EACCES
    return best


def _looks_like_script(path: bytes) -> bool:
    """Shells run a text file without a #! line, and refuse a binary of another machine: so do we."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"\0" not in os.read(fd, 256)
    finally:
        os.close(fd)


def _explain(program: _Program, stage: SpawnStage, number: int) -> SpawnFailed:
    name = os.fsdecode(program.argv[0])
    said = os.strerror(number)
    if stage == "cwd":
        return SpawnFailed(f"cannot enter {os.fsdecode(program.cwd or b'')}: {said}", number, stage)
    if stage == "terminal":
        return SpawnFailed(f"cannot make the new terminal {name}'s own: {said}", number, stage)
    if number == errno.ENOENT and _exists_any(program, os.path.isfile):
        return SpawnFailed(f"{name} is there, but the interpreter that it names is not: {said}", number)
    if number == errno.ENOENT:
        return SpawnFailed(f"{name} was not found: {said}", number)
    if number == errno.EACCES:
        return SpawnFailed(f"{name} may not be executed: {said}", number)
    return SpawnFailed(f"{name} could not be executed: {said}", number)


def _exists_any(program: _Program, test: Callable[[bytes], bool]) -> bool:
    return any(test(os.path.join(program.cwd or b"", path)) for path in program.candidates)
