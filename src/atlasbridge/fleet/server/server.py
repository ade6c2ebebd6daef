"""`atlasbridge fleet serve`: opens the database, looks at its schema, listens, and ends in order on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import uvicorn

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.fleet_wire import LONGEST_MESSAGE
from atlasbridge.core.hub_connection import bind_alone
from atlasbridge.core.routing.channel_worker import ReadPlan
from atlasbridge.core.values import frozen
from atlasbridge.fleet.server.application import build_application
from atlasbridge.fleet.server.chats.directory import load_directory
from atlasbridge.fleet.server.chats.service import Chats
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.migrations_loader import migrate

if TYPE_CHECKING:
    from atlasbridge.fleet.server.oidc import OidcSettings

log = logging.getLogger(__name__)


SERVING = "atlasbridge fleet serve"


@frozen
class Address:
    """Where to listen, and under which address the server is known."""

    host: str = "127.0.0.1"
    port: int = 8460
    url: str = ""
    cert: str = ""
    key: str = ""
    metrics_token: str = ""
    connections: int = 10
    keep_s: float = 90 * 86_400.0  # what has ended
    oidc: OidcSettings | None = None  # where people log in, besides by link

    @property
    def known_as(self) -> str:
        return self.url or f"{'https' if self.cert else 'http'}://{self.host}:{self.port}"


def refuse_open_sockets(place: Address) -> None:
    """Tokens and answers never cross a network in the clear."""
    if place.host not in ("127.0.0.1", "::1", "localhost") and not place.cert and not place.url.startswith("https:"):
        raise ConfigError(
            f"listening on {place.host} without TLS would send tokens in the clear",
            "give --cert and --key, or put a proxy with TLS before it and say --url https://…",
        )


def run(serving: Coroutine[Any, Any, None]) -> None:
    """With uvloop, where there is one: a request takes a third of the processor."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def serve(
    database_url: str, place: Address, ready: Callable[[str], None], read_plan: ReadPlan | None = None
) -> None:
    """`read_plan`: which chats this process may carry; None: it carries none."""
    refuse_open_sockets(place)
    database = Database(database_url, most=place.connections, name=SERVING)
    await database.open()
    try:
        await database.check_session()
        await migrate(database)
        listener = listen_at(place)
        place = Address(
            **{name: getattr(place, name) for name in Address.__match_args__} | {"port": listener.getsockname()[1]}
        )
        context = ServerContext(database, place.known_as, place.keep_s)
        await context.open()
        if read_plan is not None:
            read_plan((await load_directory(database)).by_channel())  # what is wrong with it is said now
            context.chats = Chats(context, read_plan)
        working = asyncio.create_task(context.run(), name="office")
        server = FleetServer(server_settings(context, place))
        stop_on_signals(server)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="listener")
        ready(place.known_as)
        done, _ = await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        working.cancel()
        await asyncio.gather(working, serving, return_exceptions=True)
        for task in done:
            if not task.cancelled():
                task.result()
    finally:
        await database.close()


def listen_at(place: Address) -> socket.socket:
    try:
        return bind_alone(place.host, place.port)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {place.host}:{place.port}: {error.strerror}", "choose another --port"
        ) from None


def server_settings(context: ServerContext, place: Address) -> uvicorn.Config:
    return uvicorn.Config(
        build_application(context, place.metrics_token, place.oidc),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="wsproto",
        ws_max_size=LONGEST_MESSAGE,
        timeout_graceful_shutdown=2,
        proxy_headers=False,
        ssl_certfile=place.cert or None,
        ssl_keyfile=place.key or None,
    )


class FleetServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Ours: see `stop_on_signals`."""
        yield


def stop_on_signals(server: uvicorn.Server) -> None:
    def stop() -> None:
        server.force_exit = server.should_exit  # a second one does not wait
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
