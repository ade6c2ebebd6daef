"""The door in front of a listening socket: who connects is counted before anything is spent on it.

A connection that has not said anything yet costs a socket and nothing else; TLS begins when its first byte is there.
How many may stand in the door is bounded, per address and in all, and so is their time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable

log = logging.getLogger(__name__)
GREETING_S = 5.0  # for the first byte, and again for the handshake
MAX_GREETINGS = 64
MAX_PER_ADDRESS = 16
PAUSE_S = 0.2  # after a fault of the system, such as too many open files


class Acceptor:
    def __init__(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        self._socket = sock
        self._protocol = protocol
        self._tls = tls
        self._greetings: dict[asyncio.Task[None], str] = {}  # in the order in which they came
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._accept(), name="web-door")

    async def close(self) -> None:
        tasks = [task for task in (self._task, *self._greetings) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                link, address = await loop.sock_accept(self._socket)
            except OSError as error:
                log.warning("the page cannot take a connection: %s", error)
                await asyncio.sleep(PAUSE_S)
                continue
            self._admit(link, str(address[0]))

    def _admit(self, link: socket.socket, address: str) -> None:
        if self._tls is not None and list(self._greetings.values()).count(address) >= MAX_PER_ADDRESS:
            link.close()
            return
        if len(self._greetings) >= MAX_GREETINGS:
            next(iter(self._greetings)).cancel()
        task = asyncio.create_task(self._greet(link), name="web-greeting")
        self._greetings[task] = address
        task.add_done_callback(lambda done: self._greetings.pop(done, None))

    async def _greet(self, link: socket.socket) -> None:
        """Hand the connection over to HTTP, or close it."""
        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(self._protocol, link)
                return
            async with asyncio.timeout(GREETING_S):
                await _first_byte(link)
            await loop.connect_accepted_socket(
                self._protocol, link, ssl=self._tls, ssl_handshake_timeout=GREETING_S, ssl_shutdown_timeout=GREETING_S
            )
        except (OSError, TimeoutError):
            link.close()  # it went, said nothing in time, or does not speak TLS
        except asyncio.CancelledError:
            link.close()
            raise


async def _first_byte(link: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(link, came.set)
    try:
        await came.wait()
    finally:
        with contextlib.suppress(ValueError, OSError):  # already closed
            loop.remove_reader(link)
