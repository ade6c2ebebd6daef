"""Children on pseudo-terminals of Unix, for the pool: `process`, `stream`, `exit` and `termination` behind one face."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence

from ptypool.exit import ExitWatch
from ptypool.process import SpawnedProcess, spawn_process
from ptypool.stream import TerminalStream
from ptypool.terminal import TermiosAttributes
from ptypool.termination import terminate_group, termination_steps


class Posix:
    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        size: tuple[int, int],
        attributes: TermiosAttributes | None,
    ) -> SpawnedProcess:
        return spawn_process(argv, env=env, cwd=cwd, size=size, termios_attrs=attributes)

    def stream(
        self, loop: asyncio.AbstractEventLoop, child: SpawnedProcess, on_end: Callable[[], None]
    ) -> TerminalStream:
        return TerminalStream(loop, child.master_fd, on_end)

    def watch(
        self, loop: asyncio.AbstractEventLoop, child: SpawnedProcess, on_exit: Callable[[int], None]
    ) -> ExitWatch:
        return ExitWatch(loop, child.pid, on_exit)

    def signal(self, child: SpawnedProcess, number: signal.Signals) -> None:
        """To the whole process group."""
        os.killpg(child.pid, number)

    def is_ours(self, child: SpawnedProcess, ended: bool) -> bool:
        """Once the child is reaped, its number means what it left behind, unless a new process bears it."""
        if not ended:
            return True
        try:
            os.kill(child.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False

    def ending(self, children: Sequence[SpawnedProcess], grace_s: float) -> Iterator[float]:
        return termination_steps([child.pid for child in children], grace_s=grace_s)

    def end_now(self, child: SpawnedProcess) -> int | None:
        return terminate_group(child.pid, grace_s=0)

    def discard(self, child: SpawnedProcess) -> None:
        terminate_group(child.pid, grace_s=0)
        os.close(child.master_fd)
