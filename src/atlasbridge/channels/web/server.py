"""Listens: uvicorn inside the hub's own event loop, on loopback, and on the LAN with TLS when asked to.

It installs no signal handlers and has no timer: the hub decides when to stop, and an idle page costs no wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from atlasbridge.core.errors import ChannelError

GRACE_S = 2
PATIENCE_S = 15.0  # for a connection to say what it wants
MAX_CONNECTIONS = 256


class PatientProtocol(H11Protocol):
    """HTTP that does not wait for ever: a connection that asks nothing is closed, and so is one too many."""

    _alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()
        else:
            self._alarm = self.loop.call_later(PATIENCE_S, self._look)

    def _look(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
        else:
            self._alarm = self.loop.call_later(PATIENCE_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        super().connection_lost(exc)


class HubServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stopped = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self._stopped.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._stopped.set()


class Listener:
    """One listening socket and the task that serves it."""

    def __init__(self, app: ASGIApp, sock: socket.socket, cert: str = "", key: str = "") -> None:
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
            ssl_certfile=cert or None,
            ssl_keyfile=key or None,
        )
        self._server = HubServer(config)
        self._socket = sock
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="web-listener")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise ChannelError("the web page's server ended at once")
            await asyncio.sleep(0)

    async def close(self) -> None:
        if self._task is None:
            self._socket.close()
            return
        self._server.stop()
        await self._task


def bind(host: str, *ports: int) -> socket.socket:
    """Listen on the first of `ports` that is free, else on any free one."""
    for port in (*filter(None, ports), 0):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(128)
        except OSError:
            sock.close()
            continue
        sock.setblocking(False)
        return sock
    raise ChannelError(f"the web page cannot listen on {host}", "check web.lan_host in the configuration")


def write_private(path: Path, record: dict[str, Any]) -> None:
    """For this user alone, and never half written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(record, file)
    os.replace(draft, path)


def own_names() -> tuple[str, ...]:
    """This machine's names and its address towards the network (no packet is sent to find it)."""
    names = {socket.gethostname(), f"{socket.gethostname()}.local"}
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        names.add(str(probe.getsockname()[0]))
    return tuple(sorted(names))


def self_signed(home: Path, names: tuple[str, ...]) -> tuple[str, str]:
    """A certificate for the LAN listener, made once by openssl."""
    cert, key = home / "web-cert.pem", home / "web-key.pem"
    if not (cert.exists() and key.exists()):
        alternatives = ",".join(f"{'IP' if name.replace('.', '').isdigit() else 'DNS'}:{name}" for name in names)
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        command += ["-days", "825", "-subj", "/CN=AtlasBridge", "-addext", f"subjectAltName={alternatives}"]
        try:
            subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True, umask=0o077)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ChannelError(
                "no certificate for the page on the LAN could be made", "install openssl, or set web.cert and web.key"
            ) from error
    return str(cert), str(key)
