"""Web Push: the messages, the queue for each browser, and the hub's list of the browsers that want them.

A subscription belongs to a login and ends with it. A fleet server sends the same messages to its own list.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from atlasbridge.core.clock import Clock
from atlasbridge.core.distribution import install_line
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.newest import Newest
from atlasbridge.core.operations import Refused
from atlasbridge.core.policy.approval import PROOF
from atlasbridge.core.ports import MachineApi
from atlasbridge.core.prompt.model import OPEN, PromptRecord, PromptType
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import OWN_FILE
from atlasbridge.web.settings import WebSettings

if TYPE_CHECKING:
    import httpx
    from py_vapid import Vapid02


# Sends Web Push: one queue per browser, one message in flight, few waiting. Many prompts at once become one message
# with their number. Encryption needs the `push` extra, which is imported for the first message.

log = logging.getLogger(__name__)
TIMEOUT_S = 10.0
RETRIES_S = (2.0, 8.0, 30.0)
QUEUE_LIMIT = 4  # waiting questions in one queue before they become one message
REMEMBERED = 256  # sent tags per queue, needed to withdraw them
MANY = "atlasbridge-many"


@dataclass(frozen=True, slots=True)
class Message:
    """`tag` identifies the subject: a later message with the same tag replaces it, here and on the phone."""

    tag: str
    body: dict[str, Any]
    until: float  # monotonic time; a later delivery is useless
    urgent: bool = True
    count: int = 1


def hushed(message: Message) -> Message:
    """The same message without a sound, for quiet hours or while a more important one waits."""
    return replace(message, urgent=False, body={**message.body, "silent": True})


@dataclass(slots=True)
class SubscriptionQueue:
    subscription: dict[str, Any]
    waiting: dict[str, Message] = field(default_factory=dict)
    said: Newest[str, None] = field(default_factory=lambda: Newest(REMEMBERED))
    on_its_way: str = ""  # a tag: if it is settled now, it was perhaps already shown
    task: asyncio.Task[None] | None = None

    def put(self, message: Message) -> None:
        self.waiting[message.tag] = message
        asked = [known for known in self.waiting.values() if known.body.get("kind") == "ask"]
        if len(asked) > QUEUE_LIMIT:
            for known in asked:
                del self.waiting[known.tag]
            self.waiting[MANY] = _together(asked)


def _together(messages: list[Message]) -> Message:
    count = sum(message.count for message in messages)
    lines = [str(message.body["body"]).split("\n")[0][:80] for message in messages if message.tag != MANY]
    body = {
        "kind": "ask",
        "tag": MANY,
        "title": WAITING,
        "values": {"count": count},
        "body": "\n".join(lines[-4:]),
        "url": "/#prompts",
        "actions": [],
    }
    return Message(MANY, body, max(message.until for message in messages), any(m.urgent for m in messages), count)


def is_available() -> bool:
    return all(find_spec(name) is not None for name in ("http_ece", "py_vapid"))


def new_key() -> bytes:
    """A new key pair of a server, as PEM."""
    from py_vapid import Vapid02

    fresh = Vapid02()
    fresh.generate_keys()
    pem: bytes = fresh.private_pem()
    return pem


class PushSender:
    """`read_key` returns the server's key pair as PEM. `on_gone(endpoint)` is called if a push service no longer knows
    a subscription."""

    def __init__(
        self, clock: Clock, read_key: Callable[[], bytes], contact: str, on_gone: Callable[[str], Any]
    ) -> None:
        self._clock = clock
        self._read_key = read_key
        self._contact = contact
        self._on_gone = on_gone
        self._queues: dict[str, SubscriptionQueue] = {}
        self._client: httpx.AsyncClient | None = None
        self._vapid: Vapid02 | None = None

    def put(self, subscription: dict[str, Any], message: Message) -> None:
        queue = self._queues.setdefault(subscription["endpoint"], SubscriptionQueue(subscription))
        queue.put(message)
        if queue.task is None or queue.task.done():
            queue.task = asyncio.create_task(self._drain(queue), name="web-push")

    def settle(self, subscription: dict[str, Any], message: Message, told: bool = False) -> None:
        """Withdraw the message with the same tag. `told`: perhaps another process has sent it."""
        queue = self._queues.get(subscription["endpoint"], SubscriptionQueue(subscription))
        many = queue.waiting.get(MANY)
        if queue.waiting.pop(message.tag, None) is not None:
            return
        if message.tag in (*queue.said, queue.on_its_way) or (told and many is None):
            self.put(subscription, message)
        elif many is not None and many.count > 1:
            count = many.count - 1
            queue.waiting[MANY] = replace(many, count=count, body={**many.body, "values": {"count": count}})

    def forget(self, endpoint: str) -> None:
        queue = self._queues.pop(endpoint, None)
        if queue is not None and queue.task is not None:
            queue.task.cancel()

    async def idle(self) -> None:
        """Wait until every queue is empty."""
        await asyncio.gather(*self._tasks(), return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [queue.task for queue in self._queues.values() if queue.task is not None]

    async def close(self) -> None:
        for task in self._tasks():
            task.cancel()
        await self.idle()
        if self._client is not None:
            await self._client.aclose()

    async def _drain(self, queue: SubscriptionQueue) -> None:
        while queue.waiting:
            message = queue.waiting.pop(next(iter(queue.waiting)))
            queue.on_its_way = message.tag
            taken = await self._deliver(queue, message)
            queue.on_its_way = ""
            if taken:
                queue.said[message.tag] = None

    async def _deliver(self, queue: SubscriptionQueue, message: Message) -> bool:
        """Return True if the service accepted it. Retries a few times, as long as the message is useful."""
        for pause_s in (*RETRIES_S, 0.0):
            if self._clock.now() >= message.until:
                return False
            try:
                status = await self._post(queue.subscription, message)
            except OSError as error:
                log.warning("a push service could not be reached: %s", error)
                status = 503
            if status in (404, 410):
                self._on_gone(queue.subscription["endpoint"])
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
            "Topic": message.tag.rpartition(".")[2].replace("-", "")[
                :32
            ],  # without the machine, which fleets put before it
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
        if self._vapid is None:
            from py_vapid import Vapid02

            self._vapid = Vapid02.from_pem(self._read_key())
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


MAX_SUBSCRIPTIONS = 16
_PLAIN = re.compile(r"[\x21-\x7e]+")
_LABELS = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")


def is_known_service(endpoint: str, hosts: tuple[str, ...]) -> bool:
    """Whether this address, parsed as the sender parses it, belongs to one of `hosts`. The page sends it, so it is not
    trusted."""
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
        return scheme in ("http", "https")  # a test's own service, configured with its port
    known = any(host == name or (name.startswith(".") and host.endswith(name)) for name in hosts)
    return scheme == "https" and port in (None, 443) and known


class Allows(Protocol):
    def available(self) -> bool: ...
    def allows(self, endpoint: str) -> bool: ...


def refuse_push(push: Allows, endpoint: str, has_login: bool) -> Refused | None:
    if not push.available():
        return Refused("push_missing", f"install the push extra: {install_line('push')}")
    if not has_login:
        return Refused("no_device", "only a browser that is logged in can get push messages")
    if not push.allows(endpoint):
        return Refused("bad_value", "the configuration does not allow this push service (web.push_hosts)")
    return None


class Push:
    """`name_of(login_id)` returns the name of the browser with that login."""

    def __init__(self, hub_api: MachineApi, clock: Clock, settings: WebSettings, name_of: Callable[[str], str]) -> None:
        self._hub_api = hub_api
        self._name_of = name_of
        self._held: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._settings = settings
        self._subscriptions: list[dict[str, Any]] = [
            known for known in json.loads(hub_api.recall("web.push", "[]")) if known.get("login_id")
        ]
        self._sender = PushSender(clock, self._read_key, settings.push_contact, self.unsubscribe)

    def _read_key(self) -> bytes:
        """The hub's key pair: created once, readable by this user only."""
        path = self._hub_api.home / "web-push.pem"
        if not path.exists():
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600), "wb") as file:
                file.write(new_key())
        return path.read_bytes()

    available = staticmethod(is_available)

    @property
    def count(self) -> int:
        return len(self._subscriptions)

    def allows(self, endpoint: str) -> bool:
        return is_known_service(endpoint, self._settings.push_hosts)

    def public_key(self) -> str:
        """The server's public key for PushManager.subscribe; "" without the extra."""
        return self._sender.public_key() if self.available() else ""

    def subscribe(self, login_id: str, subscription: dict[str, Any]) -> None:
        self.unsubscribe(subscription["endpoint"])
        self._subscriptions = [*self._subscriptions, {**subscription, "login_id": login_id}][-MAX_SUBSCRIPTIONS:]
        self._save()

    def unsubscribe(self, endpoint: str, login_id: str = "") -> bool:
        """`login_id` removes it only if it belongs to this login."""
        gone = [
            known
            for known in self._subscriptions
            if known["endpoint"] == endpoint and login_id in ("", known["login_id"])
        ]
        return self._remove(gone)

    def end(self, login_id: str) -> None:
        """End the subscriptions of a login that has ended."""
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
        """Queue the message and send it in the background, so that a slow push service delays nothing.

        While a person types at the session's terminal, the message is held and checked again later.
        """
        if not self._subscriptions or not self.available():
            return
        for subscription in self._subscriptions:
            self._offer(subscription["endpoint"], message)

    def _offer(self, endpoint: str, message: Message) -> None:
        known = next((one for one in self._subscriptions if one["endpoint"] == endpoint), None)
        self._held.pop((endpoint, message.tag), None)
        if known is None or not self._waits(message.tag):
            return
        hold_s, silent = self._hub_api.aside(message.tag, f"web:{self._name_of(known['login_id'])}")
        if hold_s > 0:
            later = asyncio.get_running_loop().call_later(hold_s, self._offer, endpoint, message)
            self._held[endpoint, message.tag] = later
            return
        self._sender.put(known, hushed(message) if silent else message)

    def _waits(self, prompt_id: str) -> bool:
        record = self._hub_api.prompt(prompt_id)
        return record is not None and record.state in OPEN

    def settle(self, message: Message) -> None:
        """Withdraw the message with the same tag where it was sent."""
        for key in [key for key in self._held if key[1] == message.tag]:
            self._held.pop(key).cancel()
        for subscription in self._subscriptions:
            self._sender.settle(subscription, message)

    async def close(self) -> None:
        for later in self._held.values():
            later.cancel()
        await self._sender.close()

    def _save(self) -> None:
        self._hub_api.remember("web.push", json.dumps(self._subscriptions))


# The push message for a prompt, and its buttons. Pure. A button that agrees is offered only if the message contains the
# whole question; a button that refuses, if there is exactly one way to refuse. The service worker translates `title`
# and `note` and puts `values` into them; it shows `body` as it is.

BODY_LIMIT = 480
WHOLE_LIMIT = 240  # the part of a message that a phone shows without opening it
TITLE_LIMIT = 80
BUTTON_LIMIT = 40
SECRET = "It asks for a secret."
NOT_WHOLE = "… open it to read the rest"
CUT = "… ({more} more characters). Open it to read the rest."
ASKS, FINISHED, SETTLED = "{name} asks", "{name} has finished", "Settled"
WAITING = "{count} program is waiting for you|{count} programs are waiting for you"
TEXTS = (SECRET, NOT_WHOLE, CUT, ASKS, FINISHED, SETTLED, WAITING)  # all of them are in the catalogues


def render_ask(record: PromptRecord, session: SessionRecord, until: float) -> Message:
    prompt = record.prompt
    all_of_it = escape_controls(prompt.asked)
    # a person who agrees without opening it has seen everything
    whole = prompt.asked_whole and len(all_of_it) <= WHOLE_LIMIT
    text = "" if prompt.secret else all_of_it if whole else escape_controls(asked(record))
    more = len(text) - BODY_LIMIT
    name = escape_controls(session.label or session.tool, keep_lines=False)[:TITLE_LIMIT]
    body = {
        "kind": "ask",
        "tag": record.prompt_id,
        "title": FINISHED if prompt.idle else ASKS,
        "body": text[:BODY_LIMIT],
        "note": SECRET if prompt.secret else CUT if more > 0 else "" if whole or prompt.idle else NOT_WHOLE,
        "values": {"name": name, "more": more},
        "url": f"/#prompt/{record.prompt_id}",
        "actions": _actions(record, agree=whole and PROOF not in prompt.constraints),
        "session_id": record.session_id,
    }
    return Message(record.prompt_id, body, until, urgent=not prompt.idle)


def render_settled(record: PromptRecord, sentence: str, until: float) -> Message:
    body = {
        "kind": "settled",
        "tag": record.prompt_id,
        "title": SETTLED,
        "body": escape_controls(sentence)[:BODY_LIMIT],
        "url": f"/#prompt/{record.prompt_id}",
        "actions": [],
    }
    return Message(record.prompt_id, body, until, urgent=False)


def asked(record: PromptRecord) -> str:
    """The question, followed by its subject unless the question contains it."""
    subject = record.prompt.subject
    if subject is None or not subject.shown or subject.shown in record.prompt.excerpt:
        return record.prompt.excerpt
    return f"{record.prompt.excerpt}\n{subject.shown}"


def _actions(record: PromptRecord, agree: bool) -> list[dict[str, Any]]:
    prompt = record.prompt
    if prompt.secret or prompt.constraints.get("multi_select"):
        return []
    if prompt.type is PromptType.TYPE_YES_NO and not prompt.choices:
        offered = [("refuse", "No", "n"), ("agree", "Yes", "y")]
    else:
        refusing = [choice for choice in prompt.choices if choice.refuses]
        words = bool(prompt.text_steps)  # then a choice without its own steps needs a text
        agreeing = [
            choice for choice in prompt.choices if not (choice.refuses or choice.always or (words and not choice.steps))
        ]
        offered = [("refuse", refusing[0].label, refusing[0].value)] if len(refusing) == 1 else []
        offered += [("agree", agreeing[0].label, agreeing[0].value)] if agreeing and refusing else []
    return [
        {"action": action, "title": title, "value": value}
        for action, label, value in offered
        if (title := _title(label)) and (action == "refuse" or (agree and not title.endswith("…")))
    ]


def _title(label: str) -> str:
    """A label that does not fit on a button gets no button that agrees."""
    flat = escape_controls(label, keep_lines=False).strip()
    return flat if len(flat) <= BUTTON_LIMIT else f"{flat[: BUTTON_LIMIT - 1]}…"
