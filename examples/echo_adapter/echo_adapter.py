"""An adapter written from the Adapter Interface Specification alone: ptyprocess, a buffer, three patterns.

Nothing of AtlasBridge is imported but what the document names.  Installed as a package (see pyproject.toml beside this
file), `atlasbridge run echo-agent` uses it.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from ptyprocess import PtyProcess

from atlasbridge.adapters.base import (
    AdapterInjectionError,
    AdapterStartError,
    BaseAdapter,
    Confidence,
    PromptEvent,
    PromptType,
    ReplayAttackError,
    Reply,
    make_idempotency_key,
    reply_bytes,
)
from atlasbridge.adapters.registry import AdapterRegistry

ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
PATTERNS = [
    (re.compile(r"[\[(]y(?:es)?/n(?:o)?[\])][:? ]*$", re.I), PromptType.TYPE_YES_NO, ["Yes", "No"]),
    (re.compile(r"press enter[^\n]*$", re.I), PromptType.TYPE_CONFIRM_ENTER, []),
    (re.compile(r"[?:>] $"), PromptType.TYPE_FREE_TEXT, []),
]


@AdapterRegistry.register("echo-agent")
class EchoAdapter(BaseAdapter):
    TOOL_NAME = "echo-agent"
    STUCK_TIMEOUT_SECONDS = 2.0

    def __init__(self) -> None:
        self._proc: PtyProcess | None = None
        self._session_id = ""
        self._started = self._last_output_time = time.monotonic()
        self._seen: set[str] = set()
        self._nonces: dict[str, str] = {}
        self._used: set[str] = set()
        self._count = 0
        self._injecting = False

    async def start_session(self, command: list[str], env: dict[str, str] | None = None) -> str:
        child_env = {k: v for k, v in {**os.environ, **(env or {})}.items() if not k.startswith("ATLASBRIDGE_")}
        try:
            self._proc = PtyProcess.spawn(command, env=child_env, dimensions=(24, 80))
        except (OSError, ValueError) as error:
            raise AdapterStartError(str(error)) from error
        self._session_id = str(uuid.uuid4())
        self._started = self._last_output_time = time.monotonic()
        return self._session_id

    async def read_stream(self) -> AsyncIterator[bytes]:
        assert self._proc is not None
        loop = asyncio.get_running_loop()
        while True:
            ready = asyncio.Event()
            loop.add_reader(self._proc.fd, ready.set)
            try:
                await ready.wait()
            finally:
                loop.remove_reader(self._proc.fd)
            try:
                chunk = os.read(self._proc.fd, 1024)
            except OSError:
                return
            if not chunk:
                return
            self._last_output_time = time.monotonic()
            yield chunk

    async def detect_prompt(self, buffer: bytes) -> PromptEvent | None:
        text = ESCAPES.sub(b"", buffer[-4096:]).decode("utf-8", "replace").replace("\r", "")
        last = text.rpartition("\n")[2]
        for pattern, kind, choices in PATTERNS:
            if last.strip() and pattern.search(last):
                return self._event(kind, choices, last, buffer)
        return None

    def _event(self, kind: PromptType, choices: list[str], line: str, buffer: bytes) -> PromptEvent | None:
        excerpt = line.strip()[:200]
        key = make_idempotency_key(self._session_id, excerpt)
        if key in self._seen:
            return None
        self._seen.add(key)
        self._count += 1
        event = PromptEvent(
            prompt_id=str(uuid.uuid4()),
            session_id=self._session_id,
            prompt_type=kind,
            confidence=Confidence.HIGH,
            excerpt=excerpt,
            choices=list(choices),
            constraints={"max_length": 200, "nonce": secrets.token_hex(16)},
            idempotency_key=key,
            timestamp=datetime.now(UTC).isoformat(),
            raw_bytes=buffer,
        )
        self._nonces[event.prompt_id] = event.constraints["nonce"]
        return event

    async def await_input_state(self) -> bool:
        return await self.healthcheck() and time.monotonic() - self._last_output_time >= self.STUCK_TIMEOUT_SECONDS

    async def inject_reply(self, reply: Reply) -> None:
        if reply.session_id != self._session_id:
            raise AdapterInjectionError("the reply belongs to another session")
        if reply.nonce in self._used or self._nonces.get(reply.prompt_id) != reply.nonce:
            raise ReplayAttackError("the nonce is wrong or was used before")
        if self._proc is None or not self._proc.isalive():
            raise AdapterInjectionError("the tool has ended")
        self._used.add(reply.nonce)
        self._injecting = True
        try:
            self._proc.write(reply_bytes(reply.value, reply.newline_policy))
        except OSError as error:
            raise AdapterInjectionError(str(error)) from error
        finally:
            self._injecting = False
        self._last_output_time = time.monotonic()

    async def terminate_session(self, session_id: str) -> None:
        if session_id != self._session_id or self._proc is None:
            return
        self._proc.kill(15)
        give_up = time.monotonic() + 3
        while self._proc.isalive() and time.monotonic() < give_up:
            await asyncio.sleep(0.02)
        self._proc.close(force=True)

    async def snapshot_context(self) -> dict[str, Any]:
        alive = await self.healthcheck()
        now = time.monotonic()
        return {
            "session_id": self._session_id,
            "tool": self.TOOL_NAME,
            "pid": self._proc.pid if self._proc else None,
            "state": ("injecting" if self._injecting else "running") if alive else "done",
            "uptime_seconds": now - self._started,
            "prompt_count": self._count,
            "last_output_ago_seconds": now - self._last_output_time,
            "pty_alive": alive,
        }

    async def healthcheck(self) -> bool:
        return self._proc is not None and not self._proc.closed and self._proc.isalive()
