"""PtyAdapter: the frozen interface over a terminal (ptypool), the screen, the recogniser and a dialect.

A tool's adapter is then a name and a dialect.  `atlasbridge run` does the same work in the session host without
asyncio; this class is for programs that drive a tool themselves.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Mapping
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
from atlasbridge.core.detection.picture import prompt_of
from atlasbridge.core.detection.signals import MEDIUM
from atlasbridge.core.errors import AdapterError
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Evidence, Prompt, Reject
from atlasbridge.core.prompt.step import Step, When, encode_until
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.recognition.recognise import recognise, stated
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View
from ptypool import PtyError, PtyHandle, PtyPool
from ptypool.termination import DEFAULT_GRACE_S

BUFFER_BYTES = 4096
REMEMBERED_KEYS = 32
STEP_TIMEOUT_S = 2.0
PRIVATE_PREFIX = "ATLASBRIDGE_"


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
        self._screen = Screen(rows, cols)
        self._buffer = bytearray()
        self._pool: PtyPool | None = None
        self._handle: PtyHandle | None = None
        self._session_id = ""
        self._without_session = new_id()
        self._started_at = self._last_output_at = self._clock.now()
        self._keys: deque[str] = deque(maxlen=REMEMBERED_KEYS)
        self._asked: dict[str, tuple[PromptEvent, Prompt]] = {}
        self._used: set[str] = set()  # nonces
        self._prompt_count = 0
        self._injecting = False
        self._ended = False

    @property
    def SUPPORTED_VERSIONS(self) -> list[str]:
        """The versions that the dialect was verified with."""
        return list(self.dialect.versions)

    def prepare_command(self, command: list[str]) -> list[str]:
        """The command as it is started; a tool may need more arguments to say what it asks."""
        return command

    # ------------------------------------------------------------ the session

    async def start_session(self, command: list[str], env: dict[str, str] | None = None) -> str:
        if self._handle is not None and self._handle.is_alive():
            raise AdapterStartError("this adapter runs a session already", "use one adapter for each session")
        if not command:
            raise AdapterStartError("no program to run was named", "")
        program, *arguments = self.prepare_command(list(command))
        pool = PtyPool(1, grace_s=DEFAULT_GRACE_S)
        try:
            self._handle = await pool.spawn(program, arguments, child_environ(env), None, (self._rows, self._cols))
        except PtyError as error:
            await pool.close()
            raise AdapterStartError(f"{program} could not be started: {error}", "check that it is installed") from error
        self._pool, self._session_id, self._ended = pool, new_id(), False
        self._started_at = self._last_output_at = self._clock.now()
        await self.on_start()
        return self._session_id

    async def read_stream(self) -> AsyncIterator[bytes]:
        handle = self._running()
        async for chunk in handle:
            self._screen.feed(chunk)
            for answer in self._screen.take_queries():  # nobody else answers: there is no terminal behind us
                await handle.send(answer)
            self._buffer += chunk
            del self._buffer[:-BUFFER_BYTES]
            self._last_output_at = self._clock.now()
            yield chunk
        await self._finish(await handle.wait())

    async def _finish(self, status: int) -> None:
        if not self._ended:
            self._ended = True
            await (self.on_stop(status) if status == 0 else self.on_crash(status))

    async def terminate_session(self, session_id: str) -> None:
        if session_id != self._session_id:
            raise AdapterError(f"there is no session {session_id!r} here", "terminate the session that was started")
        if self._handle is not None and self._pool is not None:
            await self._finish(await self._handle.kill())
            await self._pool.close()

    # ------------------------------------------------------------ prompts

    async def detect_prompt(self, buffer: bytes) -> PromptEvent | None:
        live = bool(buffer) and self._handle is not None and self._buffer.endswith(buffer)
        view = View.of(self._screen if live else _screen_of(buffer, self._rows, self._cols))
        found = recognise(view, Facts(), self.dialect)
        if found is None or found.score < MEDIUM or stated(view, self.dialect) == "busy":
            return None
        evidence = [Evidence("pattern", found.score, found.rule)]
        prompt = prompt_of(found, view, evidence, bytes(buffer[-BUFFER_BYTES:]), (), "")
        event = event_of(prompt, self._session_id or self._without_session, self._clock)
        if event.idempotency_key in self._keys:
            return None
        self._keys.append(event.idempotency_key)
        self._asked[event.prompt_id] = event, prompt
        self._prompt_count += 1
        return event

    async def await_input_state(self) -> bool:
        if self._handle is None or not self._handle.is_alive():
            return False
        silent = self._clock.now() - self._last_output_at >= self._stuck_s
        return silent and stated(View.of(self._screen), self.dialect) != "busy"

    async def inject_reply(self, reply: Reply) -> None:
        event, prompt = self._claim(reply)
        handle = self._running()
        self._injecting = True
        try:
            for step in self._steps(reply, event, prompt):
                before = self._screen.version
                await handle.send(step.keys)
                await handle.drain()
                await self._await_step(step, before)
        except PtyError as error:
            raise AdapterInjectionError(f"the reply could not be written: {error}", "the tool has ended") from error
        finally:
            self._injecting = False
        self._buffer.clear()
        self._last_output_at = self._clock.now()

    def _claim(self, reply: Reply) -> tuple[PromptEvent, Prompt]:
        """The prompt this reply may answer; its nonce is spent from here on."""
        if reply.session_id != self._session_id:
            raise AdapterInjectionError("the reply belongs to another session", "answer the session that asks")
        if reply.nonce in self._used:
            raise ReplayAttackError("this nonce was used before", "a prompt is answered once")
        known = self._asked.get(reply.prompt_id)
        if known is None:
            raise AdapterInjectionError("no such prompt waits here", "it was answered, or never asked")
        if reply.nonce != known[0].constraints["nonce"]:
            raise ReplayAttackError("the nonce is not that of this prompt", "answer with the prompt's own nonce")
        wrong = validate_reply(reply, known[0]) if reply.newline_policy == "append" else []
        if wrong:
            raise AdapterInjectionError("; ".join(wrong), "send a value that fits the prompt")
        self._used.add(reply.nonce)
        del self._asked[reply.prompt_id]
        return known

    def _steps(self, reply: Reply, event: PromptEvent, prompt: Prompt) -> tuple[Step, ...]:
        """`append` means an ordinary answer: the dialect knows its keys.  The other two are typed as they are."""
        if reply.newline_policy != "append":
            return (Step(reply_bytes(reply.value, reply.newline_policy)),)
        answer = decide_answer(prompt, reply.value or "enter")
        if isinstance(answer, Reject):
            raise AdapterInjectionError(answer.sentence, "send a value that fits the prompt")
        return encode_answer(prompt, answer, self._screen)

    async def _await_step(self, step: Step, before: int) -> None:
        """What a step must show before the next one; read_stream, which somebody consumes, brings the screen."""
        if step.until in (When.AT_ONCE, When.DRAINED):
            return
        give_up_at = self._clock.now() + STEP_TIMEOUT_S
        what, _, text = encode_until(step.until).partition(":")
        while not (self._has_come(what, text) if text else self._screen.version != before):
            if self._clock.now() > give_up_at:
                raise AdapterInjectionError(f"the tool did not come to {step.until!r}", "look at its screen")
            await asyncio.sleep(0.01)

    def _has_come(self, what: str, text: str) -> bool:
        if what == "stands":
            return any(text in line for line in self._screen.lines())
        return is_highlighted(View.of(self._screen), text)

    # ------------------------------------------------------------ how it is

    async def snapshot_context(self) -> dict[str, Any]:
        alive = await self.healthcheck()
        now = self._clock.now()
        waiting = "awaiting_response" if self._asked else "running"
        return {
            "session_id": self._session_id,
            "tool": self.TOOL_NAME,
            "pid": self._handle.pid if self._handle is not None else None,
            "state": ("injecting" if self._injecting else waiting) if alive else "done",
            "uptime_seconds": round(now - self._started_at, 3) if self._handle is not None else 0.0,
            "prompt_count": self._prompt_count,
            "last_output_ago_seconds": round(now - self._last_output_at, 3),
            "pty_alive": alive,
            "title": self._screen.title,
        }

    async def healthcheck(self) -> bool:
        return self._handle is not None and self._handle.is_alive() and not self._handle.closed

    def _running(self) -> PtyHandle:
        if self._handle is None:
            raise AdapterError("no session was started", "call start_session first")
        return self._handle


def child_environ(overrides: Mapping[str, str] | None) -> dict[str, str]:
    """Ours with the overrides, without what is AtlasBridge's own business."""
    environ = {**os.environ, "TERM": os.environ.get("TERM", "xterm-256color"), **(overrides or {})}
    return {name: value for name, value in environ.items() if not name.startswith(PRIVATE_PREFIX)}


def _screen_of(buffer: bytes, rows: int, cols: int) -> Screen:
    screen = Screen(rows, cols)
    screen.feed(buffer.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    return screen
