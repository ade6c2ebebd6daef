"""The Windows terminal, as far as it can be tried elsewhere: with a process that behaves like pywinpty's."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.cli.run import make_plan, parse_run
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.host.analysis import HostParts
from atlasbridge.core.host.supervisor import Beat, SessionLog
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Size
from atlasbridge.os.tty.base import NoProbe
from atlasbridge.os.tty.windows import WindowsPTY
from atlasbridge.os.windows.console import OwnConsole, hosted_words
from atlasbridge.os.windows.session import ConsoleInputWriter, ConsoleSession


class FakeProcess:
    """Says what it is told to, ends with a status, and remembers what is done to it."""

    pid = 42

    def __init__(self, output: list[str], status: int = 0) -> None:
        self._output = output
        self.exitstatus = status
        self.written: list[str] = []
        self.ended: list[bool] = []
        self.size = (0, 0)
        self.stubborn = self.gone = False

    def read(self, size: int) -> str:
        if not self._output:
            raise EOFError
        return self._output.pop(0)  # "" means that nothing came, not that it is over

    def write(self, text: str) -> None:
        if self.gone:
            raise EOFError
        self.written.append(text)

    def isalive(self) -> bool:
        return bool(self._output) or self.stubborn

    def setwinsize(self, rows: int, cols: int) -> None:
        self.size = (rows, cols)

    def terminate(self, force: bool) -> None:
        self.ended.append(force)


def judge(plan: Plan, pty: Any, size: Size) -> Any:
    return Detector(load_dialect("generic"), size.rows, size.cols), NoProbe()


NOBODY_JUDGES = HostParts(lambda *_: None, judge, lambda *_: (), lambda: None, "")  # type: ignore[arg-type]


def test_on_other_systems_the_backend_is_refused_honestly() -> None:
    with pytest.raises(ConfigError, match="Windows only"):
        WindowsPTY.spawn(["cmd"], {}, None, Size())


class FakeConsole:
    """Nobody types at it; what is shown is kept."""

    is_terminal = False

    def __init__(self) -> None:
        self.shown = b""

    def read_keys(self) -> bytes:
        return b""

    def write(self, data: bytes) -> None:
        self.shown += data

    def size(self) -> Size:
        return Size(30, 100)


def test_a_program_is_shown_until_it_ends_with_its_status() -> None:
    process, console, clock = FakeProcess(["one ", "", "zwö\r\n"], status=5), FakeConsole(), SystemClock()
    plan = Plan(("tool",), "s" * 36, hub=False)
    session = ConsoleSession(
        plan, WindowsPTY(process), console, NOBODY_JUDGES, SessionSettings(), clock, SessionLog(None, clock)
    )
    assert session.run() == 5
    assert console.shown == "one zwö\r\n".encode()


def test_what_is_typed_waits_for_the_one_that_writes_and_follows_in_order() -> None:
    process = FakeProcess(["x"])
    input_writer = ConsoleInputWriter(WindowsPTY(process).write, SystemClock())
    with input_writer.injection(1.0):
        assert input_writer.type(b"later") is False
        assert input_writer.send("ü".encode()[:1]) and input_writer.send("ü".encode()[1:])
        assert input_writer.waiting and process.written == []
    input_writer.stop()
    input_writer.run(Beat(SystemClock()))
    assert "".join(process.written) == "ülater" and not input_writer.waiting and input_writer.backlog == 0


def test_a_console_that_is_gone_takes_nothing_more() -> None:
    process = FakeProcess(["x"])
    process.gone = True
    input_writer = ConsoleInputWriter(WindowsPTY(process).write, SystemClock())
    assert input_writer.send(b"y")
    input_writer.stop()
    input_writer.run(Beat(SystemClock()))
    assert input_writer.send(b"y") is False


@pytest.mark.parametrize(
    ("codes", "keys"),
    [
        (["a"], b"a"),
        (["\r"], b"\r"),
        (["\x03"], b"\x03"),
        (["\xe0", "H"], b"\x1b[A"),
        (["\x00", "Z", "x"], b"x"),  # a key that no terminal has a sequence for is passed over
        (["\ud83d", "\ude00"], "😀".encode()),
        (["\uffff"], b""),  # the console is gone: nothing of that is typed
    ],
)
def test_keys_of_a_console_are_those_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, codes: list[str], keys: bytes
) -> None:
    class Keys(ModuleType):
        def getwch(self) -> str:
            return codes.pop(0)

    monkeypatch.setitem(sys.modules, "msvcrt", Keys("msvcrt"))
    assert OwnConsole().read_keys() == keys and codes == []


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


@pytest.mark.parametrize(
    "words",
    [
        ["--", "claude"],
        ["--name", "a job", "--ttl", "90", "--dialect", "generic", "--no-hub", "--", "claude", "--model", "x"],
        ["--channel", "none", "--", "tool", "--", "-x"],
        ["--channel", "web", "--channel", "slack", "--", "tool", "--detach"],
    ],
)
def test_a_process_of_its_own_is_told_what_the_person_said(words: list[str]) -> None:
    said = parse_run(["--backend", "conpty", *words])
    again = parse_run(hosted_words(make_plan(said)))
    assert again == said


def test_only_a_console_session_is_one_that_was_started_for_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLASBRIDGE_HOSTED", "s" * 36)
    hosted = make_plan(parse_run(["--backend", "conpty", "tool"]))
    assert hosted.hosted and hosted.session_id == "s" * 36
    plain = make_plan(parse_run(["tool"]))
    assert not plain.hosted and plain.session_id != "s" * 36


@pytest.mark.parametrize(
    "words", [["claude", "--backend", "conpty", "-p", "x"], ["claude", "--backend=conpty", "-p", "x"]]
)
def test_the_backend_may_be_named_after_the_tool_as_the_document_does(words: list[str]) -> None:
    said = parse_run(words)
    assert (said.backend, said.command) == ("conpty", ["claude", "-p", "x"])


@pytest.mark.parametrize(
    "words", [["tool", "--backend", "gpu"], ["--", "tool", "--backend", "conpty"], ["tool", "--backend"]]
)
def test_another_backend_is_the_tools_own(words: list[str]) -> None:
    said = parse_run(words)
    assert (said.backend, said.command) == ("", [word for word in words if word != "--"])
