"""A TCP proxy between a browser and a hub that delays, cuts, and loses answers, as a bad network does."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Coroutine
from typing import Any


class RoughNetwork:
    """`lose`: once a request that contains these bytes has been passed on, its answer is lost and the connection cut.
    `cut_share`: how often a chunk is the last of its connection.  `delay_s`: at most so long for each chunk."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.port = 0
        self.lose = b""
        self.lost = 0
        self.cut_share = 0.0
        self.delay_s = 0.0
        self.cuts = 0
        self._chance = random.Random(7)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        deaf = asyncio.Event()
        ways: list[Coroutine[Any, Any, None]] = [
            self._carry(reader, far_writer, deaf, up=True),
            self._carry(far_reader, writer, deaf, up=False),
        ]
        tasks = [asyncio.create_task(way) for way in ways]
        self._tasks.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
            self._tasks.discard(task)
        for end in (writer, far_writer):
            end.close()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, deaf: asyncio.Event, up: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self._chance.random() * self.delay_s)
                if not up and deaf.is_set():
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()
                if up and self.lose and self.lose in data:
                    deaf.set()
                if self._chance.random() < self.cut_share:
                    self.cuts += 1
                    return


class Impostor:
    """Another program on the page's port: takes every request down, and answers as it was told to."""

    def __init__(self, port: int, answer: bytes = b"{}", status: bytes = b"200 OK") -> None:
        self._port = port
        self._answer = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        self._answer %= (status, len(answer), answer)
        self.received: list[bytes] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                self.received.append(data)
                writer.write(self._answer)
        writer.close()
