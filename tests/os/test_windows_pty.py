"""The Windows terminal, as far as it can be tried elsewhere: with a process that behaves like pywinpty's."""

from __future__ import annotations

import os

import pytest

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.tty import Size
from atlasbridge.os.tty.windows import WindowsPTY, show_on_console


class FakeProcess:
    """Says what it is told to, ends with a status, and remembers what is done to it."""

    pid = 42

    def __init__(self, output: list[str], status: int = 0) -> None:
        self._output = output
        self.exitstatus = status
        self.written: list[str] = []
        self.ended: list[bool] = []
        self.size = (0, 0)
        self.stubborn = False

    def read(self, size: int) -> str:
        if not self._output:
            raise EOFError
        return self._output.pop(0)

    def write(self, text: str) -> None:
        self.written.append(text)

    def isalive(self) -> bool:
        return bool(self._output) or self.stubborn

    def setwinsize(self, rows: int, cols: int) -> None:
        self.size = (rows, cols)

    def terminate(self, force: bool) -> None:
        self.ended.append(force)


def test_on_other_systems_the_backend_is_refused_honestly() -> None:
    with pytest.raises(ConfigError, match="Windows only"):
        WindowsPTY.spawn(["cmd"], {}, None, Size())


def test_a_program_is_shown_until_it_ends_with_its_status(capfd: pytest.CaptureFixture[str]) -> None:
    process = FakeProcess(["one ", "zwö\r\n"], status=5)
    pty = WindowsPTY(process)
    read_fd, write_fd = os.pipe()
    assert show_on_console(pty, lambda: os.read(read_fd, 1)) == 5
    assert capfd.readouterr().out == "one zwö\r\n"
    os.close(write_fd)


def test_keys_and_sizes_reach_the_program() -> None:
    process = FakeProcess(["x"])
    pty = WindowsPTY(process)
    pty.write("é\x1b[A".encode())
    pty.resize(Size(30, 100))
    assert process.written == ["é\x1b[A"]
    assert process.size == (30, 100)
    assert pty.poll() is None
    assert pty.fileno() == -1


def test_a_stubborn_program_is_ended_by_force_after_its_grace() -> None:
    process = FakeProcess([])
    process.stubborn = True
    steps = list(WindowsPTY(process).end_steps(0.1))
    assert sum(steps) == pytest.approx(0.1, abs=0.03)
    assert process.ended == [False, True]
