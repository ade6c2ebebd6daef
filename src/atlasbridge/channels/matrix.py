"""The Matrix channel: messages to one room, reactions and replies from it. The gate decides about replies."""

from __future__ import annotations

import asyncio
import json
import logging
import platform
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar
from urllib.parse import quote

import httpx

from atlasbridge.channels import grant_card
from atlasbridge.channels.base import BaseChannel, TaskSet
from atlasbridge.channels.excerpt import (
    LAST_OUTPUT,
    asked_text,
    count_missing,
    is_ambiguous,
    lines_above,
    quotes_of,
    render_effects,
)
from atlasbridge.channels.grant_card import GrantWords
from atlasbridge.channels.introductions import Person
from atlasbridge.channels.language import common_reader, hub_says, reading, say_digest, t
from atlasbridge.channels.listening import SeenUpdates, Strangers
from atlasbridge.channels.outbox import Backoff
from atlasbridge.channels.receipts import STILL_OPEN, People
from atlasbridge.channels.settings import MatrixSettings
from atlasbridge.channels.templates import (
    SURE,
    Button,
    Role,
    render_buttons,
    render_deadline,
    render_header,
    render_notice,
    render_title,
    session_name,
    sure_label,
)
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.operations import Caller
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.model import InboundReply, Prompt, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)

# Grants in a room: a reaction to the question requests an offer, and keycap reactions to the offer decide. The hub
# stores which offer belongs to which prompt, so a restart loses none.


class RoomGrants:
    def __init__(self, hub_api: HubApi, api: MatrixApi, edit: Callable[[str, str], None]) -> None:
        self._hub_api, self._api, self._edit = hub_api, api, edit

    def knows(self, meant: str, record: PromptRecord | None, key: str) -> bool:
        """Whether this reaction is about a grant: the clock on a question, or any reaction to an offer."""
        if record is not None:
            return is_while(key) and offers_grant(record.prompt)
        return bool(meant and self._hub_api.recall(_note(meant)))

    async def take(self, meant: str, record: PromptRecord | None, key: str, caller: Caller) -> None:
        if record is not None:
            await self._show(meant, record, await grant_card.press(self._hub_api, record, "", caller))
            return
        kept = json.loads(self._hub_api.recall(_note(meant)))
        value, offered = grant_choice(kept["values"], key), self._hub_api.prompt(kept["prompt_id"])
        if value is not None and offered is not None:
            await self._show(meant, offered, await grant_card.press(self._hub_api, offered, value, caller))

    async def _show(self, beside: str, record: PromptRecord, words: GrantWords | str) -> None:
        if isinstance(words, str):
            await self._say(reply_message(beside, words, loud=False))
            return
        event_id = beside
        if words.beside:
            event_id = await self._say(reply_message(beside, render_grant(words), loud=False))
        else:
            self._edit(beside, render_grant(words))
        values = [value for _, value in words.buttons]
        self._hub_api.remember(_note(event_id), json.dumps({"prompt_id": record.prompt_id, "values": values}))
        for key in KEYCAPS[: len(values)] if words.beside else ():
            await self._api.send("m.reaction", reaction(event_id, key), f"grant.{new_id()}")

    async def _say(self, content: dict[str, object]) -> str:
        return await self._api.send("m.room.message", content, f"grant.{new_id()}")


def _sure(event_id: str) -> str:
    return f"matrix.sure.{event_id}"


def _note(event_id: str) -> str:
    return f"matrix.grant.{event_id}"


SINCE = "matrix.since"
EDIT_LIFE_S = 3600.0
ENCRYPTED = "This room is encrypted, and I cannot read it. Use a room without encryption."
WHICH = "Reply to the question's own message, or react to it."


class MatrixChannel(BaseChannel):
    name: ClassVar[str] = "matrix"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = MatrixSettings.model_validate(dict(settings))
        self._api = MatrixApi(own.homeserver, own.access_token.get_secret_value(), own.room, own.request_timeout_s)
        self._host = own.host_name or platform.node() or "this machine"
        self._tasks = TaskSet("matrix")
        self._seen = SeenUpdates(hub_api, self.name)
        self._strangers = Strangers(hub_api, self.name)
        self._people = People(hub_api, self.name)
        self._replies: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._me, self._state, self._detail = "", "starting", ""
        self._encrypted: bool | None = None  # None: not checked yet
        self._digests: dict[str, str] = {}
        self._edits: dict[str, str] = {}
        self._grants = RoomGrants(hub_api, self._api, self._edit)

    async def start(self) -> None:
        self._tasks.hold(self._listen())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._refuse_encrypted()
        loud = self.hub_api.tone(event.prompt_id, self.name).loud
        with self._reading():
            content = text_message(render_prompt(event, session, self._host), loud)
        event_id = await self._api.send("m.room.message", content, f"ask.{event.prompt_id}")
        self._tasks.hold(self._offer(event, event_id))
        return event_id

    def _reading(self) -> AbstractContextManager[None]:
        """For the people who read the room."""
        identities = [f"matrix:{one}" for one in self._own.allowed_users]
        return reading(common_reader(self.hub_api, identities, self._own.language))

    async def _refuse_encrypted(self) -> None:
        """Raise ChannelError for an encrypted room, because replies there cannot be read."""
        if self._encrypted is None:
            self._encrypted = await self._api.is_encrypted()
        if self._encrypted:
            self._state, self._detail = "fault", IS_ENCRYPTED
            raise ChannelError(IS_ENCRYPTED, "use a room without encryption: atlasbridge setup --channel matrix")

    async def _offer(self, event: PromptRecord, event_id: str) -> None:
        """Add our own reactions, so that a person only has to tap one."""
        for number, key in enumerate(reactions(event.prompt)):
            await self._api.send("m.reaction", reaction(event_id, key), f"offer.{event.prompt_id}.{number}")
        if offers_grant(event.prompt):
            await self._api.send("m.reaction", reaction(event_id, WHILE), f"offer.{event.prompt_id}.while")

    async def receive_reply(self) -> InboundReply:
        return await self._replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """An accepted reply shows in the prompt's message. A refused reply gets an answer with the reason."""
        if not isinstance(reply.token, str):
            return
        await self._seen.settle(reply.token)
        if isinstance(outcome, Reject):
            with self._reading():
                sentence = hub_says(self._people.rename(outcome.sentence, reply.identity))
            await self._say(reply_message(reply.token, sentence, loud=True), f"refused.{reply.token}")

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self.hub_api.session(event.session_id)
        if session is not None:
            with self._reading():
                await self._update(message_id, event, session, receipt)

    async def _update(self, message_id: str, event: PromptRecord, session: SessionRecord, receipt: Receipt) -> None:
        if receipt.stage in STILL_OPEN[1:]:
            told = f"⏰ {session_name(session)}: {hub_says(self._people.rename(receipt.sentence, receipt.by))}"
            await self._say(reply_message(message_id, told, loud=False), f"{receipt.stage}.{new_id()}")
            return
        if receipt.stage == "reminder":
            loud = self.hub_api.tone(event.prompt_id, self.name).loud
            asked = f"“{first_line(event.prompt)}” · {session_name(session)}"
            told = f"🗳 {hub_says(receipt.sentence)} · {asked}" if receipt.by else f"🔔 {t('Still waiting')}: {asked}"
            await self._say(reply_message(message_id, told, loud), f"remind.{new_id()}")
            return
        outcome = self._people.outcome(event, receipt, self.clock.wall())
        about = render_header(event.prompt, session, self._host)
        body = [outcome.title, outcome.detail, "", asked_text(event.prompt)[:LONGEST], "", about]
        self._edit(message_id, "\n".join(body))
        if receipt.stage in ("expired", "default_typed"):
            await self._say(
                reply_message(message_id, f"{outcome.title} · {session_name(session)}", loud=True),
                f"end.{receipt.stage}.{event.prompt_id}",
            )

    def _edit(self, event_id: str, body: str) -> None:
        """Edit the message in the background and retry after errors. Only the newest text is sent."""
        running = event_id in self._edits
        self._edits[event_id] = body
        if not running:
            self._tasks.hold(self._edit_until_done(event_id))

    async def _edit_until_done(self, event_id: str) -> None:
        backoff, until = Backoff(self._own.backoff_first_s), self.clock.now() + EDIT_LIFE_S
        while self.clock.now() < until:
            body = self._edits[event_id]
            try:
                await self._say(edit_message(event_id, body), f"edit.{new_id()}")
            except ChannelError as fault:
                log.warning("%s", fault)
                await asyncio.sleep(backoff.next_wait())
                continue
            if self._edits[event_id] is body:
                break
        del self._edits[event_id]

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            with self._reading():
                named = render_notice(message, session)
            await self._say(
                text_message(named[:LONGEST], session is None),
                f"note.{new_id()}",
            )

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        with self._reading():
            body = say_digest(escape_controls(text)[:LONGEST])
        if key in self._digests:
            self._edit(self._digests[key], body)
        else:
            self._digests = {key: await self._say(text_message(body, loud), f"digest.{new_id()}")}

    async def _say(self, content: dict[str, Any], txn: str) -> str:
        return await self._api.send("m.room.message", content, txn)

    async def close(self) -> None:
        await self._tasks.close()
        await self._api.close()

    def health(self) -> dict[str, Any]:
        return {"state": self._state, "detail": self._detail, "bot": self._me}

    # receiving

    async def _listen(self) -> None:
        for update_id, event in self._seen.left_over():
            if isinstance(event, dict):
                await self._take(update_id, event)
        backoff = Backoff(self._own.backoff_first_s)
        while True:
            try:
                self._me = self._me or await self._api.whoami()
                self._encrypted = await self._api.is_encrypted() if self._encrypted is None else self._encrypted
                since = self.hub_api.recall(SINCE)
                token, events = await self._api.sync(since, self._own.poll_timeout_s)
                self._encrypted = self._encrypted or any(one.get("type") == "m.room.encryption" for one in events)
                self._state, self._detail = ("fault", IS_ENCRYPTED) if self._encrypted else ("ok", "")
                for event in events:
                    await self._hear(event)
                self.hub_api.remember(SINCE, token)
                backoff.reset()
            except ChannelError as fault:
                self._state, self._detail = "reconnecting", str(fault)
                log.warning("%s", fault)
                await asyncio.sleep(backoff.next_wait())

    async def _hear(self, event: dict[str, Any]) -> None:
        sender, event_id = str(event.get("sender", "")), str(event.get("event_id", ""))
        if (
            sender == self._me
            or not event_id
            or event.get("type") not in ("m.reaction", "m.room.message", "m.room.encrypted")
        ):
            return
        if sender not in self._own.allowed_users:
            self._strangers.note(sender[:255])
            return
        kept = {name: event.get(name) for name in ("type", "sender", "content")}
        if await self._seen.take(event_id, json.dumps(kept)) != "copy":
            with self._reading():
                await self._take(event_id, event)

    async def _take_grant(self, event_id: str, meant: str, record: PromptRecord | None, said: str, sender: str) -> None:
        """Settle the update when the work is done, so that the next process repeats it if this one dies."""
        await self._grants.take(meant, record, said, Caller(f"matrix:{sender}", "matrix", sender))
        await self._seen.settle(event_id)

    async def _take(self, event_id: str, event: dict[str, Any]) -> None:
        meant, said, is_reaction = parse_target(event)
        record = self.hub_api.prompt_for_message(self.name, meant) if meant else None
        if is_reaction and self._grants.knows(meant, record, said):
            self._tasks.hold(self._take_grant(event_id, meant, record, said, str(event.get("sender"))))
            return
        sure = json.loads(self.hub_api.recall(_sure(meant)) or "{}") if record is None and meant else {}
        if sure:
            await self._take_sure(event_id, event, sure, said if is_reaction else "")
            return
        if record is None:
            await self._seen.settle(event_id)
            self._help(event_id, event, is_reaction)
            return
        button = find_reaction(record.prompt, said) if is_reaction else None
        if button is not None and button.role is Role.ALWAYS:
            self._tasks.hold(self._make_sure(event_id, meant, record, button.value))
            return
        if button is not None and button.role is Role.SHOW:
            await self._seen.settle(event_id)
            shown = escape_controls(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:]
            self._tasks.hold(self._say(reply_message(meant, shown, loud=False), f"show.{event_id}"))
            return
        if is_reaction and button is None:
            await self._seen.settle(event_id)
            return
        self._reply(event_id, event, record, button.value if button else said, record.nonce if is_reaction else "")

    def _reply(self, event_id: str, event: dict[str, Any], record: PromptRecord, value: str, nonce: str) -> None:
        self._replies.put_nowait(
            InboundReply(
                channel=self.name,
                identity=f"matrix:{event.get('sender')}",
                prompt_id=record.prompt_id,
                value=value,
                session_id=record.session_id,
                nonce=nonce,
                place="Matrix",
                token=event_id,
            )
        )

    async def _make_sure(self, event_id: str, meant: str, record: PromptRecord, value: str) -> None:
        """An answer that is not asked again takes a second reaction, to a message of its own."""
        choice = next(one for one in record.prompt.choices if one.value == value)
        body = f"{t(SURE)}\n{YES} {sure_label(choice)}"
        asked = await self._say(reply_message(meant, body, loud=False), f"sure.{event_id}")
        self.hub_api.remember(_sure(asked), json.dumps({"prompt_id": record.prompt_id, "value": value}))
        await self._api.send("m.reaction", reaction(asked, YES), f"sure.{event_id}.yes")
        await self._seen.settle(event_id)

    async def _take_sure(self, event_id: str, event: dict[str, Any], sure: dict[str, str], key: str) -> None:
        record = self.hub_api.prompt(sure["prompt_id"])
        if record is None or key.translate(PLAIN) != YES:
            await self._seen.settle(event_id)
            return
        self._reply(event_id, event, record, sure["value"], record.nonce)

    def _help(self, event_id: str, event: dict[str, Any], is_reaction: bool) -> None:
        if is_reaction:
            return
        sentence = t(ENCRYPTED if event.get("type") == "m.room.encrypted" else WHICH)
        self._tasks.hold(self._say(reply_message(event_id, sentence, loud=False), f"help.{event_id}"))


# The calls of the Matrix client-server API that the channel needs: identify itself, send, and wait for new events.

LONGEST_FLOOD_S = 5.0
IS_ENCRYPTED = "this room is encrypted, and AtlasBridge cannot read what is said there"
HINT = "check homeserver, access_token and room of [channels.matrix]"


class MatrixApi:
    def __init__(self, homeserver: str, access_token: str, room: str, timeout_s: float) -> None:
        self._base = f"{homeserver.rstrip('/')}/_matrix/client/v3"
        self._room = room
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bearer {access_token}"}, timeout=timeout_s)

    async def whoami(self) -> str:
        return str((await self._call("GET", "/account/whoami")).get("user_id", ""))

    async def create_room(self, name: str, people: list[str]) -> str:
        """Create a private room without encryption, invite these people, and use it from now on."""
        wanted = {"preset": "private_chat", "name": name, "invite": people, "is_direct": len(people) == 1}
        self._room = str((await self._call("POST", "/createRoom", wanted)).get("room_id", ""))
        return self._room

    async def is_encrypted(self) -> bool:
        path = f"/rooms/{quote(self._room, safe='')}/state/m.room.encryption/"
        return bool((await self._call("GET", path, missing={})).get("algorithm"))

    async def send(self, kind: str, content: dict[str, Any], txn: str) -> str:
        """Send an event. A retry with the same `txn` does not create a second event."""
        path = f"/rooms/{quote(self._room, safe='')}/send/{kind}/{quote(txn, safe='')}"
        return str((await self._call("PUT", path, content)).get("event_id", ""))

    async def sync(self, since: str, wait_s: int) -> tuple[str, list[dict[str, Any]]]:
        """Return the next token and the new events in the room. Without a token, start from now."""
        only = {
            "room": {"rooms": [self._room], "timeline": {"limit": 100 if since else 0}, "state": {"types": []}},
            "presence": {"types": []},
            "account_data": {"types": []},
        }
        params = {"filter": json.dumps(only), "timeout": str(wait_s * 1000 if since else 0)}
        found = await self._call(
            "GET", "/sync", params={**params, **({"since": since} if since else {})}, wait_s=wait_s
        )
        room = found.get("rooms", {}).get("join", {}).get(self._room, {})
        events = room.get("timeline", {}).get("events", []) if since else []
        return str(found.get("next_batch", "")), [event for event in events if isinstance(event, dict)]

    async def _call(
        self,
        method: str,
        path: str,
        content: Any = None,
        params: dict[str, str] | None = None,
        wait_s: float = 0.0,
        missing: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """`missing` is returned if the server does not know the resource."""
        limit = httpx.Timeout(self._client.timeout.read or 8.0, read=(self._client.timeout.read or 8.0) + wait_s)
        for last in (False, True):
            try:
                answer = await self._client.request(
                    method, self._base + path, json=content, params=params, timeout=limit
                )
                found = answer.json()
            except (httpx.HTTPError, ValueError) as fault:
                raise ChannelError(f"Matrix could not be reached ({type(fault).__name__})", HINT) from None
            if answer.status_code == 200 and isinstance(found, dict):
                return found
            if answer.status_code == 404 and missing is not None:
                return missing
            pause_s = float(found.get("retry_after_ms", 1000)) / 1000 if isinstance(found, dict) else 1.0
            if answer.status_code != 429 or last or pause_s > LONGEST_FLOOD_S:
                why = found.get("errcode", "") if isinstance(found, dict) else ""
                raise ChannelError(f"Matrix refused: {answer.status_code} {why}".strip(), HINT)
            await asyncio.sleep(pause_s)
        raise AssertionError("the last round raises or returns")

    async def close(self) -> None:
        await self._client.aclose()


# The Matrix part of `atlasbridge setup`: check the token, find or create an unencrypted room, wait for a tap.

REQUEST_TIMEOUT_S = 10.0
POLL_S = 20
USE_ANOTHER = "use a room without encryption; leave --room out, and one is made"


class MatrixIntroduction:
    """`room` is an existing room; without it, a private room is created and the people are invited."""

    def __init__(self, tokens: dict[str, str], api_url: str, room: str = "", people: tuple[str, ...] = ()) -> None:
        if not api_url:
            raise ChannelError("say which homeserver", "--api-url https://matrix.example.org")
        self._server = api_url.rstrip("/")
        self._token = tokens.get("access_token", "")
        self._people = people
        self._api = MatrixApi(self._server, self._token, room, REQUEST_TIMEOUT_S)
        self._room = room

    async def check(self) -> str:
        name = await self._api.whoami()
        if not self._room:
            self._room = await self._api.create_room("AtlasBridge", list(self._people))
        if await self._api.is_encrypted():
            raise ChannelError(IS_ENCRYPTED, USE_ANOTHER)
        return name

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Return the person who writes this word in the room."""
        async for event in self._heard(patience_s):
            if word in str(event.get("content", {}).get("body", "")):
                return Person(str(event.get("sender")), str(event.get("sender")))
        return None

    async def prove(self, person_id: str, patience_s: float) -> bool:
        since, _ = await self._api.sync("", 0)
        asked = text_message(
            t("AtlasBridge asks: do you see this? React with {key}, or write anything.", key=YES), True
        )
        event_id = await self._api.send("m.room.message", asked, f"setup.{new_id()}")
        await self._api.send("m.reaction", reaction(event_id, YES), f"setup.{new_id()}")
        async for event in self._heard(patience_s, since):
            if event.get("sender") == person_id and event.get("type") in ("m.reaction", "m.room.message"):
                return True
        return False

    async def _heard(self, patience_s: float, since: str = "") -> Any:
        try:
            async with asyncio.timeout(patience_s):
                since = since or (await self._api.sync("", 0))[0]
                while True:
                    since, events = await self._api.sync(since, POLL_S)
                    for event in events:
                        if event.get("type") == "m.room.encrypted":
                            raise ChannelError(IS_ENCRYPTED, USE_ANOTHER)
                        yield event
        except TimeoutError:
            return

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        wrong = [one for one in person_ids if not one.startswith("@") or ":" not in one]
        if wrong:
            raise ChannelError(f"{wrong[0]!r} is no Matrix id", f"write it whole, as @ada:example.org; {HINT}")
        return {"homeserver": self._server, "room": self._room, "allowed_users": person_ids}

    async def close(self) -> None:
        await self._api.close()


# How a prompt looks in a room, which reaction stands for which answer, and how replies are parsed. Pure.

LONGEST = 16_000
KEYCAPS = [f"{digit}\ufe0f\u20e3" for digit in range(1, 10)]
YES, NO = "✅", "❌"
CANCEL, SHOW = "✖", "🔎"  # for a prompt whose question is unknown
WHILE = "⏱"  # the reaction that asks for a grant
PLAIN = str.maketrans("", "", "\ufe0f")  # some clients send it, others do not


def reactions(prompt: Prompt) -> dict[str, Button]:
    """Return the meaning of each reaction. A question that is not shown completely gets no reaction that agrees."""
    if is_ambiguous(prompt) and not prompt.secret:
        keys = {Role.ANSWER: YES, Role.CANCEL: CANCEL, Role.SHOW: SHOW}
        return {keys[one.role]: one for one in render_buttons(prompt) if one.role in keys}
    offered = [one for one in render_buttons(prompt) if one.role in (Role.ANSWER, Role.ALWAYS, Role.REFUSE)]
    if not is_whole(prompt):
        offered = [one for one in offered if one.role is Role.REFUSE]
    if not prompt.choices:
        return {(NO if one.role is Role.REFUSE else YES): one for one in offered[:2]}
    return dict(zip(KEYCAPS, offered, strict=False))


def offers_grant(prompt: Prompt) -> bool:
    return is_whole(prompt) and any(one.role is Role.GRANT for one in render_buttons(prompt))


def is_while(key: str) -> bool:
    return key.translate(PLAIN) == WHILE


def grant_choice(values: list[str], key: str) -> str | None:
    """Return the value behind a keycap reaction to an offer."""
    keys = [name.translate(PLAIN) for name in KEYCAPS]
    place = keys.index(key.translate(PLAIN)) if key.translate(PLAIN) in keys else len(values)
    return values[place] if place < len(values) else None


def render_grant(words: GrantWords) -> str:
    choices = [f"{key} {label}" for key, (label, _) in zip(KEYCAPS, words.buttons, strict=False)]
    return "\n".join([words.text, "", *choices]) if choices else words.text


def is_whole(prompt: Prompt) -> bool:
    """Whether the message shows everything that a reaction would agree to: no part is missing or omitted above it."""
    return prompt.asked_whole and not lines_above(prompt) and len(escape_controls(prompt.asked)) <= LONGEST


def find_reaction(prompt: Prompt, key: str) -> Button | None:
    return {name.translate(PLAIN): button for name, button in reactions(prompt).items()}.get(key.translate(PLAIN))


def render_prompt(record: PromptRecord, session: SessionRecord, host: str) -> str:
    prompt = record.prompt
    asked = asked_text(prompt) or t("(the screen shows no text)")
    missing = count_missing(quotes_of(prompt, titled=True), "atlasbridge approvals")
    cut = f"\n{missing}" if missing else ""
    if not prompt.idle and not is_whole(prompt):
        cut += f"\n({t('cut, or not whole')}: atlasbridge reply {short_id(record.prompt_id)})"
    lines = [f"{key} {button.label}" for key, button in reactions(prompt).items()]
    lines += [f"{WHILE} {t('Allow for a while …')}"] if offers_grant(prompt) else []
    ways = t("React, or reply to this message.") if lines else t("Reply to this message.")
    effects = [effects] if (effects := render_effects(prompt)) else []
    about = [*effects, render_header(prompt, session, host, titled=True)]
    head = render_title(prompt, session)
    return "\n".join([head, "", asked[:LONGEST] + cut, "", *about, "", *lines, f"{ways} {render_deadline(record)}"])


def text_message(body: str, loud: bool) -> dict[str, Any]:
    """A message that is not loud is a notice, which makes no sound."""
    return {"msgtype": "m.text" if loud else "m.notice", "body": body}


def edit_message(event_id: str, body: str) -> dict[str, Any]:
    fresh = text_message(body, loud=False)
    return {**text_message(f"* {body}", False), "m.new_content": fresh, "m.relates_to": _relates("m.replace", event_id)}


def reply_message(event_id: str, body: str, loud: bool) -> dict[str, Any]:
    return {**text_message(body, loud), "m.relates_to": {"m.in_reply_to": {"event_id": event_id}}}


def reaction(event_id: str, key: str) -> dict[str, Any]:
    return {"m.relates_to": {**_relates("m.annotation", event_id), "key": key}}


def _relates(kind: str, event_id: str) -> dict[str, Any]:
    return {"rel_type": kind, "event_id": event_id}


def parse_target(event: dict[str, Any]) -> tuple[str, str, bool]:
    """Return the event it refers to, the text, and whether it is a reaction. The event is "" if there is no
    reference."""
    content = event.get("content")
    relates = content.get("m.relates_to") if isinstance(content, dict) else None
    if not isinstance(relates, dict) or not isinstance(content, dict):
        return "", "", False
    if event.get("type") == "m.reaction":
        return str(relates.get("event_id", "")), str(relates.get("key", "")), True
    meant = relates.get("m.in_reply_to")
    said = strip_quote(str(content.get("body", ""))) if content.get("msgtype") == "m.text" else ""
    if event.get("type") != "m.room.message" or relates.get("rel_type") or not isinstance(meant, dict) or not said:
        return "", "", False  # neither the name of a picture nor an empty message is an answer
    return str(meant.get("event_id", "")), said, False


def strip_quote(body: str) -> str:
    """Remove the quote that older clients put before a reply, each line with `> `."""
    lines = body.split("\n")
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip()
