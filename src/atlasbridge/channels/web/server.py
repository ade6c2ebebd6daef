"""Listens: uvicorn inside the hub's own event loop, on loopback, and on the LAN with TLS when asked to.

It installs no signal handlers and has no timer: the hub decides when to stop, and an idle page costs no wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from atlasbridge.channels.web.acceptor import Acceptor
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.own_port import bind_alone, is_taken
from atlasbridge.core.system import OWN_FILE

GRACE_S = 2
PATIENCE_S = 15.0  # for a connection to say what it wants
MAX_CONNECTIONS = 256


class PatientProtocol(H11Protocol):
    """HTTP that does not wait for ever: a connection that asks nothing is closed, and sooner when there are many."""

    _alarm: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()
        self._alarm = self.loop.call_later(PATIENCE_S, self._look)

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """The one that has asked nothing for longest goes: a person's request is asked and answered at once."""
        idle = [peer for peer in self.connections if isinstance(peer, PatientProtocol) and peer.idle]
        min(idle, key=lambda peer: peer._since, default=self).transport.abort()

    def _look(self) -> None:
        if self.idle:
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
        self._doors: list[Acceptor] = []

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does, but through a door of our own: it counts who comes before TLS costs anything."""
        self.servers = []
        self._doors = [Acceptor(sock, self._protocol, self.config.ssl) for sock in sockets or []]
        for door in self._doors:
            door.start()
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        config = self.config
        return PatientProtocol(config=config, server_state=self.server_state, app_state=self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self._doors:
            await door.close()
        await super().shutdown(sockets=sockets)

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


class PortTaken(ChannelError):
    """Another program listens where the page should."""


def bind(host: str, port: int) -> socket.socket:
    """Listen there and nowhere else; 0: on any free port."""
    try:
        sock = bind_alone(host, port)
    except OSError as error:
        if is_taken(error):
            raise PortTaken(
                f"another program listens on port {port}, where the page should be",
                "find it with: ss -ltnp; or choose another port in [channels.web]",
            ) from error
        raise ChannelError(
            f"the web page cannot listen on {host}:{port}: {error.strerror}",
            "check [channels.web] in the configuration",
        ) from error
    sock.listen(128)
    sock.setblocking(False)
    return sock


def write_private(path: Path, record: dict[str, Any]) -> None:
    """For this user alone, and never half written."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600), "w") as file:
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
        command += ["-addext", "extendedKeyUsage=serverAuth"]  # phones refuse a certificate without it
        try:
            subprocess.run([*command, "-keyout", key, "-out", cert], check=True, capture_output=True, umask=0o077)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ChannelError(
                "no certificate for the page on the LAN could be made", "install openssl, or set web.cert and web.key"
            ) from error
    return str(cert), str(key)


def fingerprint(cert: str) -> str:
    """What a careful person compares with what the phone shows."""
    whole = Path(cert).read_text("ascii")
    first = whole[whole.index("-----BEGIN") : whole.index("-----END CERTIFICATE-----") + 25]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest().hex(":").upper()
