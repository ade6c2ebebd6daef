"""The ntfy channel: sends notifications and receives the posts of their buttons. The gate decides about replies."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import httpx

from atlasbridge.channels.base import BaseChannel, TaskSet
from atlasbridge.channels.callback import encode_callback, expand_callback, parse_callback
from atlasbridge.channels.excerpt import ABOVE, asked_text, is_ambiguous, lines_above
from atlasbridge.channels.incoming import SeenUpdates, Strangers
from atlasbridge.channels.language import common_reader, reading, say_digest, t
from atlasbridge.channels.outbox import Connection
from atlasbridge.channels.receipts import Outcome, People
from atlasbridge.channels.settings import PUBLIC_NTFY, NtfySettings
from atlasbridge.channels.setup_clients import DO_YOU_SEE, IT_WORKS, Person
from atlasbridge.channels.templates import (
    Button,
    Role,
    render_buttons,
    render_headline,
    render_notice,
    render_where,
    tool_name,
)
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord, session_name

log = logging.getLogger(__name__)

# How a prompt looks as a notification, and how its buttons are parsed. Pure. If the whole question does not fit, there
# is no button that agrees: only one that refuses, and a link to the whole text.

MESSAGE_BYTES = 3800  # the server's limit is 4096 for the text alone
TITLE_BYTES = 240
MOST_BUTTONS = 3
HARMLESS = (Role.REFUSE, Role.CANCEL)  # roles that agree to nothing
HIGH, USUAL, LOW, LEAST = 4, 3, 2, 1


def render_prompt(
    record: PromptRecord, session: SessionRecord, host: str, shows_text: bool, loud: bool
) -> dict[str, Any]:
    """Render the notification without its topic and its buttons."""
    asked, whole = asked_text(record.prompt), shows_text and _fits(record)
    where = render_where(session, host)
    more = t("The whole text: on the page, or {command}", command=f"atlasbridge reply {short_id(record.prompt_id)}")
    if shows_text:
        title = cut_bytes(render_headline(record.prompt, session), TITLE_BYTES)
        shown = asked if whole else cut_bytes(asked, MESSAGE_BYTES - 300) + f"\n({t('cut or incomplete')})"
        above = lines_above(record.prompt)
        left_out = f"\n⚠ {t(ABOVE, count=above)}" if above else ""
        text = f"{shown}{left_out}\n{where}" + ("" if whole else f"\n{more}")
    else:
        title, text = t("AtlasBridge: a question for you"), f"{where}\n{more}"
    return {
        "title": title,
        "message": text,
        "priority": HIGH if loud else LOW,
        "sequence_id": short_id(record.prompt_id),
    }


def _fits(record: PromptRecord) -> bool:
    """Whether a notification can show everything that a tap would agree to: no part is missing or omitted above it."""
    asked = asked_text(record.prompt)
    if lines_above(record.prompt):
        return False
    return record.prompt.asked_whole and len(asked.encode()) <= MESSAGE_BYTES and bool(asked)


def choose_buttons(record: PromptRecord, shows_text: bool) -> list[Button]:
    """Return at most three buttons. A refusing one is always included if it exists; none gives a lasting permission."""
    whole = shows_text and _fits(record)
    found = [one for one in render_buttons(record.prompt) if one.role in (Role.ANSWER, Role.REFUSE, Role.CANCEL)]
    refusing = [button for button in found if button.role in HARMLESS][:1]
    agreeing = [button for button in found if button.role is Role.ANSWER] if whole else []
    complete = len(agreeing) + len(refusing) <= MOST_BUTTONS
    return [*agreeing[: MOST_BUTTONS - len(refusing)], *refusing] if complete or refusing else []


def render_end(outcome: Outcome, record: PromptRecord, session: SessionRecord, shows_text: bool) -> dict[str, Any]:
    title = cut_bytes(outcome.title, TITLE_BYTES) if shows_text else t("Settled.")
    text = "\n".join(part for part in (f"{tool_name(session)} · {session_name(session)}", outcome.detail) if part)
    return {"title": title, "message": text, "priority": LEAST, "sequence_id": short_id(record.prompt_id)}


def cut_bytes(text: str, most: int) -> str:
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore") + "…"


SINCE = "ntfy.since"
ENDS = frozenset({"taken", "first_key", "withdrawn", "expired", "default_typed", "canceled", "failed", "still_there"})


class NtfyChannel(BaseChannel):
    name: ClassVar[str] = "ntfy"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = NtfySettings.model_validate(dict(settings))
        self._api = NtfyApi(own.server, own.access_token.get_secret_value(), own.request_timeout_s)
        self._topic, self._reply_topic = own.topic.get_secret_value(), own.reply_topic.get_secret_value()
        self._identity = f"ntfy:{own.allowed_users[0]}"
        self._host = platform.node() or "this machine"
        self._tasks = TaskSet("ntfy")
        self._seen = SeenUpdates(hub_api, self.name)
        self._strangers = Strangers(hub_api, self.name)
        self._people = People(hub_api, self.name)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._connection = Subscription(self._api, self._reply_topic, self._since, self._hear, own.backoff_first_s)
        self._agrees = own.taps_agree  # None: not checked yet

    async def start(self) -> None:
        self._tasks.hold(self._listen())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        loud = self.hub_api.tone(event.prompt_id, self.name).sounds_for(self._identity)
        await self._learn_who_reads()
        with self._reading():
            return await self._publish(self._painted(event, session, loud))

    def _reading(self) -> AbstractContextManager[None]:
        return reading(common_reader(self.hub_api, [self._identity], self._own.language))

    def _painted(self, event: PromptRecord, session: SessionRecord, loud: bool) -> dict[str, Any]:
        body = render_prompt(event, session, self._host, self._own.shows_text, loud)
        place = f"{self._api.server}/{self._reply_topic}"
        token = (self._own.reply_token or self._own.access_token).get_secret_value()
        actions = [
            posting(button.label, place, encode_callback(event, button.value), token) for button in self._offered(event)
        ]
        if is_ambiguous(event.prompt) and self._own.page_url and not event.prompt.secret:
            actions.append({"action": "view", "label": f"🔎 {t('Show output')}", "url": self._own.page_url})
        return {**body, "actions": actions} if actions else body

    def _offered(self, event: PromptRecord) -> list[Button]:
        """The buttons of this prompt. An answer from the topic must be one of them."""
        buttons = choose_buttons(event, self._own.shows_text)
        return [one for one in buttons if self._agrees or one.role in HARMLESS]

    async def _learn_who_reads(self) -> None:
        """Offer no agreeing buttons if this machine can read the topic: then a tool in a session could read it too, and
        post the answer."""
        if self._agrees is None:
            try:
                self._agrees = not await self._api.may_read(self._topic)
            except ChannelError as fault:
                log.warning("whether a tap may agree is not known: %s", fault)

    async def _publish(self, body: dict[str, Any]) -> str:
        click = {"click": self._own.page_url} if self._own.page_url else {}
        return await self._api.publish({"topic": self._topic, **body, **click})

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """An accepted reply shows in the notification. The sender of a refused reply gets the reason."""
        if isinstance(reply.token, str):
            await self._seen.settle(reply.token)
        if isinstance(outcome, Reject):
            await self.notify(self._people.rename(outcome.sentence, reply.identity))

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self.hub_api.session(event.session_id)
        if session is None:
            return
        if receipt.stage == "reminder":
            await self.send_prompt(event, session)  # the same sequence id, so it replaces the first notification
            return
        if receipt.stage not in ENDS:
            return
        with self._reading():
            outcome = self._people.outcome(event, receipt, self.clock.wall())
            await self._publish(render_end(outcome, event, session, self._own.shows_text))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is not None and not self._own.session_notices:
            return
        with self._reading():
            text = cut_bytes(render_notice(message, session), MESSAGE_BYTES)
        await self._publish({"title": "AtlasBridge", "message": text, "priority": LOW if session else USUAL})

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        with self._reading():
            told = say_digest(escape_controls(text))
        shown = cut_bytes(told, MESSAGE_BYTES) if self._own.shows_text else told.partition("\n")[0]
        priority = HIGH if loud else LEAST
        await self._publish(
            {"title": "AtlasBridge", "message": shown, "priority": priority, "sequence_id": f"d{key[:8]}"}
        )

    async def close(self) -> None:
        await self._tasks.close()
        await self._api.close()

    def health(self) -> dict[str, Any]:
        return {
            "state": self._connection.state,
            "detail": self._connection.detail,
            "shows_text": self._own.shows_text,
            "taps_agree": bool(self._agrees),
        }

    # receiving

    async def _listen(self) -> None:
        await self._learn_who_reads()
        for update_id, event in self._seen.left_over():
            self._take(update_id, event if isinstance(event, dict) else {})
        await self._connection.run()

    def _since(self) -> str:
        """Return the id of the newest received message; at the first start, the current time."""
        known = self.hub_api.recall(SINCE)
        if not known:
            known = str(int(self.clock.wall()))
            self.hub_api.remember(SINCE, known)
        return known

    async def _hear(self, event: dict[str, Any]) -> None:
        update_id, text = str(event.get("id", "")), str(event.get("message", ""))
        if event.get("event") != "message" or not update_id:
            return
        if parse_callback(text) is None:
            self._strangers.note("somebody who knows the reply topic")
        elif await self._seen.take(update_id, json.dumps({"message": text})) != "copy":
            self._take(update_id, event)
        self.hub_api.remember(SINCE, update_id)

    def _take(self, update_id: str, event: dict[str, Any]) -> None:
        said = parse_callback(event.get("message"))
        record = self.hub_api.prompt(said.prompt_id) if said else None
        if said is None or record is None:
            self._tasks.hold(self._seen.settle(update_id))
            return
        session_id, nonce, value = expand_callback(said, record)
        if value not in {one.value for one in self._offered(record)}:
            self._strangers.note("somebody who reads the topic and answers what no button says")
            self._tasks.hold(self._seen.settle(update_id))
            return
        self._replies.put_nowait(
            InboundReply(
                channel=self.name,
                identity=self._identity,
                prompt_id=record.prompt_id,
                value=value,
                session_id=session_id,
                nonce=nonce,
                place="ntfy",
                token=update_id,
            )
        )


# ntfy's HTTP interface: publish messages, and subscribe to a topic as one JSON object per line.

KEEPALIVE_S = 120.0  # the server sends something every 45 s; a longer silence means a dead connection
LONGEST_LINE = 65_536


class NtfyApi:
    def __init__(self, server: str, access_token: str, timeout_s: float) -> None:
        headers: dict[str, str] = bearer(access_token).get("headers", {})
        self.server = server.rstrip("/")
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout_s, follow_redirects=False)

    async def publish(self, body: dict[str, Any]) -> str:
        """Return the message's id. The topic is in the body, so that it appears in no URL and no log."""
        try:
            answer = await self._client.post(self.server + "/", json=body)
            found = answer.json() if answer.content else {}
        except (httpx.HTTPError, ValueError) as fault:
            raise ChannelError(
                f"ntfy could not be reached ({type(fault).__name__})", "check channels.ntfy.server"
            ) from None
        if answer.status_code != 200 or not isinstance(found, dict) or not found.get("id"):
            why = found.get("error", "") if isinstance(found, dict) else ""
            raise ChannelError(f"ntfy refused a message: {answer.status_code} {why}".strip(), "check the access token")
        return str(found["id"])

    async def listen(self, topic: str, since: str) -> AsyncIterator[dict[str, Any]]:
        """Yield every event of the topic after `since` (an id, or seconds since the epoch) until the connection
        breaks."""
        limits = httpx.Timeout(KEEPALIVE_S, connect=10.0)
        try:
            async with self._client.stream(
                "GET", f"{self.server}/{topic}/json", params={"since": since}, timeout=limits
            ) as answer:
                if answer.status_code != 200:
                    raise ChannelError(f"ntfy does not let us listen: {answer.status_code}", "check the access token")
                async for line in answer.aiter_lines():
                    if line and len(line) <= LONGEST_LINE and isinstance(event := _parse(line), dict):
                        yield event
        except httpx.HTTPError as fault:
            raise ChannelError(f"the line to ntfy broke ({type(fault).__name__})", "it is tried again") from None

    async def may_read(self, topic: str) -> bool:
        """Whether the server lets us read this topic. Raises if the server cannot be asked."""
        try:
            answer = await self._client.get(f"{self.server}/{topic}/json", params={"poll": "1", "since": "none"})
        except httpx.HTTPError as fault:
            raise ChannelError(f"ntfy could not be reached ({type(fault).__name__})", "it is tried again") from None
        return answer.status_code not in (401, 403)

    async def close(self) -> None:
        await self._client.aclose()


class Subscription(Connection):
    """The replies' topic, from the newest message that was received."""

    title = "ntfy"

    def __init__(
        self,
        api: NtfyApi,
        topic: str,
        since: Callable[[], str],
        hear: Callable[[dict[str, Any]], Awaitable[None]],
        backoff_first_s: float,
    ) -> None:
        super().__init__(backoff_first_s)
        self._api, self._topic, self._since, self._hear = api, topic, since, hear

    async def _live(self) -> None:
        async for event in self._api.listen(self._topic, self._since()):
            await self._move("ok")
            await self._hear(event)


def posting(label: str, url: str, body: str, access_token: str) -> dict[str, Any]:
    """A button that posts this text."""
    button = {"action": "http", "label": label, "url": url, "method": "POST", "body": body, "clear": True}
    return button | bearer(access_token)


def bearer(access_token: str) -> dict[str, Any]:
    """The authorization header for a request, or for a button's request, if the server needs a token."""
    return {"headers": {"Authorization": f"Bearer {access_token}"}} if access_token else {}


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


# The ntfy part of `atlasbridge setup`: create two topics, and wait for a test tap from the phone.

REQUEST_TIMEOUT_S = 10.0


class NtfyIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._server = (api_url or PUBLIC_NTFY).rstrip("/")
        self._token = tokens.get("bot_token", "")
        self._api = NtfyApi(self._server, self._token, REQUEST_TIMEOUT_S)
        self.topic = f"atlasbridge-{secrets.token_urlsafe(18)}"
        self._reply_topic = f"atlasbridge-re-{secrets.token_urlsafe(18)}"

    async def check(self) -> str:
        """Check that the server accepts a message; return the topic that the phone must subscribe to."""
        await self._api.publish(
            {
                "topic": self.topic,
                "title": "AtlasBridge",
                "message": t("AtlasBridge notifies you here when something waits for you."),
                "priority": 2,
            }
        )
        return f"{self._server}/{self.topic}"

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Any person with the phone: ntfy has no user identities."""
        return Person("phone", "phone")

    async def prove(self, person_id: str, patience_s: float) -> bool:
        word = secrets.token_hex(8)
        button = posting(t(IT_WORKS), f"{self._server}/{self._reply_topic}", word, self._token)
        try:
            async with asyncio.timeout(patience_s):
                return await self._await_tap(button, word)
        except TimeoutError:
            return False

    async def _await_tap(self, button: dict[str, Any], word: str) -> bool:
        sent = False
        async for event in self._api.listen(self._reply_topic, "all"):
            if not sent:  # only now, because the subscription is open
                await self._api.publish(
                    {
                        "topic": self.topic,
                        "title": "AtlasBridge",
                        "message": t(DO_YOU_SEE),
                        "actions": [button],
                    }
                )
                sent = True
            if event.get("event") == "message" and event.get("message") == word:
                return True
        raise ChannelError("the server ended the line", "try again")

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        own = {} if self._server == PUBLIC_NTFY else {"server": self._server}
        return {"topic": self.topic, "reply_topic": self._reply_topic, "allowed_users": person_ids[:1], **own}

    async def close(self) -> None:
        await self._api.close()
