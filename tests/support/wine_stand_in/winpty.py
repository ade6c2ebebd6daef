"""Stands for pywinpty under Wine, where its own library does not start: the pseudo-console of kernel32, called by hand.

As strict as the real one: text in and out, `read` blocks, EOFError at the end.  For trying a session on a Windows
Python without Windows; put this folder first on its path.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import which
from typing import Any, Self

_PSEUDO_CONSOLE, _EXTENDED, _UNICODE = 0x0002_0016, 0x0008_0000, 0x0400
_STANDARD = (-10, -11, -12)
_TIMEOUT = 258
_word, _handle = ctypes.c_ulong, ctypes.c_void_p


class WinptyError(Exception):
    pass


class _Coord(ctypes.Structure):
    _fields_ = (("x", ctypes.c_short), ("y", ctypes.c_short))


class _Startup(ctypes.Structure):
    _fields_ = (
        *(("size", _word), ("reserved", _handle), ("desktop", _handle), ("title", _handle)),
        *((name, _word) for name in ("x", "y", "width", "height", "columns", "rows", "fill", "flags")),
        *(("show", ctypes.c_ushort), ("more", ctypes.c_ushort), ("other", _handle)),
        *((name, _handle) for name in ("stdin", "stdout", "stderr", "attributes")),
    )


class _Process(ctypes.Structure):
    _fields_ = (("process", _handle), ("thread", _handle), ("pid", _word), ("tid", _word))


def _kernel() -> Any:
    kernel = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined]
    for name in ("GetStdHandle", "CreateFileW"):
        getattr(kernel, name).restype = _handle
    kernel.SetStdHandle.argtypes = (ctypes.c_long, _handle)
    kernel.CreatePseudoConsole.argtypes = (_Coord, _handle, _handle, _word, ctypes.POINTER(_handle))
    kernel.ResizePseudoConsole.argtypes = (_handle, _Coord)
    attribute = (_handle, _word, ctypes.c_size_t, _handle, ctypes.c_size_t, _handle, _handle)
    kernel.UpdateProcThreadAttribute.argtypes = attribute
    return kernel


@contextmanager
def _console_handles(kernel: Any) -> Iterator[None]:
    """Wine gives a program the standard handles of its starter: for a moment those are a console's."""
    before = [kernel.GetStdHandle(number) for number in _STANDARD]
    mode = _word()
    if kernel.GetConsoleMode(_handle(before[1]), ctypes.byref(mode)):
        yield
        return
    for number in _STANDARD:
        kernel.SetStdHandle(number, None)
    kernel.FreeConsole()
    kernel.AllocConsole()
    try:
        yield
    finally:
        for number, handle in zip(_STANDARD, before, strict=True):
            kernel.SetStdHandle(number, handle)


class PtyProcess:
    def __init__(self, line: str, cwd: str | None, env: dict[str, str], dimensions: tuple[int, int]) -> None:
        self._kernel = _kernel()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._console, self._made = _handle(), _Process()
        self._from_us, self._to_us = _handle(), _handle()
        self.closed = False
        self._open(dimensions)
        self._start(line, cwd, env)

    @classmethod
    def spawn(
        cls,
        argv: list[str],
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        dimensions: tuple[int, int] = (24, 80),
    ) -> Self:
        program = which(argv[0], path=(env or os.environ).get("PATH", os.defpath))
        if program is None:
            raise FileNotFoundError(f"The command was not found or was not executable: {argv[0]}.")
        return cls(subprocess.list2cmdline([program, *argv[1:]]), cwd, env or dict(os.environ), dimensions)

    def _open(self, dimensions: tuple[int, int]) -> None:
        theirs_in, theirs_out = _handle(), _handle()
        self._kernel.CreatePipe(ctypes.byref(theirs_in), ctypes.byref(self._from_us), None, 0)
        self._kernel.CreatePipe(ctypes.byref(self._to_us), ctypes.byref(theirs_out), None, 0)
        size = _Coord(dimensions[1], dimensions[0])
        if self._kernel.CreatePseudoConsole(size, theirs_in, theirs_out, 0, ctypes.byref(self._console)):
            raise WinptyError("there is no pseudo-console")
        self._kernel.CloseHandle(theirs_in)
        self._kernel.CloseHandle(theirs_out)

    def _start(self, line: str, cwd: str | None, env: dict[str, str]) -> None:
        size = ctypes.c_size_t(0)
        self._kernel.InitializeProcThreadAttributeList(None, 1, 0, ctypes.byref(size))
        room = ctypes.create_string_buffer(size.value)
        self._kernel.InitializeProcThreadAttributeList(room, 1, 0, ctypes.byref(size))
        self._kernel.UpdateProcThreadAttribute(
            room, 0, _PSEUDO_CONSOLE, self._console, ctypes.sizeof(_handle), None, None
        )
        startup = _Startup(size=ctypes.sizeof(_Startup), attributes=ctypes.cast(room, _handle).value)
        block = ctypes.create_unicode_buffer("".join(f"{name}={value}\0" for name, value in sorted(env.items())) + "\0")
        with _console_handles(self._kernel):
            done = self._kernel.CreateProcessW(
                None,
                ctypes.create_unicode_buffer(line),
                None,
                None,
                False,
                _EXTENDED | _UNICODE,
                block,
                cwd,
                ctypes.byref(startup),
                ctypes.byref(self._made),
            )
        if not done:
            raise WinptyError(f"fault {ctypes.get_last_error()}")  # type: ignore[attr-defined]
        self.pid = int(self._made.pid)

    def read(self, size: int = 1024) -> str:
        room, done = ctypes.create_string_buffer(size), _word()
        if not self._kernel.ReadFile(self._to_us, room, size, ctypes.byref(done), None) or not done.value:
            raise EOFError("Pty is closed")
        return self._decoder.decode(room.raw[: done.value])

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError("text is written, not bytes")
        if not self.isalive():
            raise EOFError("Pty is closed")
        data, done = text.encode(), _word()
        while data and self._kernel.WriteFile(self._from_us, data, len(data), ctypes.byref(done), None):
            data = data[done.value :]
        return len(text)

    def isalive(self) -> bool:
        return bool(self._kernel.WaitForSingleObject(_handle(self._made.process), 0) == _TIMEOUT)

    @property
    def exitstatus(self) -> int | None:
        status = _word()
        self._kernel.GetExitCodeProcess(_handle(self._made.process), ctypes.byref(status))
        return None if self.isalive() else int(status.value)

    def terminate(self, force: bool = False) -> bool:
        if self.isalive():
            self._kernel.TerminateProcess(_handle(self._made.process), 15 if force else 2)
            self._kernel.WaitForSingleObject(_handle(self._made.process), 100)
        return not self.isalive()

    def kill(self, number: int) -> None:
        self._kernel.TerminateProcess(_handle(self._made.process), number)

    def setwinsize(self, rows: int, cols: int) -> None:
        self._kernel.ResizePseudoConsole(self._console, _Coord(cols, rows))

    def close(self, force: bool = False) -> None:
        if not self.closed:
            self.closed = True
            self.terminate(force)
            self._kernel.ClosePseudoConsole(self._console)
