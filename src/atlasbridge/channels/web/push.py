"""Web Push: who wants to be told, and what they are told.  Sending is left to `push_send`, a process of its own.

The sender is separate because its libraries (the `push` extra) weigh as much as the whole hub, for a second of work.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.own_python import own_environ, own_python
from atlasbridge.core.ports import Desk

log = logging.getLogger(__name__)
MAX_SUBSCRIPTIONS = 16
SEND_TIMEOUT_S = 60.0


class Push:
    def __init__(self, desk: Desk, settings: WebSettings) -> None:
        self._desk = desk
        self._settings = settings
        self._subscriptions: list[dict[str, Any]] = json.loads(desk.recall("web.push", "[]"))
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def available(self) -> bool:
        return find_spec("pywebpush") is not None

    @property
    def count(self) -> int:
        return len(self._subscriptions)

    def allows(self, endpoint: str) -> bool:
        """Only known push services are ever posted to: an endpoint is a page's word."""
        try:
            parts = urlsplit(endpoint)
            host, place = (parts.hostname or "").lower(), parts.netloc.lower()
        except ValueError:
            return False
        if place in self._settings.push_hosts and host in ("127.0.0.1", "localhost"):
            return True  # a test's own service, named with its port in the configuration
        known = any(
            host == name or (name.startswith(".") and host.endswith(name)) for name in self._settings.push_hosts
        )
        return parts.scheme == "https" and "@" not in place and parts.port in (None, 443) and known

    async def public_key(self) -> str:
        """The server's public key for PushManager.subscribe; "" without the extra."""
        if not self.available:
            return ""
        answer = await self._run({"do": "key"})
        return str(answer.get("public_key", ""))

    def subscribe(self, subscription: dict[str, Any]) -> None:
        self.unsubscribe(subscription["endpoint"])
        self._subscriptions = [*self._subscriptions, subscription][-MAX_SUBSCRIPTIONS:]
        self._save()

    def unsubscribe(self, endpoint: str) -> bool:
        kept = [known for known in self._subscriptions if known["endpoint"] != endpoint]
        changed = len(kept) != len(self._subscriptions)
        self._subscriptions = kept
        if changed:
            self._save()
        return changed

    def tell(self, message: dict[str, Any]) -> None:
        """Send in the background.  A push service that is away never holds anything up."""
        if self._subscriptions and self.available:
            task = asyncio.create_task(self._send(message), name="web-push")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send(self, message: dict[str, Any]) -> None:
        order = {"do": "send", "message": message, "to": self._subscriptions, "contact": self._settings.push_contact}
        answer = await self._run(order)
        for endpoint in answer.get("gone", []):
            self.unsubscribe(endpoint)
        if answer.get("failed"):
            log.warning("web push reached %s of %s", answer.get("sent"), len(order["to"]))

    async def _run(self, order: dict[str, Any]) -> dict[str, Any]:
        order["key_file"] = str(Path(self._desk.home) / "web-push.pem")
        pipe = asyncio.subprocess.PIPE
        module = "atlasbridge.channels.web.push_send"
        process = await asyncio.create_subprocess_exec(
            *own_python(module), env=own_environ(os.environ), stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(json.dumps(order).encode()), SEND_TIMEOUT_S)
        except TimeoutError:
            log.warning("web push took too long and was given up")
            return {}
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return dict(json.loads(output)) if output else {}

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _save(self) -> None:
        self._desk.remember("web.push", json.dumps(self._subscriptions))
