"""Sends Web Push from inside the hub: one lane per browser, one message of it on its way, few waiting.

Many prompts at once become one message that counts them.  Encryption comes with the `push` extra and is imported when
the first message is sent.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.system import OWN_FILE

if TYPE_CHECKING:
    import httpx
    from py_vapid import Vapid02

log = logging.getLogger(__name__)
TIMEOUT_S = 10.0
RETRIES_S = (2.0, 8.0, 30.0)
LANE_LIMIT = 4  # questions waiting in one lane before they become one message
REMEMBERED = 256  # tags a lane has said, for taking them back
MANY = "atlasbridge-many"


@dataclass(frozen=True, slots=True)
class Message:
    """`tag` names what it is about: a later message of the same tag takes its place, here and on the phone."""

    tag: str
    body: dict[str, Any]
    until: float  # steady time: nobody wants to hear of it afterwards
    urgent: bool = True
    count: int = 1


def hushed(message: Message) -> Message:
    """The same without a sound: for somebody who sleeps, or while something more important waits."""
    return replace(message, urgent=False, body={**message.body, "silent": True})


@dataclass(slots=True)
class Lane:
    subscription: dict[str, Any]
    waiting: dict[str, Message] = field(default_factory=dict)
    said: dict[str, None] = field(default_factory=dict)
    on_its_way: str = ""  # a tag: whatever is settled meanwhile may have been shown
    task: asyncio.Task[None] | None = None

    def put(self, message: Message) -> None:
        self.waiting[message.tag] = message
        asked = [known for known in self.waiting.values() if known.body.get("kind") == "ask"]
        if len(asked) > LANE_LIMIT:
            for known in asked:
                del self.waiting[known.tag]
            self.waiting[MANY] = _together(asked)


def _together(messages: list[Message]) -> Message:
    count = sum(message.count for message in messages)
    lines = [str(message.body["body"]).split("\n")[0][:80] for message in messages if message.tag != MANY]
    body = {
        "kind": "ask",
        "tag": MANY,
        "title": f"{count} programs are waiting for you",
        "body": "\n".join(lines[-4:]),
        "url": "/#prompts",
        "actions": [],
        "count": count,
    }
    return Message(MANY, body, max(message.until for message in messages), any(m.urgent for m in messages), count)


class PushSender:
    """`on_gone(endpoint)` is called when a push service does not know a subscription any more."""

    def __init__(self, clock: Clock, key_file: Path, contact: str, on_gone: Callable[[str], Any]) -> None:
        self._clock = clock
        self._key_file = key_file
        self._contact = contact
        self._on_gone = on_gone
        self._lanes: dict[str, Lane] = {}
        self._client: httpx.AsyncClient | None = None
        self._vapid: Vapid02 | None = None

    def put(self, subscription: dict[str, Any], message: Message) -> None:
        lane = self._lanes.setdefault(subscription["endpoint"], Lane(subscription))
        lane.put(message)
        if lane.task is None or lane.task.done():
            lane.task = asyncio.create_task(self._drain(lane), name="web-push")

    def settle(self, subscription: dict[str, Any], message: Message) -> None:
        lane = self._lanes.get(subscription["endpoint"])
        if lane is None:
            return
        many = lane.waiting.get(MANY)
        if lane.waiting.pop(message.tag, None) is None and message.tag in (*lane.said, lane.on_its_way):
            self.put(subscription, message)
        elif many is not None and many.count > 1:
            count = many.count - 1
            title = f"{count} programs are waiting for you"
            lane.waiting[MANY] = replace(many, count=count, body={**many.body, "title": title})

    def forget(self, endpoint: str) -> None:
        lane = self._lanes.pop(endpoint, None)
        if lane is not None and lane.task is not None:
            lane.task.cancel()

    async def close(self) -> None:
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()

    async def _drain(self, lane: Lane) -> None:
        while lane.waiting:
            message = lane.waiting.pop(next(iter(lane.waiting)))
            lane.on_its_way = message.tag
            taken = await self._deliver(lane, message)
            lane.on_its_way = ""
            if taken:
                lane.said[message.tag] = None
                while len(lane.said) > REMEMBERED:
                    del lane.said[next(iter(lane.said))]

    async def _deliver(self, lane: Lane, message: Message) -> bool:
        """True: the service took it.  Tried again a few times, as long as somebody may want to hear of it."""
        for pause_s in (*RETRIES_S, 0.0):
            if self._clock.now() >= message.until:
                return False
            try:
                status = await self._post(lane.subscription, message)
            except OSError as error:
                log.warning("a push service could not be reached: %s", error)
                status = 503
            if status in (404, 410):
                self._on_gone(lane.subscription["endpoint"])
                return False
            if status < 300:
                return True
            if status not in (429,) and status < 500:
                log.warning("a push service refused a message with status %s", status)
                return False
            await asyncio.sleep(pause_s)
        log.warning("a push message was given up")
        return False

    async def _post(self, subscription: dict[str, Any], message: Message) -> int:
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False)
        url = httpx.URL(subscription["endpoint"])
        headers = {
            "TTL": str(max(1, int(message.until - self._clock.now()))),
            "Urgency": "high" if message.urgent else "low",
            "Topic": message.tag.replace("-", "")[:32],
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "Authorization": self._authorization(f"{url.scheme}://{url.netloc.decode()}"),
        }
        try:
            answer = await self._client.post(url, content=_encrypt(subscription["keys"], message.body), headers=headers)
        except httpx.HTTPError as error:
            raise OSError(str(error) or type(error).__name__) from error
        return answer.status_code

    def _authorization(self, audience: str) -> str:
        signed: dict[str, str] = self._key().sign({"aud": audience, "sub": self._contact})
        return signed["Authorization"]

    def public_key(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        raw = self._key().public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

    def _key(self) -> Vapid02:
        """The server's key pair, made once, for this user alone."""
        if self._vapid is None:
            from py_vapid import Vapid02

            if not self._key_file.exists():
                fresh = Vapid02()
                fresh.generate_keys()
                fd = os.open(self._key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
                with open(fd, "wb") as file:
                    file.write(fresh.private_pem())
            self._vapid = Vapid02.from_file(str(self._key_file))
        return self._vapid


def _encrypt(keys: dict[str, str], body: dict[str, Any]) -> bytes:
    import http_ece
    from cryptography.hazmat.primitives.asymmetric import ec

    text = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
    sealed: bytes = http_ece.encrypt(
        text,
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_bytes(keys["p256dh"]),
        auth_secret=_bytes(keys["auth"]),
        version="aes128gcm",
    )
    return sealed


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
