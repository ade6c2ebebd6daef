"""Web Push: which browsers want to be told, and which services may be posted to.

A subscription belongs to a login and ends with it.  What is said stands in `push_text.py`; sending is `push_send.py`'s.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from atlasbridge.channels.web.push_send import Message, PushSender, hushed
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.machine import OPEN

log = logging.getLogger(__name__)
MAX_SUBSCRIPTIONS = 16
_PLAIN = re.compile(r"[\x21-\x7e]+")
_LABELS = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")


def is_known_service(endpoint: str, hosts: tuple[str, ...]) -> bool:
    """Whether this address, read as the sender reads it, leads to one of `hosts`: it is a page's word, no more."""
    from httpx import URL, InvalidURL

    if not _PLAIN.fullmatch(endpoint) or "\\" in endpoint:
        return False
    try:
        url = URL(endpoint)
        scheme, host, port = url.scheme, url.host.lower(), url.port
    except (InvalidURL, ValueError):
        return False
    if url.userinfo or "@" in url.netloc.decode("ascii", "replace") or not _LABELS.fullmatch(host):
        return False
    if f"{host}:{port}" in hosts and host in ("127.0.0.1", "localhost"):
        return scheme in ("http", "https")  # a test's own service, named with its port in the configuration
    known = any(host == name or (name.startswith(".") and host.endswith(name)) for name in hosts)
    return scheme == "https" and port in (None, 443) and known


class Push:
    """`name_of(login_id)`: how the browser with that login is called."""

    def __init__(self, desk: Desk, clock: Clock, settings: WebSettings, name_of: Callable[[str], str]) -> None:
        self._desk = desk
        self._name_of = name_of
        self._held: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._settings = settings
        self._subscriptions: list[dict[str, Any]] = [
            known for known in json.loads(desk.recall("web.push", "[]")) if known.get("login_id")
        ]
        key_file = Path(desk.home) / "web-push.pem"
        self._sender = PushSender(clock, key_file, settings.push_contact, self.unsubscribe)

    @property
    def available(self) -> bool:
        return all(find_spec(name) is not None for name in ("http_ece", "py_vapid"))

    @property
    def count(self) -> int:
        return len(self._subscriptions)

    def allows(self, endpoint: str) -> bool:
        return is_known_service(endpoint, self._settings.push_hosts)

    def public_key(self) -> str:
        """The server's public key for PushManager.subscribe; "" without the extra."""
        return self._sender.public_key() if self.available else ""

    def subscribe(self, login_id: str, subscription: dict[str, Any]) -> None:
        self.unsubscribe(subscription["endpoint"])
        self._subscriptions = [*self._subscriptions, {**subscription, "login_id": login_id}][-MAX_SUBSCRIPTIONS:]
        self._save()

    def unsubscribe(self, endpoint: str, login_id: str = "") -> bool:
        """`login_id`: only if it is this login's own."""
        gone = [
            known
            for known in self._subscriptions
            if known["endpoint"] == endpoint and login_id in ("", known["login_id"])
        ]
        return self._remove(gone)

    def end(self, login_id: str) -> None:
        """A login is over, and so is what it subscribed to."""
        self._remove([known for known in self._subscriptions if known["login_id"] == login_id])

    def _remove(self, gone: list[dict[str, Any]]) -> bool:
        if not gone:
            return False
        self._subscriptions = [known for known in self._subscriptions if known not in gone]
        for known in gone:
            self._sender.forget(known["endpoint"])
        self._save()
        return True

    def tell(self, message: Message) -> None:
        """Handed over at once and sent in the background: a push service that is away never holds anything up.

        Who types at the session's terminal needs no push yet: it is looked at again, and sent if it still waits.
        """
        if not self._subscriptions or not self.available:
            return
        for subscription in self._subscriptions:
            self._offer(subscription["endpoint"], message)

    def _offer(self, endpoint: str, message: Message) -> None:
        known = next((one for one in self._subscriptions if one["endpoint"] == endpoint), None)
        self._held.pop((endpoint, message.tag), None)
        if known is None or not self._waits(message.tag):
            return
        hold_s, silent = self._desk.aside(message.tag, f"web:{self._name_of(known['login_id'])}")
        if hold_s > 0:
            later = asyncio.get_running_loop().call_later(hold_s, self._offer, endpoint, message)
            self._held[endpoint, message.tag] = later
            return
        self._sender.put(known, hushed(message) if silent else message)

    def _waits(self, prompt_id: str) -> bool:
        record = self._desk.prompt(prompt_id)
        return record is not None and record.state in OPEN

    def settle(self, message: Message) -> None:
        """Take back what was said under the same tag, where it was said."""
        for key in [key for key in self._held if key[1] == message.tag]:
            self._held.pop(key).cancel()
        for subscription in self._subscriptions:
            self._sender.settle(subscription, message)

    async def close(self) -> None:
        for later in self._held.values():
            later.cancel()
        await self._sender.close()

    def _save(self) -> None:
        self._desk.remember("web.push", json.dumps(self._subscriptions))
