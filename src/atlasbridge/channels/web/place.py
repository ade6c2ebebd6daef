"""Where the page listens: on loopback always, on the LAN with TLS when asked to.  Each place keeps its one port."""

from __future__ import annotations

from starlette.types import ASGIApp

from atlasbridge.channels.web.server import Listener, PortTaken, bind, fingerprint, own_names, self_signed
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.ports import Desk


class Place:
    """`open` is called until it succeeds: a port that another program has taken may become free."""

    def __init__(self, name: str, app: ASGIApp, host: str, wanted: int, shown: str, pair: tuple[str, str]) -> None:
        self.name = name
        self.wanted = wanted
        self.port = 0
        self.listener: Listener | None = None
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
        listener = Listener(self._app, sock, *self._pair)
        await listener.start()
        self.listener = listener
        return True

    async def close(self) -> None:
        if self.listener is not None:
            await self.listener.close()


class KeptPlace(Place):
    """Remembers its port for the next start.  Only at the very first start, when no browser can know it yet, may it
    choose another one than was configured."""

    def __init__(self, app: ASGIApp, configured: int, desk: Desk) -> None:
        before, _, kept = desk.recall("web.place").partition(":")
        self._first = before != str(configured)
        self._configured = configured
        self._desk = desk
        super().__init__("local", app, "127.0.0.1", configured if self._first else int(kept), "127.0.0.1", ("", ""))

    async def open(self) -> bool:
        if self.listener is not None:
            return True
        opened = await super().open()
        if not opened and self._first and not self._desk.recall("web.place"):
            self.wanted = 0
            opened = await super().open()
        if opened:
            self._desk.remember("web.place", f"{self._configured}:{self.port}")
        return opened


def own_places(settings: WebSettings, desk: Desk, app: ASGIApp) -> list[Place]:
    places: list[Place] = [KeptPlace(app, settings.port, desk)]
    if settings.lan:
        names = settings.lan_names or own_names()
        pair = (settings.cert, settings.key) if settings.cert else self_signed(desk.home, names)
        addresses = [name for name in names if name.replace(".", "").isdigit()] or list(names)
        places.append(Place("lan", app, settings.lan_host, settings.lan_port, addresses[0], pair))
    return places
