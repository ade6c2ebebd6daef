"""A program on a terminal of its own, with the waiting probe on it: for tests of the probe."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support.waiting import DEADLINE_S

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.os.tty.linux import LinuxProbe

_LAUNCH = "import fcntl,termios,os,sys; fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execvp(sys.argv[1],sys.argv[1:])"


@dataclass
class Stage:
    """A program on a terminal."""

    master: int
    process: subprocess.Popen[bytes]
    probe: LinuxProbe
    output: bytes = b""

    def until_shown(self, text: bytes) -> None:
        while text not in self.output:
            self.output += os.read(self.master, 4096)

    def until(self, state: ProbeState, input_age_s: float | None = None) -> ProbeAnswer:
        return self.until_true(lambda answer: answer.state is state, input_age_s)

    def until_true(self, fits: Callable[[ProbeAnswer], bool], input_age_s: float | None = None) -> ProbeAnswer:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self.probe.look(1.0, input_age_s)
            if fits(answer):
                return answer
            assert time.monotonic() < deadline, answer
            time.sleep(0.01)

    def never(self, *states: ProbeState) -> None:
        for _ in range(20):
            answer = self.probe.look(1.0, None)
            assert answer.state not in states, answer
            time.sleep(0.01)


Start = Callable[..., Stage]


def stages() -> Iterator[Start]:
    """A fixture: starts programs and ends them."""
    running: list[Stage] = []

    def run(*argv: str) -> Stage:
        master, slave = os.openpty()
        command = [sys.executable, "-S", "-c", _LAUNCH, *argv]
        process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        stage = Stage(master, process, LinuxProbe(master, process.pid))
        running.append(stage)
        return stage

    yield run
    for stage in running:
        try:
            os.killpg(stage.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        stage.process.wait()
        os.close(stage.master)


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)
