"""Session: a shell that lives on between commands, with its working directory, environment and history tracked.

The protocol is in `shell` and `marker`, what outlives the process in `state`; the terminal comes from a pool.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from ptypool.errors import CommandTimeout, PtyIoError
from ptypool.forms import Duration, Environment, environment, seconds_or_none
from ptypool.handle import PtyHandle
from ptypool.marker import MarkerScanner
from ptypool.pool import PtyPool
from ptypool.shell import ShellFiles, without_bookkeeping
from ptypool.state import HistoryEntry, SessionState
from ptypool.terminal import plain_attributes

HISTORY_LIMIT = 1000
_START_WITHIN_S = 30.0
_STOP_WITHIN_S = 2.0
_CTRL_C = b"\x03"


class CommandResult(NamedTuple):
    """`output, status = await session.run(…)`; bytes that are no UTF-8 are kept as surrogates."""

    output: str
    exit_status: int


class Session:
    """A persistent shell; make one with `await Session.open(pool)` or `await Session.reopen(pool, path)`."""

    def __init__(self, pool: PtyPool, state: SessionState, size: tuple[int, int]) -> None:
        self._pool = pool
        self._shell = state.shell
        self._cwd, self._env = state.cwd, dict(state.env)
        self._history = deque(state.history, HISTORY_LIMIT)
        self._size = size
        self._attributes = plain_attributes()
        self._files = ShellFiles(Path(tempfile.mkdtemp(prefix="ptypool-")))
        self._cleanup = weakref.finalize(self, shutil.rmtree, self._files.folder, ignore_errors=True)
        self._turn = asyncio.Lock()
        self._last_status = 0
        self._handle: PtyHandle | None = None

    @classmethod
    async def open(
        cls,
        pool: PtyPool,
        *,
        shell: str = "bash",
        cwd: str | os.PathLike[str] | None = None,
        env: Environment | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> Self:
        """Start a shell; `env` is added to our environment."""
        folder = Path.cwd() / (cwd or "")
        state = SessionState(shell, str(folder), without_bookkeeping({**os.environ, **environment(env)}))
        return await cls._started(pool, state, size)

    @classmethod
    async def reopen(cls, pool: PtyPool, path: str | os.PathLike[str], *, size: tuple[int, int] = (24, 80)) -> Self:
        """Go on where a saved session was: same directory, environment and history, in a new shell."""
        return await cls._started(pool, SessionState.load(path), size)

    @property
    def cwd(self) -> str:
        """The working directory after the last command."""
        return self._cwd

    @property
    def env(self) -> dict[str, str]:
        """The exported environment after the last command (a copy)."""
        return dict(self._env)

    @property
    def history(self) -> tuple[HistoryEntry, ...]:
        """The last commands (at most 1000), oldest first."""
        return tuple(self._history)

    @property
    def handle(self) -> PtyHandle:
        """The shell's terminal. Leave reading to run(); sending answers to a running command is fine."""
        if self._handle is None:
            raise PtyIoError("the session is closed", advice="Open a new one, or reopen a saved one.")
        return self._handle

    @property
    def state(self) -> SessionState:
        return SessionState(self._shell, self._cwd, dict(self._env), tuple(self._history))

    def is_alive(self) -> bool:
        return self._handle is not None and self._handle.is_alive()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write directory, environment (with its secrets: mode 0600) and history to a file for reopen()."""
        self.state.save(path)

    async def run(
        self, command: str, *, timeout_s: Duration | None = None, on_output: Callable[[bytes], None] | None = None
    ) -> CommandResult:
        """Run a command in the shell and wait for its end; one at a time, others wait their turn.

        `on_output` gets the output as it comes, and then it is not collected. When the time is over the command is
        interrupted (at worst the shell is replaced by a fresh one in the same state) and CommandTimeout is raised.
        """
        async with self._turn:
            collected: list[bytes] = []
            started = time.monotonic()
            limit_s = seconds_or_none(timeout_s)
            try:
                async with asyncio.timeout(limit_s):
                    status = await self._run(command, on_output or collected.append)
            except TimeoutError as error:
                raise CommandTimeout(limit_s or 0.0, _text(collected)) from error
            self._remember(command, status, time.monotonic() - started)
            return CommandResult(_text(collected), status)

    async def send(self, data: bytes | str) -> None:
        """Type something for the command that runs now."""
        await self.handle.send(data)

    async def interrupt(self) -> None:
        """Ctrl-C for the command that runs now."""
        await self.handle.send(_CTRL_C)

    async def close(self) -> None:
        """End the shell and what it has started; state and history stay readable."""
        handle, self._handle = self._handle, None
        if handle is not None:
            await handle.kill()
        self._cleanup()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @classmethod
    async def _started(cls, pool: PtyPool, state: SessionState, size: tuple[int, int]) -> Self:
        session = cls(pool, state, size)
        try:
            await session._start()
        except BaseException:
            await session.close()
            raise
        return session

    async def _start(self) -> None:
        arguments, extra = self._files.prepare(self._shell)
        nonce = secrets.token_hex(16)
        self._files.expect(nonce)
        self._handle = await self._pool.spawn(
            self._shell,
            arguments,
            {**self._env, **extra},
            self._cwd,
            self._size,
            inherit_env=False,
            termios_attrs=self._attributes,
        )
        async with asyncio.timeout(_START_WITHIN_S):
            if await self._read_until_end(MarkerScanner(nonce), _ignore) is None:
                raise PtyIoError(f"{self._shell} has ended at its start")

    async def _run(self, command: str, on_output: Callable[[bytes], None]) -> int:
        handle = self.handle
        if not handle.is_alive():
            raise PtyIoError("the session's shell has ended", advice="Reopen the session from its saved state.")
        nonce = secrets.token_hex(16)
        scanner = MarkerScanner(nonce)
        handle.reset_terminal(self._attributes)
        await handle.send(self._files.put_command(command, nonce, self._last_status))
        try:
            status = await self._read_until_end(scanner, on_output)
        except asyncio.CancelledError:
            await self._stop_command(scanner, on_output)
            raise
        if status is None:  # the command was the shell's last one, as `exit` is
            return await handle.wait()
        self._follow_shell()
        return status

    async def _read_until_end(self, scanner: MarkerScanner, on_output: Callable[[bytes], None]) -> int | None:
        """The exit status that the shell reports, or None when the shell ended instead."""
        while chunk := await self.handle.read():
            scanned = scanner.feed(chunk)
            if scanned.output:
                on_output(scanned.output)
            if scanned.exit_status is not None:
                return scanned.exit_status
        if rest := scanner.rest():
            on_output(rest)
        return None

    async def _stop_command(self, scanner: MarkerScanner, on_output: Callable[[bytes], None]) -> None:
        """Interrupt the command; when that does not help, put a fresh shell in the place of this one."""
        try:
            async with asyncio.timeout(_STOP_WITHIN_S):
                await self.interrupt()
                if await self._read_until_end(scanner, on_output) is not None:
                    self._follow_shell()
                    return
        except (TimeoutError, PtyIoError):
            pass  # it ignores Ctrl-C, or does not even read: the shell has to go
        await self.handle.kill()
        await self._start()

    def _follow_shell(self) -> None:
        self._cwd, self._env = self._files.reported_cwd(), self._files.reported_env()

    def _remember(self, command: str, status: int, duration_s: float) -> None:
        self._last_status = status % 256
        self._history.append(HistoryEntry(command, status, self._cwd, round(duration_s, 6)))


def _text(chunks: list[bytes]) -> str:
    return b"".join(chunks).decode("utf-8", "surrogateescape")


def _ignore(_: bytes) -> None:
    return None
