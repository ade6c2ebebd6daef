"""Runs an adapter of another package inside a session: `python -m atlasbridge.adapters.stagehand DOOR NAME COMMAND...`.

The session host starts this program on the session's terminal.  It drives the adapter through the frozen interface
alone: output goes to the terminal, detected prompts through DOOR to the host, and a line that arrives, typed by a
person or by the host, is the reply to the open prompt.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import termios
from typing import Any

from atlasbridge.adapters.base import BaseAdapter, PromptEvent, PromptType, Reply, validate_event
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.errors import AdapterError

BUFFER_BYTES = 4096
LOOK_S = 0.25
SOURCE = "its adapter"


class Stagehand:
    def __init__(self, adapter: BaseAdapter, door: str) -> None:
        self._adapter = adapter
        self._door = door
        self._buffer = bytearray()
        self._open: PromptEvent | None = None
        self._session_id = ""

    async def run(self, command: list[str]) -> int:
        self._session_id = await self._adapter.start_session(command)
        await self._adapter.on_start()
        with _silent_terminal():
            looking = asyncio.create_task(self._keep_looking())
            self._listen(asyncio.get_running_loop())
            try:
                async for chunk in self._adapter.read_stream():
                    self._show(chunk)
                    await self._look()
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
        self._tell("resolved", {})
        await self._adapter.terminate_session(self._session_id)
        return 0

    def _show(self, chunk: bytes) -> None:
        self._buffer += chunk
        del self._buffer[:-BUFFER_BYTES]
        data = memoryview(chunk)
        while data:
            data = data[os.write(1, data) :]

    async def _keep_looking(self) -> None:
        """An adapter may need silence to be sure."""
        while True:
            await asyncio.sleep(LOOK_S)
            if await self._adapter.await_input_state():
                await self._look()

    async def _look(self) -> None:
        event = await self._adapter.detect_prompt(bytes(self._buffer)) if self._buffer else None
        if event is None or validate_event(event):
            return
        self._open = event
        self._tell("prompt", _plain(event))

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        async def lines() -> None:
            reader = asyncio.StreamReader()
            await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
            while line := await reader.readline():
                await self._answer(line.decode("utf-8", "replace").rstrip("\r\n"))

        self._listening = loop.create_task(lines())
        loop.add_signal_handler(signal.SIGINT, lambda: loop.create_task(self._stop()))

    async def _stop(self) -> None:
        await self._adapter.terminate_session(self._session_id)

    async def _answer(self, line: str) -> None:
        event, self._open = self._open, None
        if event is None:
            return  # nothing is asked: the interface has no other way to type
        enter = event.prompt_type is PromptType.TYPE_CONFIRM_ENTER or not line
        value, policy = ("\n", "none") if enter else (line, "append")
        nonce = str(event.constraints.get("nonce") or os.urandom(16).hex())
        now = iso(SystemClock().wall())
        self._buffer.clear()
        try:
            await self._adapter.inject_reply(
                Reply(event.prompt_id, event.session_id, value, nonce, "cli:local", now, policy)
            )
        except AdapterError as error:
            self._show(f"\r\natlasbridge: the adapter refused the reply: {error}\r\n".encode())
        self._tell("resolved", {})

    def _tell(self, kind: str, body: dict[str, Any]) -> None:
        line = (
            json.dumps({"m": "structured", "kind": kind, "text": json.dumps(body), "source": SOURCE}).encode() + b"\n"
        )
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(2.0)
            connection.connect(self._door)
            connection.sendall(line)


def _plain(event: PromptEvent) -> dict[str, Any]:
    return {
        "prompt_id": event.prompt_id,
        "prompt_type": str(event.prompt_type),
        "confidence": str(event.confidence),
        "excerpt": event.excerpt,
        "choices": list(event.choices),
        "constraints": {k: v for k, v in event.constraints.items() if isinstance(v, str | int | float | bool)},
    }


@contextlib.contextmanager
def _silent_terminal() -> Any:
    """Lines, without an echo: the adapter's own terminal echoes."""
    try:
        before = termios.tcgetattr(0)
    except termios.error:
        yield
        return
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    silent[1] = before[1] & ~termios.OPOST  # the adapter's terminal has done that already
    termios.tcsetattr(0, termios.TCSANOW, silent)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSANOW, before)


def main(words: list[str]) -> int:
    door, name, *command = words
    try:
        return asyncio.run(Stagehand(AdapterRegistry.get(name)(), door).run(command))
    except AdapterError as error:
        sys.stderr.write(f"atlasbridge: {error}\n")
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
