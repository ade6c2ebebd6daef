"""Starts one program on its own pseudo-terminal, synchronously, and reports at once whether it runs.

No asyncio here: the pool and other programs are built on this. Reading, writing and ending the child are done elsewhere
(see `termination` for the last).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import os
import resource
import signal
import struct
import sys
import termios
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from ptypool.errors import SpawnFailed, SpawnStage

# Pseudo-terminals: creation, size, and the limits of the line discipline.
#
# `process` starts a program on one; the handle reads and writes.

TermiosAttributes = list[Any]
"""What termios.tcgetattr returns."""

CANONICAL_LINE_LIMIT = 1024 if sys.platform == "darwin" else 4096
"""Bytes of one line, its newline included, that a kernel keeps in canonical mode; it drops the rest without a word."""

_IUTF8 = 0x4000 if sys.platform in ("linux", "darwin") else 0  # the termios module does not define it yet
_IFLAG, _OFLAG, _LFLAG, _CC = 0, 1, 3, 6


def open_terminal(
    size: tuple[int, int] | tuple[int, int, int, int], attributes: TermiosAttributes | None
) -> tuple[int, int]:
    """A new (master, slave) pair, both close-on-exec and above the standard streams, with its size already set."""
    try:
        master, slave = (above_stdio(fd) for fd in os.openpty())
    except OSError as error:
        raise SpawnFailed(f"no pseudo-terminal: {error.strerror}", error.errno, "terminal") from error
    try:
        set_window_size(slave, *size)
        if attributes is None:
            attributes = termios.tcgetattr(slave)
            attributes[_IFLAG] |= _IUTF8  # as terminals do, so that erase removes a whole character
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
    except BaseException:
        os.close(master)
        os.close(slave)
        raise
    return master, slave


def plain_attributes() -> TermiosAttributes:
    """Attributes that leave output unchanged and do not echo input; Ctrl-Z does not stop the program."""
    master, slave = open_terminal((24, 80), None)
    try:
        attributes: TermiosAttributes = termios.tcgetattr(slave)
    finally:
        os.close(master)
        os.close(slave)
    attributes[_OFLAG] &= ~termios.ONLCR
    attributes[_LFLAG] &= ~termios.ECHO
    attributes[_CC][termios.VSUSP] = b"\0" if sys.platform == "linux" else b"\xff"
    return attributes


def above_stdio(fd: int) -> int:
    """Move a descriptor away from 0 to 2, where it lands in a daemon that has closed its standard streams."""
    if fd > 2:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(fd)
    return moved


def set_window_size(fd: int, rows: int, cols: int, width: int = 0, height: int = 0) -> None:
    """Set the size, in pixels too if known; the foreground processes get SIGWINCH if it changed."""
    if not all(0 <= number <= 0xFFFF for number in (rows, cols, width, height)):
        raise ValueError(f"a terminal cannot have {rows} rows and {cols} columns")
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, width, height))


def window_size(fd: int) -> tuple[int, int]:
    """The terminal's (rows, cols)."""
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))
    return rows, cols


def line_enders(fd: int) -> bytes | None:
    """The bytes that end a line of input now, or None if the terminal is not in canonical mode."""
    attributes = termios.tcgetattr(fd)
    if not attributes[_LFLAG] & termios.ICANON:
        return None
    control = attributes[_CC]
    special = b"".join(control[index] for index in (termios.VEOF, termios.VEOL, termios.VEOL2))
    returns = b"\r" if attributes[_IFLAG] & termios.ICRNL else b""
    return b"\n" + returns + special.replace(b"\0", b"").replace(b"\xff", b"")


# The program of a child: arguments and environment as bytes, the paths to try, and why it could not be run. With it, a
# child has nothing left to compute before exec.

_REPORT = struct.Struct("=Bi")
"""What a child says that could not execute its program: the stage and the errno."""

_STAGES: tuple[SpawnStage, ...] = ("terminal", "cwd", "program")


class Program(NamedTuple):
    candidates: tuple[bytes, ...]
    argv: tuple[bytes, ...]
    env: dict[bytes, bytes]
    cwd: bytes | None
    stderr: int = -1  # an inherited descriptor that becomes its standard error; -1: the terminal
    limits: tuple[tuple[int, int], ...] = ()  # resource limits as (number, value), lower than ours


def _name_program(
    argv: Sequence[str | bytes],
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: int = -1,
    limits: tuple[tuple[int, int], ...] = (),
) -> Program:
    """`env` None is a copy of ours. Raises SpawnFailed for invalid arguments."""
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
    return Program(_candidates(arguments[0], environ), arguments, environ, folder, stderr, limits)


def _candidates(name: bytes, environ: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    if b"/" in name:
        return (name,)
    search = environ.get(b"PATH", os.fsencode(os.defpath))
    return tuple(os.path.join(folder, name) for folder in search.split(b":"))


def _exec_first(program: Program) -> int:
    """Try every path of the program, as execvp does; return the errno that describes the failure best."""
    best = errno.ENOENT
    if program.stderr > 2:
        os.dup2(program.stderr, 2, inheritable=True)
        os.close(program.stderr)
    for number, value in program.limits:
        resource.setrlimit(number, (value, value))
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
    """As shells do, run a text file without a #! line, but refuse a binary of another machine."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"\0" not in os.read(fd, 256)
    finally:
        os.close(fd)


def _read_report(report: bytes) -> tuple[SpawnStage, int] | None:
    """None if there is no report, because the program runs."""
    if not report:
        return None
    stage, number = _REPORT.unpack(report)
    return _STAGES[stage], number


def explain(program: Program, stage: SpawnStage, number: int) -> SpawnFailed:
    name = os.fsdecode(program.argv[0])
    said = os.strerror(number)
    if stage == "cwd":
        return SpawnFailed(f"cannot enter {os.fsdecode(program.cwd or b'')}: {said}", number, stage)
    if stage == "terminal":
        return SpawnFailed(f"cannot make the new terminal {name}'s own: {said}", number, stage)
    if number == errno.ENOENT and _exists_any(program, os.path.isfile):
        return SpawnFailed(f"{name} is there, but the interpreter that it names is not: {said}", number)
    # A folder of PATH that is another user's hides whether it is there; a shell looks at the next one.
    hidden = number == errno.EACCES and "/" not in name and not _exists_any(program, os.path.lexists)
    if number == errno.ENOENT or hidden:
        return SpawnFailed(f"{name} was not found: {os.strerror(errno.ENOENT)}", errno.ENOENT)
    if number == errno.EACCES:
        return SpawnFailed(f"{name} cannot be executed: {said}", number)
    return SpawnFailed(f"{name} could not be executed: {said}", number)


def _exists_any(program: Program, test: Callable[[bytes], bool]) -> bool:
    return any(test(os.path.join(program.cwd or b"", path)) for path in program.candidates)


# Lets job control (Ctrl-Z) stop a program that leads its session, like a shell's job. The kernel does not stop an
# orphaned process group, in which no member has a parent of the same session but another group. Two tiny processes
# change that: one in its own group, and its child in the program's group.

_SHELL = "/bin/sh"
_WORDS = ("sh", "-c", "read -r word # holds a terminal's job")
_HIGHEST_FD = 1 << 20
_HEEDED = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGTSTP,
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGKILL,
    signal.SIGSTOP,
)
_IGNORED = tuple(set(signal.valid_signals()) - set(_HEEDED))


def hold_job(lifeline: int) -> int:
    """Called in the new session's leader, before it executes its program. The two processes live until the end of
    `lifeline`, the reading end of a pipe; they keep no other file open. Returns a process that must be waited for
    first, so that the program sees neither of them as its child.
    """
    leader = os.getpid()
    between = os.fork()
    if between:
        return between
    try:
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork() == 0:
                os.setpgid(0, leader)
            _stay(lifeline)
    finally:
        os._exit(0)


def _stay(lifeline: int) -> NoReturn:
    for number in _HEEDED[:-2]:
        signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED:  # signals for the program's group are not meant for this process
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(lifeline, 0)
    os.closerange(1, _HIGHEST_FD)
    for _ in (1, 2):
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    os.execve(_SHELL, _WORDS, {})


_RESETTABLE = tuple(set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP})
_FD_CEILING = 1 << 20
_FORK_WARNS = sys.version_info >= (3, 12)
_FORKING = threading.Lock()  # the filters of `warnings` are global


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
    stderr: int = -1,
    limits: tuple[tuple[int, int], ...] = (),
) -> SpawnedProcess:
    """Start `argv` as the leader of a new session whose controlling terminal is a new PTY of `size`
    (rows and columns, or these and the width and height in pixels).

    `env` is the child's whole environment (None: a copy of ours); its PATH is the one searched. The child starts with
    default signal handlers and an empty mask. With a `lifeline`, the reading end of a pipe, Ctrl-Z stops the program
    like a shell's job, until the pipe's end (see `hold_job`). `stderr`: an inheritable descriptor that becomes the
    program's standard error, with `close_fds` False. `limits`: resource limits as (number, value). Raises SpawnFailed
    when the program could not be executed.
    """
    program = _name_program(argv, env, cwd, stderr, limits)
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
    # A signal in the child before exec would run our handlers there, and write to our wake-up descriptor.
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, _RESETTABLE)
    try:
        pid = _fork_quietly()
        if pid == 0:
            _become(program, slave, report_out, close_fds, lifeline)
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
    return pid, _read_report(report)


def _fork_quietly() -> int:
    """CPython warns about fork() with threads since 3.12; our child takes no lock and imports nothing before exec."""
    if not _FORK_WARNS or threading.active_count() == 1:
        return os.fork()
    with _FORKING, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become(program: Program, slave: int, report_out: int, close_fds: bool, lifeline: int | None) -> NoReturn:
    """In the child: become the program, or report the failing stage and exit."""
    stage = 0
    number = errno.EIO
    try:
        gc.disable()  # no finalizer of the parent's objects must run here
        os.setsid()
        between = 0 if lifeline is None else hold_job(lifeline)
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for standard in (0, 1, 2):
            os.dup2(slave, standard)
        if close_fds:
            report_out = _close_all_but(report_out)
        stage = 1
        if program.cwd is not None:
            os.chdir(program.cwd)
        stage = 2
        for signal_number in _RESETTABLE:
            signal.signal(signal_number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if between:
            os.waitpid(between, 0)  # not earlier, because it worked in parallel
        number = _exec_first(program)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        try:
            os.write(report_out, _REPORT.pack(stage, number))
        finally:
            os._exit(127)


def _close_all_but(fd: int) -> int:
    """Close all descriptors except the standard streams and `fd`, which becomes number 3."""
    if fd != 3:
        os.dup2(fd, 3, inheritable=False)
    limit = os.sysconf("SC_OPEN_MAX")  # -1: unlimited
    os.closerange(4, limit if 0 < limit < _FD_CEILING else _FD_CEILING)  # a single system call if close_range(2) exists
    return 3
