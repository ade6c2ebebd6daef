"""What a child is to execute: words and environment in bytes, the places to look, and why it could not be run.

So prepared, a child has nothing left to compute before exec. Starting one is left to `process` and `leader`.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ptypool.errors import SpawnFailed, SpawnStage

REPORT = struct.Struct("=Bi")
"""What a child says that could not execute its program: the stage and the errno."""

_STAGES: tuple[SpawnStage, ...] = ("terminal", "cwd", "program")


class Program(NamedTuple):
    candidates: tuple[bytes, ...]
    argv: tuple[bytes, ...]
    env: dict[bytes, bytes]
    cwd: bytes | None


def name_program(
    argv: Sequence[str | bytes], env: Mapping[str, str] | None, cwd: str | os.PathLike[str] | None
) -> Program:
    """`env` None: a copy of ours. Raises SpawnFailed for what no program can be given."""
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
    return Program(_candidates(arguments[0], environ), arguments, environ, folder)


def _candidates(name: bytes, environ: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    if b"/" in name:
        return (name,)
    search = environ.get(b"PATH", os.fsencode(os.defpath))
    return tuple(os.path.join(folder, name) for folder in search.split(b":"))


def exec_first(program: Program) -> int:
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


def read_report(report: bytes) -> tuple[SpawnStage, int] | None:
    """None: there is none, the program runs."""
    if not report:
        return None
    stage, number = REPORT.unpack(report)
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
    if number == errno.ENOENT:
        return SpawnFailed(f"{name} was not found: {said}", number)
    if number == errno.EACCES:
        return SpawnFailed(f"{name} may not be executed: {said}", number)
    return SpawnFailed(f"{name} could not be executed: {said}", number)


def _exists_any(program: Program, test: Callable[[bytes], bool]) -> bool:
    return any(test(os.path.join(program.cwd or b"", path)) for path in program.candidates)
