"""How a command of this user asks something of the page: over the hub's own socket, which knows who asks."""

from __future__ import annotations

import select
from typing import Any

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.daemon.starter import ensure_hub
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home

PATIENCE_S = 10.0


class PageClient:
    def __init__(self, home: Home) -> None:
        """Starts the hub where none runs."""
        ensure_hub(home)
        self._home = home

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """One request; a refusal is raised with its sentence.  A hub that has just started is given a moment."""
        clock = SystemClock()
        deadline = clock.now() + PATIENCE_S
        with HubClient(self._home) as hub:
            while True:
                answer = hub.request("page", do=do, fields=fields)
                if answer.get("ok"):
                    return answer
                if answer.get("reason") != "unavailable" or clock.now() > deadline:
                    raise AtlasBridgeError(str(answer.get("message", "refused")), str(answer.get("hint", "")))
                select.select([], [], [], 0.05)
