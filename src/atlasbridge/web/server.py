"""Listens with uvicorn in the hub's own event loop: on loopback, and on the LAN with TLS if configured.

It installs no signal handlers and no timer: the hub decides when to stop, and an idle page causes no wake-ups.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.home import MAX_SOCKET_PATH
from atlasbridge.core.hub_connection import bind_alone, has_unix_sockets, is_taken
from atlasbridge.core.peer import own_uid, read_peer
from atlasbridge.core.ports import MachineApi
from atlasbridge.core.system import wait_readable
from atlasbridge.web.settings import WebSettings

# Limits new connections before they cost anything. A connection that has sent nothing costs only a socket; TLS starts
# with its first byte. The number of such connections is limited, per address and in total, and so is their time.

log = logging.getLogger(__name__)
GREETING_S = 5.0  # for the first byte, and again for the TLS handshake
MAX_GREETINGS = 64
MAX_PER_ADDRESS = 16
PAUSE_S = 0.2  # after a system error, such as too many open files


class Acceptor:
    def __init__(
        self, sock: socket.socket, protocol: Callable[[], asyncio.Protocol], tls: ssl.SSLContext | None
    ) -> None:
        self._socket = sock
        self._protocol = protocol
        self._tls = tls
        self._greetings: dict[asyncio.Task[None], str] = {}  # in order of arrival
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._accept(), name="web-acceptor")

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
            self._admit(link, str(address[0]) if address else "")

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
        """Pass the connection on to HTTP, or close it."""
        loop = asyncio.get_running_loop()
        try:
            if self._tls is None:
                await loop.connect_accepted_socket(self._protocol, link)
                return
            async with asyncio.timeout(GREETING_S):
                await wait_readable(link)
            await loop.connect_accepted_socket(
                self._protocol, link, ssl=self._tls, ssl_handshake_timeout=GREETING_S, ssl_shutdown_timeout=GREETING_S
            )
        except (OSError, TimeoutError):
            link.close()  # the client left, sent nothing in time, or does not use TLS
        except asyncio.CancelledError:
            link.close()
            raise


UNIX = "unix:"  # prefix of the address of a client at the Unix socket: its process and start time
GRACE_S = 2
PATIENCE_S = 15.0  # for a connection to send a request
MAX_CONNECTIONS = 256


class PatientProtocol(H11Protocol):
    """HTTP with a limit on idle connections: they are closed, and sooner if there are many."""

    _alarm: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        sock = transport.get_extra_info("socket")
        if hasattr(socket, "AF_UNIX") and sock.family == socket.AF_UNIX:
            peer = read_peer(sock)
            if peer.uid != own_uid():
                transport.abort()
            self.client = (f"{UNIX}{peer.pid}:{peer.started}", 0)
        self._since = self.loop.time()
        if len(self.connections) > MAX_CONNECTIONS:
            self._make_room()
        self._alarm = self.loop.call_later(PATIENCE_S, self._look)

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the connection that has been idle for longest: a person's request is sent and answered at once."""
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


class Listener(uvicorn.Server):
    """Serves one listening socket."""

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
        super().__init__(config)
        self._socket = sock
        self._stopped = asyncio.Event()
        self._acceptor: Acceptor | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self.serve(), name="web-listener")
        while not self.started:
            if self._task.done():
                self._task.result()
                raise ChannelError("the web page's server ended at once")
            await asyncio.sleep(0)

    async def close(self) -> None:
        if self._task is not None:
            self.should_exit = True
            self._stopped.set()
            await self._task
        self._socket.close()

    # what uvicorn calls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start like uvicorn, but with our own limit on new connections before TLS."""
        self.servers = []
        self._acceptor = Acceptor(self._socket, self._protocol, self.config.ssl)
        self._acceptor.start()
        self.started = True

    def _protocol(self) -> asyncio.Protocol:
        config = self.config
        return PatientProtocol(config=config, server_state=self.server_state, app_state=self.lifespan.state)

    async def main_loop(self) -> None:
        await self._stopped.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._acceptor is not None:
            await self._acceptor.close()
        await super().shutdown([self._socket])


class PortTaken(ChannelError):
    """Another program listens on the page's port."""


def bind(host: str, port: int) -> socket.socket:
    """Listen only there; port 0 means any free port."""
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


def bind_too(host: str, port: int) -> socket.socket | None:
    """Listen at a second address of this machine; None if it has no such address."""
    if not socket.has_ipv6:
        return None
    try:
        return bind(host, port)
    except PortTaken:
        raise
    except ChannelError:
        return None


def bind_unix(path: Path) -> socket.socket:
    """For tunnels: the peer of a port cannot be traced through an ssh server, but the kernel reports the peer of a Unix
    socket."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
    finally:
        os.umask(before)
    sock.listen(128)
    sock.setblocking(False)
    return sock


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
    """The fingerprint for comparison with the one that the phone shows."""
    whole = Path(cert).read_text("ascii")
    first = whole[whole.index("-----BEGIN") : whole.index("-----END CERTIFICATE-----") + 25]
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest().hex(":").upper()


# Where the page listens: always on loopback, and on the LAN with TLS if configured. Each place keeps its port.

SOCKET = "web.sock"


class Place:
    """`open` is called until it succeeds, because a taken port can become free."""

    def __init__(
        self, name: str, app: ASGIApp, host: str, wanted: int, shown: str, pair: tuple[str, str], also: str = ""
    ) -> None:
        self.name = name
        self.wanted = wanted
        self.port = 0
        self.listener: Listener | None = None
        self._also = also  # the other address of the same host name, so that no other program can listen there
        self._twin: Listener | None = None
        self.fault = ""
        self.fingerprint = fingerprint(pair[0]) if pair[0] else ""
        self._app = app
        self._host = host
        self._shown = shown
        self._pair = pair

    @property
    def url(self) -> str:
        return f"{'https' if self._pair[0] else 'http'}://{self._shown}:{self.port}"

    async def open(self) -> bool:
        if self.listener is not None:
            return True
        try:
            sock = bind(self._host, self.wanted)
        except PortTaken as error:
            self.fault = str(error)
            return False
        self.port = int(sock.getsockname()[1])
        if self._also:
            try:
                other = bind_too(self._also, self.port)
            except PortTaken as error:
                sock.close()
                self.fault = str(error)
                return False
            if other is not None:
                self._twin = Listener(self._app, other, *self._pair)
        self.listener = Listener(self._app, sock, *self._pair)  # before it starts: `close` ends what was cancelled
        for one in (self._twin, self.listener):
            if one is not None:
                await one.start()
        return True

    async def close(self) -> None:
        """Close both at once, so that a slow client at one address does not block the other for the next hub."""
        await asyncio.gather(*(one.close() for one in (self.listener, self._twin) if one is not None))


class KeptPlace(Place):
    """Stores its port for the next start. It chooses a different port than configured only at the very first start,
    when no browser knows the port yet."""

    def __init__(self, app: ASGIApp, configured: int, hub_api: MachineApi) -> None:
        before, _, kept = hub_api.recall("web.place").partition(":")
        self._first = before != str(configured)
        self._configured = configured
        self._hub_api = hub_api
        wanted = configured if self._first else int(kept)
        super().__init__("local", app, "127.0.0.1", wanted, "localhost", ("", ""), also="::1")

    async def open(self) -> bool:
        if self.listener is not None:
            return True
        opened = await super().open()
        if not opened and self._first and not self._hub_api.recall("web.place"):
            self.wanted = 0
            opened = await super().open()
        if opened:
            self._hub_api.remember("web.place", f"{self._configured}:{self.port}")
        return opened


class TunnelPlace(Place):
    """A Unix socket besides the port, for connections through an ssh server: there the kernel reports
    the peer process."""

    def __init__(self, app: ASGIApp, path: Path) -> None:
        super().__init__("tunnel", app, "", 0, "", ("", ""))
        self._path = path

    async def open(self) -> bool:
        if self.listener is None:
            self.listener = Listener(self._app, bind_unix(self._path))
            await self.listener.start()
        return True

    async def close(self) -> None:
        await super().close()
        self._path.unlink(missing_ok=True)


def own_places(settings: WebSettings, hub_api: MachineApi, app: ASGIApp) -> list[Place]:
    places: list[Place] = [KeptPlace(app, settings.port, hub_api)]
    if has_unix_sockets() and len(os.fsencode(hub_api.home / SOCKET)) <= MAX_SOCKET_PATH:
        places.append(TunnelPlace(app, hub_api.home / SOCKET))
    if settings.lan:
        names = settings.lan_names or own_names()
        pair = (settings.cert, settings.key) if settings.cert else self_signed(hub_api.home, names)
        addresses = [name for name in names if name.replace(".", "").isdigit()] or list(names)
        places.append(Place("lan", app, settings.lan_host, settings.lan_port, addresses[0], pair))
    return places
