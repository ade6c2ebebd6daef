"""A `FakeHub` in a thread of its own, for tests that drive a browser: the browser blocks, the page must not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.support.fake_hub_api import FakeHub

from atlasbridge.core.prompt.model import Prompt, PromptRecord
from atlasbridge.core.session.model import SessionRecord

T = TypeVar("T")


class ThreadedHub:
    token = ""  # of the HTTP API, where a test has made one

    def __init__(self, home: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hub", daemon=True)
        self._thread.start()
        self.hub: FakeHub = self.run(self._make(home))

    async def _make(self, home: Path) -> FakeHub:
        hub = FakeHub(home)
        await hub.start()
        return hub

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the hub's own loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    @property
    def hub_api(self) -> Any:
        return self.hub.hub_api

    @property
    def url(self) -> str:
        return self.hub.channel.url

    def link(self, scope: str = "admin") -> str:
        async def make() -> str:
            return self.hub.channel.site.access.make_link("page", scope)

        return f"{self.url}/#link={self.run(make())}"

    def add_session(self, **fields: Any) -> SessionRecord:
        async def add() -> SessionRecord:
            return self.hub.hub_api.add_session(**fields)

        return self.run(add())

    def ask(self, prompt: Prompt, session: SessionRecord | None = None, ttl_s: float = 600.0) -> PromptRecord:
        return self.run(self.hub.raise_prompt(session or self.add_session(), prompt, ttl_s))

    def show(self, session_id: str, lines: list[Any]) -> None:
        async def draw() -> None:
            self.hub.hub_api.show(session_id, lines)

        self.run(draw())

    def stop(self) -> None:
        self.run(self.hub.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
