"""Runs a foreign adapter inside a session: `python -m ...external_adapter SOCKET NAME COMMAND...`.

NAME is the tool's name, or the file that contains its adapter. The session host starts this program on the session's
terminal. It drives the adapter through the frozen interface alone: output goes to the terminal, and detected prompts go
through SOCKET to the host, which sends back replies and their outcomes. A line that a person types at the terminal
while a prompt is open is a reply, too; keys typed at other times go to the tool unchanged. A failing adapter is
reported once; the session continues without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import sys
import termios
import traceback
import tty
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeVar

from atlasbridge.adapters.base import BaseAdapter, PromptEvent, PromptType, Reply, validate_event
from atlasbridge.adapters.event import prompt_of_event
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.detection import events
from atlasbridge.core.detection.events import Command, Event, RaisePrompt, ReplyTyped, RequestWakeup, WithdrawPrompt
from atlasbridge.core.errors import AdapterError
from atlasbridge.core.host.analysis import DetectorLike
from atlasbridge.core.peer import prove_above
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.system import wait_readable

# The detector of a session with a foreign adapter: the adapter's prompts come first, and the usual detector raises the
# ones that it misses. While a prompt of the adapter is open, the usual detector only watches. A prompt that it alone
# has seen is raised after a grace period for the adapter.

GRACE_S = 3.0  # after the last output; an adapter that relies on silence needs more than two seconds


class ExternalDetector:
    def __init__(self, usual: DetectorLike) -> None:
        self._usual = usual
        self.screen = usual.screen
        self._adapter_prompt: Prompt | None = None
        self._raised = ""  # the digest of the prompt that the usual detector was allowed to raise
        self._due: float | None = None  # when the usual detector is allowed to raise its prompt
        self._output_at = 0.0
        self._wake_at = 0.0  # the last wake-up that the usual detector requested

    @property
    def open_prompt(self) -> Prompt | None:
        return self._adapter_prompt or (self._usual.open_prompt if self._raised else None)

    @property
    def despite_busy(self) -> bool:
        """With a prompt of the adapter, the activity of its process does not matter."""
        return self._adapter_prompt is not None or self._usual.despite_busy

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._usual.secrets

    @secrets.setter
    def secrets(self, values: tuple[str, ...]) -> None:
        self._usual.secrets = values

    def handle(self, event: Event, now: float) -> list[Command]:
        if isinstance(event, events.OutputReceived):
            self._output_at = now
        match event:
            case events.StructuredEventReceived("prompt", text):
                return self._raise_adapter_prompt(text)
            case events.StructuredEventReceived("resolved"):
                return self._settle("answered", now)
            case ReplyTyped() if self._adapter_prompt is not None:
                return self._reply_typed(now)
            case events.ChildExited():
                return [*self._settle("exited", now), *self._filter(self._usual.handle(event, now), now)]
        return self._filter(self._usual.handle(event, now), now)

    def still_shows(self, digest: str) -> bool:
        return (
            self._usual.still_shows(digest) if self._adapter_prompt is None else self._adapter_prompt.digest == digest
        )

    def has_left(self, digest: str) -> bool:
        return self._usual.has_left(digest) if self._adapter_prompt is None else self._adapter_prompt.digest != digest

    def took_first_key(self) -> None:
        self._usual.took_first_key()

    @property
    def line_begun(self) -> bool:
        return self._adapter_prompt is None and self._usual.line_begun

    def refilled(self, digest: str) -> bool:
        return self._adapter_prompt is None and self._usual.refilled(digest)

    def begun(self, now: float) -> bool:
        """Typed characters are not visible while an adapter reads them."""
        return self._adapter_prompt is None and self._usual.begun(now)

    def explain(self) -> list[str]:
        return ["its adapter says what it asks"] if self._adapter_prompt is not None else self._usual.explain()

    def reconsider(self) -> None:
        self._adapter_prompt, self._raised, self._due = None, "", None
        self._usual.reconsider()

    def _raise_adapter_prompt(self, text: str) -> list[Command]:
        try:
            prompt = prompt_of_event(json.loads(text))
        except (ValueError, KeyError, TypeError):
            return []  # not an event of the frozen interface
        gone = self.open_prompt
        self._adapter_prompt, self._raised, self._due = prompt, "", None
        return [*([WithdrawPrompt(gone.digest, "moved_on")] if gone else []), RaisePrompt(prompt)]

    def _settle(self, reason: str, now: float) -> list[Command]:
        """The adapter's prompt has ended. If the tool still waits, the usual detector sees it."""
        gone, self._adapter_prompt = self._adapter_prompt, None
        if gone is None:
            return []
        self._due = now + GRACE_S if self._usual.open_prompt is not None else None
        return [WithdrawPrompt(gone.digest, reason)]

    def _reply_typed(self, now: float) -> list[Command]:
        seen = self._usual.open_prompt
        return [] if seen is None else self._filter(self._usual.handle(ReplyTyped(seen.digest), now), now)

    def _filter(self, commands: list[Command], now: float) -> list[Command]:
        """Filter the commands of the usual detector."""
        out: list[Command] = []
        for command in commands:
            match command:
                case RaisePrompt():
                    self._due = max(now, self._output_at + GRACE_S)
                case WithdrawPrompt(digest):
                    out += [command] if digest == self._raised else []
                    self._raised, self._due = "", None
                case RequestWakeup(at):
                    self._wake_at = at
                    out.append(command)
                case _:
                    out.append(command)
        due = self._due is not None and now >= self._due and self._adapter_prompt is None
        seen = self._usual.open_prompt if due else None
        if seen is not None:
            self._raised, self._due = seen.digest, None
            out.append(RaisePrompt(seen))
        if self._due is None:
            return out
        return [*out, RequestWakeup(min(self._due, self._wake_at) if self._wake_at > now else self._due)]


# The tool of a foreign adapter, seen from outside: its terminal's master, and its exit status. The frozen interface can
# neither type without a prompt nor report an exit status. The adapter runs in this process, so both are available
# without it: the terminal's master is one of our descriptors, and the tool one of our children.

# TIOCGPTN, TIOCPTYGNAME: they succeed for masters only
_NAME_OF_SLAVE = {"linux": (0x80045430, 4), "darwin": (0x40807453, 128)}


def find_master(not_these: frozenset[int] = frozenset()) -> int | None:
    """Return the descriptor of this process that is a terminal's master; None if the adapter has none here."""
    request, size = _NAME_OF_SLAVE.get(sys.platform, (0, 0))
    for name in os.listdir("/dev/fd") if request else ():
        fd = int(name)
        try:
            fcntl.ioctl(fd, request, b"\0" * size)
        except OSError:
            continue  # not a master, or the descriptor of this listing
        if fd not in not_these:
            return fd
    return None


def copy_size(terminal: int, master: int) -> None:
    """Copy the size of the person's terminal to the tool's."""
    try:
        size = fcntl.ioctl(terminal, termios.TIOCGWINSZ, b"\0" * 8)
        if struct.unpack("HHHH", size)[0]:
            fcntl.ioctl(master, termios.TIOCSWINSZ, size)
    except OSError:
        return  # one side is not a terminal


class ExitStatus:
    """The exit status of a child, recorded when it dies without reaping it, so that others still can. Create it before
    the child."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._before = signal.signal(signal.SIGCHLD, self._on_death)

    def _on_death(self, number: int, frame: FrameType | None) -> None:
        self._look(os.P_ALL, 0)
        if callable(self._before):
            self._before(number, frame)

    def _look(self, which: int, pid: int) -> None:
        try:
            found = os.waitid(which, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return  # already reaped, or not our child
        if found is not None:
            signalled = found.si_code != os.CLD_EXITED
            self._seen[found.si_pid] = 128 + found.si_status if signalled else found.si_status

    def of(self, pid: int | None) -> int | None:
        """The status as in a shell; None if the child is alive, or its end was not seen."""
        if pid is not None and pid not in self._seen:
            self._look(os.P_PID, pid)
        return None if pid is None else self._seen.get(pid)


BUFFER_BYTES = 4096
LOOK_S = 0.25
CONTEXT_S = 5.0  # how often the adapter's status is read
ENDS_LOOKS = 40  # a tool can close its terminal a moment before it ends
SOURCE = "its adapter"
INTERRUPT = b"\x03"
REMEMBERED_KEYS = 32
ERASED = re.compile(rb"(?:[\x00-\x7e]|[\xc0-\xff][\x80-\xbf]+)?\x7f")  # a character and the key that erased it


T = TypeVar("T")


class ExternalAdapter:
    def __init__(self, adapter: BaseAdapter, attach_socket: str) -> None:
        self._adapter = adapter
        self._host = _Host(attach_socket, self._inject)
        self._buffer = bytearray()
        self._open: PromptEvent | None = None
        self._session_id = ""
        self._master: int | None = None
        self._line = bytearray()  # the typed part of a line
        self._answers: asyncio.Queue[tuple[bytes, str, str] | str] = asyncio.Queue()
        self._seen: deque[str] = deque(maxlen=REMEMBERED_KEYS)  # idempotency keys
        self._complained: set[str] = set()

    async def run(self, command: list[str]) -> int:
        endings = ExitStatus()
        self._session_id = await self._adapter.start_session(command)
        if not self._adapter.CALLS_HOOKS:
            await self._adapter.on_start()
        context = await self._context()
        self._master = find_master()
        with _keys_alone(0):
            loops = (self._keep_looking(), self._keep_answering(), self._host.keep_hearing(), self._keep_telling())
            tasks = [asyncio.create_task(one) for one in loops]
            self._listen(asyncio.get_running_loop())
            try:
                await self._read()
            finally:
                asyncio.get_running_loop().remove_reader(0)
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        self._tell("resolved", {})
        return await self._ended(endings, context.get("pid"))

    async def _read(self) -> None:
        """Read until the tool has ended. If the adapter fails to read, this program reads the terminal itself."""
        try:
            async for chunk in self._adapter.read_stream():
                self._show(chunk)
                await self._look()
        except Exception as error:  # the boundary to a foreign adapter: its tool continues
            self._fault("read_stream", error)
            if self._master is None:
                raise
            while chunk := await _read_master(self._master):
                self._show(chunk)

    def _fault(self, method: str, error: Exception) -> None:
        """Report the fault once to the host, which logs it; `status` and `doctor` show it. Nothing is written to the
        terminal, because it would cover the tool's question."""
        text = f"{type(self._adapter).__name__}.{method}: {type(error).__name__}: {error}"
        if text not in self._complained:
            self._complained.add(text)
            self._tell("adapter", {"fault": text, "traceback": "".join(traceback.format_exception(error))})

    async def _call(self, method: str, otherwise: T, *arguments: Any) -> T:
        """What a method of the adapter returns.  If it raises, the fault is reported and `otherwise` is returned."""
        try:
            found: T = await getattr(self._adapter, method)(*arguments)
        except Exception as error:  # the boundary to a foreign adapter
            self._fault(method, error)
            return otherwise
        return found

    async def _context(self) -> dict[str, Any]:
        return dict(await self._call("snapshot_context", {}) or {})

    async def _keep_telling(self) -> None:
        """Send the adapter's view of its session, for `atlasbridge status` and `doctor`."""
        while True:
            told = {name: value for name, value in (await self._context()).items() if _is_plain(value)}
            self._tell("adapter", {"context": told})
            await asyncio.sleep(CONTEXT_S)

    async def _ended(self, endings: ExitStatus, pid: int | None) -> int:
        """The tool's own exit status, read before the adapter can send a signal."""
        for _ in range(ENDS_LOOKS):
            if endings.of(pid) is not None or not await self._call("healthcheck", False):
                break
            await asyncio.sleep(LOOK_S / 10)
        context = await self._context()
        await self._call("terminate_session", None, self._session_id)
        seen = endings.of(pid)
        # the adapter's own value if the end was not seen
        status = int(context.get("exit_code") or 0) if seen is None else seen
        if not self._adapter.CALLS_HOOKS:
            await (self._adapter.on_crash(status) if status else self._adapter.on_stop(status))
        return status

    def _show(self, chunk: bytes) -> None:
        self._buffer += chunk
        del self._buffer[:-BUFFER_BYTES]
        data = memoryview(chunk)
        while data:
            data = data[os.write(1, data) :]

    async def _keep_looking(self) -> None:
        """Look again without new output, because an adapter can need silence to be sure."""
        while True:
            await asyncio.sleep(LOOK_S)
            waits: bool | None = await self._call("await_input_state", None)
            if waits is None:
                return
            if waits:
                await self._look()

    async def _look(self) -> None:
        if not self._buffer:
            return
        event: PromptEvent | None = await self._call("detect_prompt", None, bytes(self._buffer))
        if event is None or event.idempotency_key in self._seen:
            return
        self._seen.append(event.idempotency_key)
        for wrong in set(validate_event(event)) - self._complained:
            self._complained.add(wrong)  # reported once; the prompt is asked anyway, so that it is not lost
            _say(f"an event of the adapter is not as the interface has it: {wrong}")
        known, self._open = self._open, event
        if known is None or (known.prompt_type, known.excerpt) != (event.prompt_type, event.excerpt):
            self._tell("prompt", _plain(event), injects=True)  # otherwise it is the same prompt again

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.add_reader(0, self._typed, loop)
        loop.add_signal_handler(signal.SIGINT, self._interrupted, loop)
        loop.add_signal_handler(signal.SIGWINCH, self._resized)
        self._resized()

    def _typed(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            data = os.read(0, 4096)
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(0)  # the input has ended
        elif INTERRUPT in data:
            self._interrupted(loop)
        elif self._open is None and not self._line and self._master is not None:
            _write(self._master, data)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        """A complete line answers the prompt; the rest was typed ahead for the tool."""
        self._line += data.replace(b"\r", b"\n")
        line, end, rest = bytes(self._line).partition(b"\n")
        if not end:
            return
        self._line.clear()
        if self._open is not None:
            while ERASED.search(line):
                line = ERASED.sub(b"", line, count=1)
            self._answers.put_nowait(line.decode("utf-8", "replace"))
        if rest and self._master is not None:
            _write(self._master, rest)

    async def _keep_answering(self) -> None:
        while True:
            match await self._answers.get():
                case (bytes(keys), str(by), str(nonce)):
                    self._host.say({"m": "injected", "error": await self._reply(*_value_of(keys), by, nonce)})
                case str(line):
                    await self._answer(line)

    def _inject(self, message: dict[str, Any]) -> None:
        """The host has accepted an answer."""
        keys = str(message.get("keys", "")).encode("latin-1", "replace")
        self._answers.put_nowait((keys, str(message.get("by", "")), str(message.get("nonce", ""))))

    def _interrupted(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ctrl-C belongs to the tool: type it into its terminal."""
        self._line.clear()
        if self._master is not None:
            _write(self._master, INTERRUPT)
        else:
            self._stopping = loop.create_task(self._adapter.terminate_session(self._session_id))

    def _resized(self) -> None:
        if self._master is not None:
            copy_size(0, self._master)

    async def _answer(self, line: str) -> None:
        """Handle a line that was typed at the terminal."""
        if self._open is None:
            return  # a second line, typed together with the answer
        enter = self._open.prompt_type is PromptType.TYPE_CONFIRM_ENTER or not line
        value, policy = ("\n", "none") if enter else (line, "append")
        if error := await self._reply(value, policy, "cli:local", ""):
            _say(f"the adapter refused the reply: {error}")
        else:
            self._tell("resolved", {})

    async def _reply(self, value: str, policy: str, by: str, nonce: str) -> str:
        """Return the error, or "" if the adapter has written the reply."""
        event = self._open
        if event is None:
            return "the adapter asks nothing now"
        token = str(event.constraints.get("nonce") or nonce or os.urandom(16).hex())
        reply = Reply(event.prompt_id, event.session_id, value, token, by, iso(SystemClock().wall()), policy)
        before = bytes(self._buffer)
        self._buffer.clear()
        try:
            await self._adapter.inject_reply(reply)
        except Exception as error:  # the boundary to a foreign adapter: the person gets the error and is asked again
            self._buffer[:0] = before
            self._fault("inject_reply", error)
            return str(error) or type(error).__name__
        if self._open is event:
            self._open = None
        return ""

    def _tell(self, kind: str, body: dict[str, Any], **more: Any) -> None:
        self._host.say({"m": "structured", "kind": kind, "text": json.dumps(body), "source": SOURCE, **more})


class _Host:
    """The connection to the session's host. A broken one is restored with the next message."""

    def __init__(self, attach_socket: str, inject: Any) -> None:
        self._attach_socket = attach_socket
        self._inject = inject
        self._connection: socket.socket | None = None
        self._heard = b""

    def say(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        for _ in range(2):
            try:
                if self._connection is None:
                    self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    self._connection.settimeout(2.0)
                    self._connection.connect(self._attach_socket)
                    prove_above(self._connection)
                self._connection.sendall(line)
                return
            except OSError:
                self._close()

    async def keep_hearing(self) -> None:
        while True:
            connection = self._connection
            if connection is None:
                await asyncio.sleep(LOOK_S / 5)
                continue
            await wait_readable(connection.fileno())
            try:
                data = connection.recv(65536)
            except OSError:
                data = b""
            if not data:
                self._close()
            *lines, self._heard = (self._heard + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                if message.get("m") == "inject":
                    self._inject(message)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._heard = None, b""


async def _read_master(master: int) -> bytes:
    """The next output; b"" if the tool has closed its terminal."""
    await wait_readable(master)
    try:
        return os.read(master, 65536)
    except BlockingIOError:
        return await _read_master(master)
    except OSError:
        return b""


def _value_of(keys: bytes) -> tuple[str, str]:
    """The reply's value and newline policy: a line, Enter alone, or raw keys."""
    if keys in (b"\r", b"\n"):
        return "\n", "none"
    line = keys.removesuffix(b"\r")
    if line != keys and line.decode("utf-8", "replace").isprintable():
        return line.decode("utf-8", "replace"), "append"
    return "".join(f"\\x{byte:02x}" for byte in keys), "replace"


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _plain(event: PromptEvent) -> dict[str, Any]:
    return {
        "prompt_id": event.prompt_id,
        "prompt_type": str(event.prompt_type),
        "confidence": str(event.confidence),
        "excerpt": event.excerpt,
        "choices": list(event.choices),
        "constraints": {k: v for k, v in event.constraints.items() if k != "nonce" and _is_plain(v)},
    }


def _say(text: str) -> None:
    """Print to the person's terminal; the adapter does not see it."""
    _write(1, f"\r\natlasbridge: {text}\r\n".encode())


def _write(fd: int, data: bytes) -> None:
    """Errors are ignored, because the tool can have ended."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(fd, data) :]


@contextlib.contextmanager
def _keys_alone(fd: int) -> Iterator[None]:
    """Read our own terminal key by key without echo: the adapter's terminal echoes and converts line ends."""
    try:
        before = termios.tcgetattr(fd)
    except termios.error:
        yield
        return
    tty.setraw(fd, termios.TCSANOW)
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSANOW, before)


def main(words: list[str]) -> int:
    attach_socket, name, *command = words
    try:
        return asyncio.run(ExternalAdapter(AdapterRegistry.find(name)(), attach_socket).run(command))
    except AdapterError as error:
        sys.stderr.write(f"atlasbridge: {error}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
