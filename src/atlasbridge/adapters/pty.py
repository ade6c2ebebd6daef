"""PtyAdapter: the frozen interface over the session's own terminal, detector, watchdog and typist.

With it, a tool's adapter is only a name and a dialect. `atlasbridge run` drives the same parts from the session host;
this class is for programs that drive a tool themselves.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

from atlasbridge.adapters.base import (
    AdapterInjectionError,
    AdapterStartError,
    BaseAdapter,
    PromptEvent,
    ReplayAttackError,
    Reply,
    reply_bytes,
    validate_reply,
)
from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.adapters.event import event_of
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.prompt_builder import prompt_of
from atlasbridge.core.detection.verdict import MEDIUM
from atlasbridge.core.errors import AdapterError
from atlasbridge.core.host.analysis import BareSession
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.keys import Step, parse_keys
from atlasbridge.core.prompt.model import Answer, AnswerKind, Evidence, Prompt, Reject
from atlasbridge.core.recognition.finding import DRAWN_SCREEN, Facts
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.recognition.widgets.known_dialog import stated
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from atlasbridge.core.session.settings import SessionSettings, child_environ
from atlasbridge.core.system import wait_readable
from atlasbridge.core.tty import Size, SpawnRefused
from atlasbridge.os.tty import make_probe
from atlasbridge.os.tty.posix import PosixPTY

BUFFER_BYTES = 4096
READ_BYTES = 1024  # as in the specification
REMEMBERED_KEYS = 32
LOOK_S = 0.01
JUDGED_S = 2.0  # how long to wait for the detector to judge a possible prompt, unless more output comes


class PtyAdapter(BaseAdapter):
    CALLS_HOOKS = True
    TOOL_NAME: ClassVar[str] = "generic"
    DIALECT: ClassVar[str] = "generic"

    def __init__(
        self,
        *,
        rows: int = 40,
        cols: int = 120,
        stuck_timeout_seconds: float = 2.0,
        clock: Clock | None = None,
        own_dialects: Path | None = None,
    ) -> None:
        self._rows, self._cols = rows, cols
        self._stuck_s = stuck_timeout_seconds
        self._clock = clock or SystemClock()
        self.dialect = load_dialect(self.DIALECT, own_dialects)
        self._buffer = bytearray()
        # everything that was read; the session's own screen is drawn later by another thread
        self._screen = Screen(rows, cols)
        self._pty: PosixPTY | None = None
        self._session: BareSession | None = None
        self._session_id = ""
        self._without_session = new_id()
        self._started_at = self._clock.now()
        self._keys: deque[str] = deque(maxlen=REMEMBERED_KEYS)
        self._asked: dict[str, tuple[PromptEvent, Prompt, str]] = {}  # with the id of the open prompt
        self._told = ""  # the last of these ids
        self._used: set[str] = set()  # nonces
        self._prompt_count = 0
        self._injecting = False
        self._ended = False

    @property
    def SUPPORTED_VERSIONS(self) -> list[str]:
        """The versions that the dialect was verified with."""
        return list(self.dialect.versions)

    @property
    def tool_name(self) -> str:
        """The name in the specification."""
        return self.TOOL_NAME

    @property
    def supported_versions(self) -> list[str]:
        return self.SUPPORTED_VERSIONS

    def prepare_command(self, command: list[str]) -> list[str]:
        """The command to start; a tool can need more arguments to report its requests."""
        return command

    async def start_session(self, command: list[str], env: dict[str, str] | None = None) -> str:
        if await self.healthcheck():
            raise AdapterStartError("this adapter runs a session already", "use one adapter for each session")
        if not command:
            raise AdapterStartError("no program was given", "")
        environ = {"TERM": "xterm-256color", **os.environ, **(env or {})}
        size = Size(self._rows, self._cols)
        try:
            pty = PosixPTY.spawn(self.prepare_command(list(command)), child_environ(environ), None, size, None)
        except SpawnRefused as error:
            raise AdapterStartError(f"{command[0]} could not be started: {error}", error.hint) from error
        detector, settings = Detector(self.dialect, self._rows, self._cols), SessionSettings()
        probe = make_probe(pty.fileno(), pty.pid)
        self._pty, self._session = pty, BareSession(pty, detector, probe, _encode, self._clock, settings)
        self._session_id, self._ended, self._started_at = new_id(), False, self._clock.now()
        self._session.start()
        await self.on_start()
        return self._session_id

    async def read_stream(self) -> AsyncIterator[bytes]:
        pty, session = self._running()
        while chunk := await _read(pty):
            session.take_in(chunk)
            self._screen.feed(chunk)
            self._buffer += chunk
            del self._buffer[:-BUFFER_BYTES]
            yield chunk
        while (status := pty.poll()) is None:  # a tool can close its terminal a moment before it ends
            await asyncio.sleep(LOOK_S)
        await self._finish(status)

    async def _finish(self, status: int) -> None:
        if self._session is None:
            return
        await asyncio.to_thread(self._session.stop)
        if not self._ended:
            self._ended = True
            await (self.on_stop(status) if status == 0 else self.on_crash(status))

    async def terminate_session(self, session_id: str) -> None:
        if session_id != self._session_id:
            raise AdapterError(f"there is no session {session_id!r} here", "terminate the session that was started")
        if self._pty is None:
            return
        for pause_s in self._pty.end_steps(SessionSettings().kill_grace_s):
            await asyncio.sleep(pause_s)
        await self._finish(self._pty.poll() or 0)
        self._pty.close()

    async def wait(self) -> int:
        """Wait for the end of the tool; return its exit status, negative for a signal."""
        pty, _ = self._running()
        while (status := pty.poll()) is None:
            await asyncio.sleep(LOOK_S)
        return status

    async def terminate(self, force: bool = False) -> None:
        """Send SIGTERM, or SIGKILL with `force`, to the tool and its children."""
        self._running()[0].signal(signal.SIGKILL if force else signal.SIGTERM)

    async def detect_prompt(self, buffer: bytes) -> PromptEvent | None:
        """For a running tool, return the prompt that the session's detector raised. For other bytes, recognise the
        prompt on their screen."""
        live = bool(buffer) and await self.healthcheck() and self._buffer.endswith(buffer)
        view = View.of(self._screen if live else _screen_of(buffer, self._rows, self._cols))
        found = recognise(view, Facts(), self.dialect)
        drawn = found.rule == DRAWN_SCREEN  # only frames, without text
        looks_like_one = found.score >= MEDIUM and not drawn and stated(view, self.dialect) != "busy"
        if live:
            return await self._raised(JUDGED_S if looks_like_one else 0.0)
        if not looks_like_one:
            return None
        evidence = [Evidence("pattern", found.score, found.rule)]
        return self._event(prompt_of(found, view, evidence, bytes(buffer[-BUFFER_BYTES:]), ()), "")

    async def _raised(self, patience_s: float) -> PromptEvent | None:
        pty, session = self._running()
        deadline = self._clock.now() + patience_s
        while (opened := session.opened) is None or opened.prompt_id == self._told:
            if self._clock.now() >= deadline or _has_output(pty):
                return None
            await asyncio.sleep(LOOK_S)
        self._told = opened.prompt_id
        return self._event(opened.prompt, opened.prompt_id)

    def _event(self, prompt: Prompt, open_id: str) -> PromptEvent | None:
        event = event_of(prompt, self._session_id or self._without_session, self._clock)
        if not open_id and event.idempotency_key in self._keys:
            return None
        self._keys.append(event.idempotency_key)
        self._asked[event.prompt_id] = event, prompt, open_id
        self._prompt_count += 1
        return event

    async def await_input_state(self) -> bool:
        if self._session is None or not await self.healthcheck():
            return False
        if self._session.opened is not None:
            return True
        silent = self._clock.now() - self._session.last_output_at >= self._stuck_s
        return silent and stated(View.of(self._session.screen), self.dialect) != "busy"

    async def inject_reply(self, reply: Reply) -> None:
        _, session = self._running()
        answer, open_id = self._claim(reply)
        self._injecting = True
        try:
            outcome = await asyncio.to_thread(session.type, open_id, answer)
        finally:
            self._injecting = False
        if outcome.outcome != "typed":
            raise AdapterInjectionError(f"the reply was not typed: {outcome.detail}", "look at the tool's screen")
        self._buffer.clear()

    async def type_keys(self, data: bytes) -> None:
        """Type raw keys without a prompt."""
        await asyncio.to_thread(self._running()[1].type_keys, data)

    def _claim(self, reply: Reply) -> tuple[Answer, str]:
        """Return the meaning of this reply and the open prompt that it answers. Its nonce is then used up."""
        if reply.session_id != self._session_id:
            raise AdapterInjectionError("the reply belongs to another session", "answer the session that asks")
        if reply.nonce in self._used:
            raise ReplayAttackError("this nonce was used before", "a prompt is answered once")
        known = self._asked.get(reply.prompt_id)
        if known is None:
            raise AdapterInjectionError("no such prompt waits here", "it was answered, or never asked")
        event, prompt, open_id = known
        if reply.nonce != event.constraints["nonce"]:
            raise ReplayAttackError("the nonce is not that of this prompt", "answer with the prompt's own nonce")
        answer = _meaning(reply, event, prompt)
        self._used.add(reply.nonce)
        del self._asked[reply.prompt_id]
        return answer, open_id

    async def snapshot_context(self) -> dict[str, Any]:
        alive = await self.healthcheck()
        now, session = self._clock.now(), self._session
        waiting = "awaiting_response" if self._asked else "running"
        return {
            "session_id": self._session_id,
            "tool": self.TOOL_NAME,
            "pid": None if self._pty is None else self._pty.pid,
            "state": ("injecting" if self._injecting else waiting) if alive else "done",
            "uptime_seconds": round(now - self._started_at, 3) if session is not None else 0.0,
            "prompt_count": self._prompt_count,
            "last_output_ago_seconds": round(now - (session.last_output_at if session else self._started_at), 3),
            "pty_alive": alive,
            "title": "" if session is None else session.screen.title,
        }

    async def healthcheck(self) -> bool:
        return self._pty is not None and not self._ended and self._pty.poll() is None

    def _running(self) -> tuple[PosixPTY, BareSession]:
        if self._pty is None or self._session is None:
            raise AdapterError("no session was started", "call start_session first")
        return self._pty, self._session


def _has_output(pty: PosixPTY) -> bool:
    """Whether there is more to read: the second half of a prompt could follow."""
    if pty.fileno() < 0:
        return False
    waiter = select.poll()
    waiter.register(pty.fileno(), select.POLLIN)
    return bool(waiter.poll(0))


async def _read(pty: PosixPTY) -> bytes:
    """The next chunk; b"" after the end."""
    fd = pty.fileno()
    while fd >= 0:
        await wait_readable(fd)
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            if pty.poll() is not None:
                break
            await asyncio.sleep(LOOK_S)  # no process has the terminal open, but a live tool could open it again
    return b""


def _meaning(reply: Reply, event: PromptEvent, prompt: Prompt) -> Answer:
    """`append` is an ordinary answer, whose keys the dialect knows. The other two policies are typed unchanged."""
    if reply.newline_policy != "append":
        return Answer(AnswerKind.KEYS, reply_bytes(reply.value, reply.newline_policy).decode("latin-1"))
    answer = decide_answer(prompt, reply.value or "enter")
    if isinstance(answer, Reject):
        raise AdapterInjectionError(answer.sentence, "send a value that fits the prompt")
    if answer.kind is AnswerKind.KEYS:
        return Answer(AnswerKind.KEYS, parse_keys(answer.value).decode("latin-1"))
    named = answer.kind is AnswerKind.CHOICE  # by the choice's own value, where the interface uses its number
    wrong = [] if named else validate_reply(reply, event)
    if wrong:
        raise AdapterInjectionError("; ".join(wrong), "send a value that fits the prompt")
    return answer


def _encode(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
    """Keys are raw bytes here, not names."""
    if answer.kind is AnswerKind.KEYS:
        return (Step(answer.value.encode("latin-1")),)
    return encode_answer(prompt, answer)


def _screen_of(buffer: bytes, rows: int, cols: int) -> Screen:
    screen = Screen(rows, cols)
    screen.feed(buffer.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    return screen
