"""The Matrix channel: one room without encryption. Reactions are the buttons. The gate decides about replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import quote, unquote

import httpx

from atlasbridge.channels import card as cards
from atlasbridge.channels import templates
from atlasbridge.channels.base import TaskSet
from atlasbridge.channels.callback import Verb
from atlasbridge.channels.card import Card, Press, button_of
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.excerpt import LEAST_QUOTE, SAYS, Quote, asked_text, is_ambiguous, lines_above
from atlasbridge.channels.incoming import EDITED
from atlasbridge.channels.language import Reader, common_reader, known_language, language_key, reading, t
from atlasbridge.channels.outbox import Connection, Params, Place, Posted, Refused, Unreachable
from atlasbridge.channels.settings import MatrixSettings
from atlasbridge.channels.setup_clients import Person
from atlasbridge.channels.templates import Button, Role, render_buttons
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import Prompt, PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

SINCE = "matrix.since"
HINT = "check homeserver, access_token and room of [channels.matrix]"
ENCRYPTED = "This room is encrypted, and I cannot read it. Use a room without encryption."
ONLY_TEXT = "Only text and reactions work here."
FILES = ("m.image", "m.file", "m.audio", "m.video")
HEARD = ("m.reaction", "m.room.message", "m.room.encrypted")


class MatrixChannel(ChatChannel):
    name = "matrix"
    personal = False
    title = "Matrix"
    sign = "!"
    muted = "prompts arrive without a sound; reminders and notices do not arrive."
    piece = 16_000
    hint = HINT
    hushed: ClassVar[Params] = {"msgtype": "m.notice"}

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = MatrixSettings.model_validate(dict(settings))
        self._chat = as_place(own.room)
        api = MatrixApi(own.homeserver, own.access_token.get_secret_value(), own.room, own.request_timeout_s)
        api.noted = self._note_keys
        self._api = api
        self._furnish(own, api, lambda room: own.messages_per_s)
        self._connection = Sync(api, hub_api, self.take, own, self.state_changed)

    # required by the base class

    async def _chats(self) -> list[str]:
        """Raise ChannelError for an encrypted room, because replies there cannot be read."""
        if await self._api.is_encrypted():
            raise ChannelError(IS_ENCRYPTED, "use a room without encryption: atlasbridge setup --channel matrix")
        return [self._chat]

    def _paint(self, card: Card) -> Params:
        return render(card)

    def _paint_file(self, title: str, name: str, content: bytes, picture: bool) -> Params:
        kind = "m.image" if picture else "m.file"
        return {"msgtype": kind, "body": escape_controls(title), "document": (name, content)}

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        """Another attempt, also by another process, makes no second message."""
        return super()._paint_prompt(event, session, chat, short) | {"txn": f"ask.{event.prompt_id}"}

    def _question(self, event: PromptRecord, session: SessionRecord) -> Card:
        return question(event, session, self._host)

    def _write_current(self, record: PromptRecord | None) -> None:
        """An edit is one more event that the room keeps for ever, so the remaining time is not updated."""

    def _make_sure(self, origin: Asked, record: PromptRecord, sure: Card) -> None:
        """A message keeps its reactions, so the second one is to a message of its own."""
        self._post(origin, self._paint(Card(text=sure.kind, rows=sure.rows[:1])) | self._answering(origin))

    def _beside(self, place: Place) -> Params:
        return {"m.relates_to": {"m.in_reply_to": {"event_id": unquote(place[1])}}}

    def _answering(self, origin: Asked) -> Params:
        return self._beside(origin.place)

    def reader_of(self, chat: str) -> Reader:
        """What all people of the room have in common, unless a language was chosen there."""
        identities = [f"matrix:{one}" for one in self._own.allowed_users]
        common = common_reader(self.hub_api, identities, self._own.language)
        chosen = self.hub_api.recall(language_key(self.name, chat))
        return Reader(known_language(chosen, common.language), common.zone)

    # called by the connection

    async def take(self, events: Sequence[dict[str, Any]]) -> None:
        self.heard()
        for event in events:
            sender, event_id = str(event.get("sender", "")), str(event.get("event_id", ""))
            if sender == self._connection.bot or not event_id or event.get("type") not in HEARD:
                continue
            if sender not in self._own.allowed_users:
                self._strangers.note(sender[:255])
                continue
            update = {name: event.get(name) for name in ("type", "sender", "content")}
            if (news := await self._admit(event_id, update)) != "copy":
                await self._process_new(event_id, update, news)

    # what people do

    async def _process(self, update_id: str, update: Any, seen_before: bool) -> bool:
        meant, said, is_reaction = parse_target(update)
        message = as_place(meant if is_reaction else update_id)
        origin = Asked(self._chat, str(update.get("sender")), message, update_id=update_id, seen_before=seen_before)
        self._people.learn(origin.user, origin.user)  # without the channel's name before it
        with reading(self.reader_of(self._chat)):
            if is_reaction:
                await self._api.wait_for_confirmations()
                data = self._find_key(origin.place, said)
                return bool(data) and self._on_press(origin, data)
            if said:
                return self._on_words(origin, said, (self._chat, as_place(meant)))
            if sentence := _why_not(update):
                self.tell(origin, t(sentence))
        return False

    def _find_key(self, place: Place, key: str) -> str:
        """The button that this reaction presses; "" for a reaction that means nothing here."""
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        known = {name: button.data for name, button in offered(record).items()} if record else {}
        known |= json.loads(self.hub_api.recall(_note(unquote(place[1]))) or "{}")
        return {name.translate(PLAIN): str(data) for name, data in known.items()}.get(key.translate(PLAIN), "")

    def _note_keys(self, event_id: str, keys: Mapping[str, str]) -> None:
        """The hub keeps what the reactions to a message mean, so a restart loses none."""
        self.hub_api.remember(_note(event_id), json.dumps(keys))


def _note(event_id: str) -> str:
    return f"matrix.keys.{event_id}"


def _why_not(event: Mapping[str, Any]) -> str:
    """What to say about a message without words; "" for what nobody wrote here."""
    content = event.get("content")
    relates = content.get("m.relates_to") if isinstance(content, dict) else None
    if event.get("type") == "m.room.encrypted":
        return ENCRYPTED
    if isinstance(relates, dict) and relates.get("rel_type") == "m.replace":
        return EDITED
    return ONLY_TEXT if isinstance(content, dict) and content.get("msgtype") in FILES else ""


# The calls of the Matrix client-server API that the channel needs: identify itself, send, and wait for new events.

IS_ENCRYPTED = "this room is encrypted, and AtlasBridge cannot read what is said there"
REACTION_TRIES = 10  # a homeserver lets an account send only so many events a minute


def as_place(event_id: str) -> str:
    """An id without the characters that part the ids of a delivery; ids of old rooms can have them."""
    return quote(event_id, safe="$!:")


class MatrixApi:
    """`noted` learns what the reactions to a message mean."""

    noted: Callable[[str, Mapping[str, str]], None]

    def __init__(self, homeserver: str, access_token: str, room: str, timeout_s: float) -> None:
        self._server, self._base = homeserver.rstrip("/"), f"{homeserver.rstrip('/')}/_matrix/client/v3"
        self._room = room
        self._encrypted: bool | None = None  # None: not checked yet
        self._unconfirmed: set[asyncio.Future[None]] = set()
        self._client = httpx.AsyncClient(headers={"Authorization": f"Bearer {access_token}"}, timeout=timeout_s)
        self._tasks = TaskSet("matrix")

    async def whoami(self) -> str:
        return str((await self._call("GET", f"{self._base}/account/whoami")).get("user_id", ""))

    async def create_room(self, people: list[str]) -> str:
        """Create a private room without encryption, invite these people, and use it from now on."""
        wanted = {"preset": "private_chat", "name": "AtlasBridge", "invite": people, "is_direct": len(people) == 1}
        self._room = str((await self._call("POST", f"{self._base}/createRoom", wanted)).get("room_id", ""))
        return self._room

    async def is_encrypted(self) -> bool:
        if self._encrypted is None:
            found = await self._call("GET", self._path("state", "m.room.encryption", ""), missing={})
            self._encrypted = bool(found.get("algorithm"))
        return self._encrypted

    async def send(self, kind: str, content: Params, txn: str) -> str:
        """Send an event. A retry with the same `txn` does not create a second event."""
        return str((await self._call("PUT", self._path("send", kind, txn), content)).get("event_id", ""))

    async def post(self, chat: str, params: Params) -> Posted:
        confirmed = asyncio.get_running_loop().create_future()
        self._unconfirmed.add(confirmed)
        try:
            return await self._post(params)
        finally:
            self._unconfirmed.discard(confirmed)
            confirmed.set_result(None)

    async def wait_for_confirmations(self) -> None:
        """Wait until the server has confirmed what is being sent: a reaction to it can be faster."""
        if self._unconfirmed:
            await asyncio.wait(self._unconfirmed)

    async def _post(self, params: Params) -> Posted:
        """`params["document"]` is a file: (name, content)."""
        txn = params.setdefault("txn", new_id())
        content: Params = {name: params[name] for name in ("msgtype", "body", "m.relates_to") if name in params}
        if "document" in params:
            name, data = params["document"]
            path = f"{self._server}/_matrix/media/v3/upload?filename={quote(name)}"
            content |= {"filename": name, "url": (await self._call("POST", path, data=data)).get("content_uri")}
        event_id = await self.send("m.room.message", content, txn)
        self._offer(event_id, params, params.get("offers", ()), txn)
        return Posted(as_place(event_id))

    async def edit(self, place: Place, params: Params) -> None:
        event_id, txn = unquote(place[1]), params.setdefault("edit", new_id())
        fresh = {"msgtype": "m.notice", "body": params["body"]}
        told = {"m.new_content": fresh, "m.relates_to": {"rel_type": "m.replace", "event_id": event_id}}
        await self.send("m.room.message", {**fresh, "body": f"* {params['body']}", **told}, txn)
        keys = params.get("keys", {})
        self._offer(event_id, params, [key for key in keys if key not in KEYCAPS], txn)  # those are there already

    def _offer(self, event_id: str, params: Params, offers: Sequence[str], txn: str) -> None:
        """Add our own reactions, so that a person only has to tap one."""
        if keys := params.get("keys"):
            self.noted(event_id, keys)
        if offers:
            self._tasks.hold(self._react(event_id, offers, txn))

    async def _react(self, event_id: str, offers: Sequence[str], txn: str) -> None:
        for number, key in enumerate(offers):
            for again in range(REACTION_TRIES):
                try:
                    await self.send("m.reaction", reaction(event_id, key), f"{txn}.{number}")
                except Refused as fault:
                    if fault.flood_s is None or again == REACTION_TRIES - 1:
                        raise
                    await asyncio.sleep(fault.flood_s)
                else:
                    break

    async def sync(self, since: str, wait_s: int) -> tuple[str, list[dict[str, Any]]]:
        """Return the next token and the new events in the room. Without a token, start from now."""
        only = {
            "room": {"rooms": [self._room], "timeline": {"limit": 100 if since else 0}, "state": {"types": []}},
            "presence": {"types": []},
            "account_data": {"types": []},
        }
        params = {"filter": json.dumps(only), "timeout": str(wait_s * 1000 if since else 0)}
        params |= {"since": since} if since else {}
        found = await self._call("GET", f"{self._base}/sync", params=params, wait_s=wait_s)
        room = found.get("rooms", {}).get("join", {}).get(self._room, {})
        events = [one for one in room.get("timeline", {}).get("events", []) if since and isinstance(one, dict)]
        self._encrypted = self._encrypted or any(one.get("type") == "m.room.encryption" for one in events) or None
        return str(found.get("next_batch", "")), events

    def _path(self, *words: str) -> str:
        return "/".join([f"{self._base}/rooms", *(quote(word, safe="") for word in (self._room, *words))])

    async def _call(
        self,
        method: str,
        url: str,
        content: Any = None,
        params: dict[str, str] | None = None,
        wait_s: float = 0.0,
        missing: dict[str, Any] | None = None,
        data: bytes | None = None,
    ) -> dict[str, Any]:
        """`missing` is returned if the server does not know the resource."""
        limit = httpx.Timeout(self._client.timeout.read or 8.0, read=(self._client.timeout.read or 8.0) + wait_s)
        try:
            answer = await self._client.request(method, url, json=content, content=data, params=params, timeout=limit)
            found = answer.json()
        except (httpx.HTTPError, ValueError) as fault:
            raise Unreachable(f"Matrix could not be reached ({type(fault).__name__})", HINT) from None
        if answer.status_code == 200 and isinstance(found, dict):
            return found
        if answer.status_code == 404 and missing is not None:
            return missing
        told = found if isinstance(found, dict) else {}
        why = f"{answer.status_code} {told.get('errcode', '')}".strip()
        if answer.status_code >= 500:
            raise Unreachable(f"Matrix has a fault of its own: {why}", HINT)
        flood_s = float(told.get("retry_after_ms", 1000)) / 1000 if answer.status_code == 429 else None
        state = "unauthorized" if answer.status_code == 401 else "failing"
        raise Refused(f"Matrix refused: {why}", flood_s=flood_s, state=state)

    async def close(self) -> None:
        await self._tasks.close(grace_s=1.0)
        await self._client.aclose()


class Sync(Connection):
    title = "Matrix"

    def __init__(
        self,
        api: MatrixApi,
        hub_api: HubApi,
        take: Callable[[Sequence[dict[str, Any]]], Awaitable[None]],
        own: MatrixSettings,
        changed: Callable[[str, str], Awaitable[None]],
    ) -> None:
        super().__init__(own.backoff_first_s, changed)
        self._api, self._hub_api, self._take, self._wait_s = api, hub_api, take, own.poll_timeout_s

    async def _live(self) -> None:
        self.bot = self.bot or await self._api.whoami()
        while True:
            token, events = await self._api.sync(self._hub_api.recall(SINCE), self._wait_s)
            encrypted = await self._api.is_encrypted()
            await self._move("fault" if encrypted else "ok", IS_ENCRYPTED if encrypted else "")
            await self._take(events)
            self._hub_api.remember(SINCE, token)


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
        try:
            name = await self._api.whoami()
        except Refused as fault:
            raise ChannelError(str(fault), HINT) from None
        if not self._room:
            self._room = await self._api.create_room(list(self._people))
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
        asked = t("AtlasBridge asks: do you see this? React with {key}, or write anything.", key=YES)
        await self._api.post(self._room, {"msgtype": "m.text", "body": asked, "offers": [YES]})
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
WHILE, AT_LIMIT, AGAIN = "⏱", "⏰", "🔁"  # allow for a while, answer when a limit ends, ask again
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


def offered(record: PromptRecord) -> dict[str, Press]:
    """Return the reactions to a question: answers, and what else its buttons do in other chats."""
    found, buttons = reactions(record.prompt), {one.role: one for one in render_buttons(record.prompt)}
    known = {SHOW: Role.SHOW} if record.prompt.idle or not is_whole(record.prompt) else {WHILE: Role.GRANT}
    known[AT_LIMIT] = Role.LATER
    found = {key: buttons[role] for key, role in known.items() if role in buttons} | found
    return {key: button_of(record, button) for key, button in found.items()}


def keyed(card: Card) -> dict[str, Press]:
    """Return the reaction that presses each button of a card."""
    presses = [one for row in card.rows for one in row]
    if len(presses) == 1 and presses[0].role is Role.ANSWER:
        return {YES: presses[0]}
    if len(presses) == 1 and presses[0].data.startswith(f"{Verb.AGAIN}:"):
        return {AGAIN: presses[0]}
    return dict(zip(KEYCAPS, presses, strict=False))


def is_whole(prompt: Prompt) -> bool:
    """Whether the message shows everything that a reaction would agree to: no part is missing or omitted above it."""
    return prompt.asked_whole and not lines_above(prompt) and len(asked_text(prompt)) <= LONGEST - LEAST_QUOTE


def question(record: PromptRecord, session: SessionRecord, host: str) -> Card:
    """A reaction agrees at once, so the message shows all that it agrees with, also what the title names already."""
    card = cards.question(record, session, host, record.prompt.choices, 2000)
    agrees = any(one.role is not Role.REFUSE for one in reactions(record.prompt).values())
    if agrees and not is_ambiguous(record.prompt):
        hints = [one for one in card.quotes if one.caption == t(SAYS)]
        card = replace(card, quotes=(Quote("", asked_text(record.prompt)), *hints))
    return replace(card, hint="" if card.hint == t(templates.TAP) else card.hint)


def render(card: Card) -> Params:
    """The title, the tool's text, its origin, then the reactions with what they mean."""
    quotes, notes = card.fitted(LONGEST, len)
    asked = "\n\n".join(f"{one.caption}:\n{one.text}" if one.caption else one.text for one in quotes)
    about = "\n".join(part for part in (*notes, card.kind, card.header, card.listed) if part)
    of_question = card.asks is not None and not card.rows
    keys = offered(card.asks) if card.asks is not None and of_question else keyed(card)
    meanings = "\n".join(f"{key} {press.label.removeprefix(key).strip()}" for key, press in keys.items())
    ways = t("React, or reply to this message.") if of_question and keys else ""
    foot = "\n".join(part for part in (meanings, ways, card.hint, card.last) if part)
    body = "\n\n".join(part for part in (card.title, card.text, asked, about, foot) if part)
    kept = {} if of_question else {key: press.data for key, press in keys.items()}
    return {"msgtype": "m.text", "body": body, "offers": list(keys), "keys": kept}


def reaction(event_id: str, key: str) -> Params:
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": event_id, "key": key}}


def parse_target(event: Mapping[str, Any]) -> tuple[str, str, bool]:
    """Return the event it refers to, the text, and whether it is a reaction. The event is "" if there is no
    reference, and the text is "" if it is no answer, such as the name of a picture or an edit."""
    content = event.get("content")
    if not isinstance(content, dict):
        return "", "", False
    relates = content.get("m.relates_to")
    relates = relates if isinstance(relates, dict) else {}
    if event.get("type") == "m.reaction":
        return str(relates.get("event_id", "")), str(relates.get("key", "")), True
    said = strip_quote(str(content.get("body", ""))) if content.get("msgtype") == "m.text" else ""
    if event.get("type") != "m.room.message" or relates.get("rel_type") not in (None, "m.thread") or not said:
        return "", "", False
    meant = relates.get("m.in_reply_to")
    return str(meant.get("event_id", "")) if isinstance(meant, dict) else "", said, False


def strip_quote(body: str) -> str:
    """Remove the quote that older clients put before a reply, each line with `> `."""
    lines = body.split("\n")
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip()
