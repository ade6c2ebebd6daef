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
import sys
import termios
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from ptypool.errors import SpawnFailed, SpawnStage
from ptypool.job import hold_job
from ptypool.program import REPORT, Program, exec_first, explain, name_program, read_report
from ptypool.terminal import TermiosAttributes, above_stdio, open_terminal

RESETTABLE = tuple(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})
_FD_CEILING = 1 << 20
_FORK_WARNS = sys.version_info >= (3, 12)
_FORKING = threading.Lock()  # the filters of `warnings` belong to the whole process


class SpawnedProcess(NamedTuple):
    """A running child and the terminal's master side (close-on-exec, blocking); both belong to the caller."""

    pid: int
    master_fd: int


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
    program = name_program(argv, env, cwd)
    master, slave = open_terminal(size, termios_attrs)
    try:
        pid, failure = _fork_and_exec(program, slave, close_fds, lifeline)
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    if failure is not None:
        os.close(master)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        raise explain(program, *failure)
    return SpawnedProcess(pid, master)


def _fork_and_exec(
    program: Program, slave: int, close_fds: bool, lifeline: int | None
) -> tuple[int, tuple[SpawnStage, int] | None]:
    """Fork, and wait until the child has executed its program (None) or has reported what failed."""
    try:
        report_in, report_out = (above_stdio(fd) for fd in os.pipe())
    except OSError as error:
        raise SpawnFailed(f"no pipe to the child: {error.strerror}", error.errno, "terminal") from error
    # A signal that the child takes before exec would run our handlers there, and write to our wake-up descriptor.
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, RESETTABLE)
    try:
        pid = fork_quietly()
        if pid == 0:
            _become(program, slave, report_out, close_fds, lifeline)
        os.close(report_out)
        report_out = -1
        report = os.read(report_in, REPORT.size)
    except OSError as error:
        raise SpawnFailed(f"no new process: {error.strerror}", error.errno, "fork") from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        os.close(report_in)
        if report_out >= 0:
            os.close(report_out)
    return pid, read_report(report)


def fork_quietly() -> int:
    """CPython warns of fork() beside threads since 3.12; our child takes no lock and imports nothing before exec."""
    if not _FORK_WARNS or threading.active_count() == 1:
        return os.fork()
    with _FORKING, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become(program: Program, slave: int, report_out: int, close_fds: bool, lifeline: int | None) -> NoReturn:
    """In the child: turn into the program, or report the failing stage and end."""
    stage = 0
    number = errno.EIO
    try:
        gc.disable()  # no finalizer of the parent's objects may run here
        os.setsid()
        between = 0 if lifeline is None else hold_job(lifeline)
        take_terminal(slave)
        if close_fds:
            report_out = close_all_but(report_out)
        stage = 1
        if program.cwd is not None:
            os.chdir(program.cwd)
        stage = 2
        for signal_number in RESETTABLE:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if between:
            os.waitpid(between, 0)  # not sooner: it was at work beside us
        number = exec_first(program)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        try:
            os.write(report_out, REPORT.pack(stage, number))
        finally:
            os._exit(127)


def take_terminal(slave: int) -> None:
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for standard in (0, 1, 2):
        os.dup2(slave, standard)


def close_all_but(fd: int) -> int:
    """Everything above the standard streams; what is kept has the number 3 then."""
    if fd != 3:
        os.dup2(fd, 3, inheritable=False)
    limit = os.sysconf("SC_OPEN_MAX")  # -1 means that there is none
    os.closerange(4, limit if 0 < limit < _FD_CEILING else _FD_CEILING)  # one system call where close_range(2) is
    return 3
