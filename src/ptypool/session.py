"""Session: a shell that persists between commands, with its working directory, environment and history tracked.

A pool provides its terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import shlex
import shutil
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from ptypool.errors import CommandTimeout, PtyInternalError, PtyIoError
from ptypool.handle import Duration, Environment, PtyHandle, environment, seconds_or_none
from ptypool.pool import PtyPool
from ptypool.process import plain_attributes

# The marker protocol of shell sessions: what a shell prints around a command's output, and how it is found. Pure: bytes
# in, output and exit status out. Each command has a new random nonce, so that no output contains its markers by chance.
# A marker contains a byte (RS) that a shell does not print when it echoes its input or trace.

RS = b"\x1e"


def begin_marker(nonce: str) -> bytes:
    return RS + b"B" + nonce.encode() + RS


def end_marker(nonce: str, status: int) -> bytes:
    return RS + b"E" + nonce.encode() + b" %d" % status + RS


@dataclass(frozen=True, slots=True)
class Scanned:
    """Output that is certain so far, and the exit status after the end of the command."""

    output: bytes
    exit_status: int | None


class MarkerScanner:
    """Extracts the output of one command from a stream of chunks of any size.

    `may_end`: an end marker counts although no command has begun, as at the start of a shell.
    """

    def __init__(self, nonce: str, may_end: bool = True) -> None:
        self._begin = begin_marker(nonce)
        self._end = re.compile(re.escape(RS + b"E" + nonce.encode()) + rb" (\d{1,3})" + RS)
        self._longest = len(end_marker(nonce, 255))
        self._held = b""
        self._begun = False
        self.may_end = may_end

    @property
    def begun(self) -> bool:
        return self._begun

    def feed(self, chunk: bytes) -> Scanned:
        data = self._held + chunk
        self._held = b""
        if not self._begun:
            before, found, after = data.partition(self._begin)
            self._begun = bool(found)
            data = after if found else before
        match = self._end.search(data) if self._begun or self.may_end else None
        if match is not None:
            return Scanned(data[: match.start()] if self._begun else b"", int(match[1]))
        certain = self._certain_length(data)
        self._held = data[certain:]
        return Scanned(data[:certain] if self._begun else b"", None)

    def rest(self) -> bytes:
        """The bytes that were kept back as a possible marker; at the end of the stream they are output."""
        held, self._held = self._held, b""
        return held if self._begun else b""

    def _certain_length(self, data: bytes) -> int:
        """The length of the data that cannot be the start of a marker."""
        start = data.find(RS, max(0, len(data) - self._longest + 1))
        return len(data) if start < 0 else start


# The supported shells: how each is started, and the lines that make it report the end of each command. The shell is
# interactive, so that Ctrl-C ends a command and not the shell. It gets a command as a file (no length limit, no echo,
# no history expansion), and reports its end when it returns for the next line.

_POSIX_SHELLS = ("sh", "dash", "ash", "ksh", "mksh")

# The nonce is read from a file, so that the function's text never contains it. Every redirection goes to the terminal
# itself, because a command can have redirected the shell's own output. No job control: no messages about jobs.
_REPORTING = r"""
set +m
unset HISTFILE ENV
__ptypool_begin() { printf '\036B%s\036' "$1" >/dev/tty; return "$2"; }
__ptypool_end() {
  __ptypool_status=$?
  @ENV@ -0 >|@FOLDER@/env
  printf %s "$PWD" >|@FOLDER@/cwd
  read -r __ptypool_nonce <@FOLDER@/nonce
  printf '\036E%s %d\036' "$__ptypool_nonce" "$__ptypool_status" >/dev/tty
}
"""
_BASH_PROMPT = "PROMPT_COMMAND='{ __ptypool_end; } 2>/dev/null' PS1= PS2="
_POSIX_PROMPT = "PS1='$(__ptypool_end 2>/dev/null)' PS2="
# A command can set the prompt (an rc file or a virtual environment does): restore ours after each.
_KEEP_PROMPT = "__ptypool_keep() { __ptypool_kept=$?; @PROMPT@; return $__ptypool_kept; }\n__ptypool_keep\n"
_KILL_LINE = b"\x15"


@dataclass(frozen=True, slots=True)
class ShellFiles:
    """The private folder through which a session talks to its shell."""

    folder: Path

    def prepare(self, shell: str) -> tuple[list[str], dict[str, str]]:
        """Write the start-up file; return the arguments and the extra environment for the shell."""
        name = os.path.basename(shell)
        if name != "bash" and name not in _POSIX_SHELLS:
            raise ValueError(f"cannot keep a session in {name!r}: choose bash or one of {', '.join(_POSIX_SHELLS)}")
        start_up = self.folder / "start-up"
        reporting = _REPORTING.replace("@FOLDER@", shlex.quote(str(self.folder)))
        reporting = reporting.replace("@ENV@", shlex.quote(shutil.which("env") or "/usr/bin/env"))
        prompt = _BASH_PROMPT if name == "bash" else _POSIX_PROMPT
        start_up.write_text(reporting + _KEEP_PROMPT.replace("@PROMPT@", prompt))
        if name == "bash":
            return ["--noediting", "--noprofile", "--rcfile", str(start_up), "-i"], {}
        return ["-i"], {"ENV": str(start_up)}

    def expect(self, nonce: str) -> None:
        """Set the nonce of the next report."""
        (self.folder / "nonce").write_text(nonce + "\n")

    def put_command(self, command: str, nonce: str, last_status: int) -> bytes:
        """Write the command's file; return the line to type. `$?` is the status of the previous command."""
        (self.folder / "command").write_bytes(os.fsencode(command) + b"\n")
        self.expect(nonce)
        file = shlex.quote(str(self.folder / "command"))
        return _KILL_LINE + f" __ptypool_begin {nonce} {last_status}; . {file}; __ptypool_keep\n".encode()

    def reported_cwd(self) -> str:
        return os.fsdecode((self.folder / "cwd").read_bytes())

    def reported_env(self) -> dict[str, str]:
        entries = (self.folder / "env").read_bytes().split(b"\0")
        pairs = (entry.partition(b"=") for entry in entries if entry)
        return without_bookkeeping({os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs})


def without_bookkeeping(env: Mapping[str, str]) -> dict[str, str]:
    """Remove variables that each shell sets for itself."""
    return {name: value for name, value in env.items() if name not in ("_", "SHLVL", "PWD", "ENV")}


# The state of a shell session without its process, and its file on disk. The file contains the environment with its
# secrets, so only its owner can read it, and it is replaced atomically.

_VERSION = 1


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    command: str
    exit_status: int
    cwd: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class SessionState:
    shell: str
    cwd: str
    env: dict[str, str]
    history: tuple[HistoryEntry, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(fd)
        os.replace(draft, target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SessionState:
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls._from_document(document)
        except (ValueError, KeyError, TypeError) as error:
            raise PtyInternalError(f"{os.fspath(path)} is no saved session: {error}") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> SessionState:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']} is not {_VERSION}")
        history = tuple(HistoryEntry(**entry) for entry in document["history"])
        return cls(str(document["shell"]), str(document["cwd"]), dict(document["env"]), history)


HISTORY_LIMIT = 1000
_START_WITHIN_S = 30.0
_STOP_WITHIN_S = 2.0
_AGAIN_AFTER_S = 0.5
_CTRL_C = b"\x03"


class CommandResult(NamedTuple):
    """`output, status = await session.run(…)`; bytes that are not UTF-8 are kept as surrogates."""

    output: str
    exit_status: int


class Session:
    """A persistent shell; create one with `await Session.open(pool)` or `await Session.reopen(pool, path)`."""

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
        """Continue a saved session: same directory, environment and history, in a new shell."""
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
        """The shell's terminal. Let run() do the reading; you can send input to a running command."""
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
        """Run a command in the shell and wait for its end. Commands run one at a time; others wait.

        `on_output` gets the output as it comes, and then it is not collected. After the timeout the command is
        interrupted (if necessary, a new shell in the same state replaces this one) and CommandTimeout is raised.
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
        """Send input to the running command."""
        await self.handle.send(data)

    async def interrupt(self) -> None:
        """Send Ctrl-C to the running command."""
        await self.handle.send(_CTRL_C)

    async def close(self) -> None:
        """End the shell and its children; state and history stay readable."""
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
        scanner = MarkerScanner(nonce, may_end=False)  # an earlier Ctrl-C can make the shell report once more
        handle.reset_terminal(self._attributes)
        await handle.send(self._files.put_command(command, nonce, self._last_status))
        try:
            status = await self._read_until_end(scanner, on_output)
        except asyncio.CancelledError:
            await self._stop_command(scanner, on_output)
            raise
        if status is None:  # the command ended the shell, as `exit` does
            return await handle.wait()
        self._follow_shell()
        return status

    async def _read_until_end(self, scanner: MarkerScanner, on_output: Callable[[bytes], None]) -> int | None:
        """The exit status that the shell reports, or None if the shell ended instead."""
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
        """Interrupt the command; if that fails, replace the shell."""
        # A separate task, because this one is being cancelled, and `asyncio.timeout` then ends wrongly before Python
        # 3.11.4.
        stopping = asyncio.create_task(self._interrupted(scanner, on_output))
        await asyncio.wait((stopping,), timeout=_STOP_WITHIN_S)
        if stopping.done() and stopping.result():
            self._follow_shell()
            return
        stopping.cancel()  # the command ignores Ctrl-C or does not read: replace the shell
        await asyncio.wait((stopping,))
        await self.handle.kill()
        await self._start()

    async def _interrupted(self, scanner: MarkerScanner, on_output: Callable[[bytes], None]) -> bool:
        """Return True if Ctrl-C ended the command and the shell has reported it.

        A program can end by itself in the moment of the Ctrl-C. bash then continues with the rest of the command, so we
        send it again.
        """
        scanner.may_end = True  # Ctrl-C can come before the command has begun
        report = asyncio.create_task(self._read_until_end(scanner, on_output))
        sent = 0
        try:
            while not report.done():
                await self.interrupt()
                sent += 1
                await asyncio.wait((report,), timeout=_AGAIN_AFTER_S)
            return await report is not None and (sent == 1 or await self._is_ready())
        except PtyIoError:
            return False
        finally:
            report.cancel()
            await asyncio.gather(report, return_exceptions=True)

    async def _is_ready(self) -> bool:
        """The last Ctrl-C can reach the shell after its report, and must not reach the next command. An empty line
        makes the shell report once more; it reads the line after the Ctrl-C."""
        nonce = secrets.token_hex(16)
        self._files.expect(nonce)
        await self.handle.send(b"\n")
        return await self._read_until_end(MarkerScanner(nonce), _ignore) is not None

    def _follow_shell(self) -> None:
        self._cwd, self._env = self._files.reported_cwd(), self._files.reported_env()

    def _remember(self, command: str, status: int, duration_s: float) -> None:
        self._last_status = status % 256
        self._history.append(HistoryEntry(command, status, self._cwd, round(duration_s, 6)))


def _text(chunks: list[bytes]) -> str:
    return b"".join(chunks).decode("utf-8", "surrogateescape")


def _ignore(_: bytes) -> None:
    return None
