"""How a command of a person's speaks to the page's API: by the address in HOME/web.json, with a key that the hub gives
to commands which no session's tool has started.  Stdlib only."""

from __future__ import annotations

import http.client
import json
import select
from pathlib import Path
from typing import Any

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.daemon.starter import ensure_hub
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home

PATIENCE_S = 10.0


class PageClient:
    def __init__(self, home: Home) -> None:
        """Starts the hub where none runs, and waits until its page listens."""
        ensure_hub(home)
        self._record = _read_record(home.root / "web.json")
        with HubClient(home) as hub:
            self._key = str(hub.ask("page")["key"])

    @property
    def url(self) -> str:
        return str(self._record["url"])

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """One request; a refusal is raised with its sentence."""
        link = http.client.HTTPConnection("127.0.0.1", int(self._record["port"]), timeout=PATIENCE_S)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        try:
            link.request(method, f"/api/v1{path}", json.dumps(body) if body is not None else None, headers)
            response = link.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise AtlasBridgeError(f"the web page does not answer: {error}", "see: atlasbridge hub status") from error
        finally:
            link.close()
        if response.status != 200:
            raise AtlasBridgeError(str(answer.get("message", f"refused with status {response.status}")))
        return answer


def _read_record(path: Path) -> dict[str, Any]:
    clock = SystemClock()
    deadline = clock.now() + PATIENCE_S
    while True:
        try:
            record: dict[str, Any] = json.loads(path.read_text("utf-8"))
            return record
        except (OSError, ValueError):
            if clock.now() > deadline:
                raise AtlasBridgeError(
                    "the web page is not being served", "check [channels.web] with: atlasbridge config show"
                ) from None
        select.select([], [], [], 0.05)
