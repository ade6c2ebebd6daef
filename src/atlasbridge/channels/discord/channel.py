"""The Discord channel: direct messages with buttons to every operator. The gate decides about replies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels import card as cards
from atlasbridge.channels import templates
from atlasbridge.channels.callback import Verb, encode_verb, parse_callback
from atlasbridge.channels.card import Card, Press, grouped
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.discord.api import ONLY_YOU, SILENT, DiscordApi, Gateway
from atlasbridge.channels.excerpt import cut_to
from atlasbridge.channels.incoming import EDITED
from atlasbridge.channels.language import reading, t
from atlasbridge.channels.outbox import Params, Place
from atlasbridge.channels.settings import DiscordSettings
from atlasbridge.channels.templates import Role
from atlasbridge.core.clock import Clock
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord

# How a message looks. Discord reads Markdown, so the tool's text is in a code block, or escaped if it contains one.

LIMIT, BLOCK = 2000, 1800  # characters of a message, and of a code block that stands alone
LABEL, ROW, ROWS, OPTIONS = 80, 5, 5, 25
ONLY_TEXT = "Only text and buttons work here."
COLOURS = {Role.REFUSE: 4, Role.ANSWER: 3}  # red, green; the others are grey
_CARD_LINK = re.compile(r"🔗 https?://[a-z0-9.:\[\]-]+/#prompt/[a-zA-Z0-9-]+")
_MARKDOWN = re.compile(r"([\\*_`~|>#\[\]()<@:-])")


def plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", escape_controls(text))


def with_link(text: str) -> str:
    """The deadline, and the link to the card as Discord makes links: without a backslash in it."""
    return "\n".join(line if _CARD_LINK.fullmatch(line) else plain(line) for line in text.split("\n"))


def block(text: str) -> str:
    """The text as the tool wrote it."""
    return f"```\n{text}\n```" if "```" not in text and text.strip() else plain(text) or t("(blank)")


def button(label: str, custom_id: str, style: int = 2) -> Params:
    return {"type": 2, "style": style, "label": cut_to(label, LABEL), "custom_id": custom_id}


def menu(custom_id: str, options: list[Params], most: int = 1) -> Params:
    return {
        "type": 3,
        "custom_id": custom_id,
        "options": options,
        "min_values": 0 if most > 1 else 1,
        "max_values": most,
    }


def rows(*groups: list[Params]) -> list[Params]:
    """Each group begins a row of its own; what does not fit into five rows is left out."""
    made = [group[at : at + ROW] for group in groups for at in range(0, len(group), ROW)]
    return [{"type": 1, "components": row} for row in made[:ROWS]]


def render_components(record: PromptRecord) -> list[Params]:
    """Answers, then refusing answers apart, then the rest. Many answers are a menu, and so are several at once."""
    answers, refusing, others = grouped(record)
    first = [[_button(one) for one in answers]]
    if marked := templates.pickable(record.prompt)[:OPTIONS]:
        chosen = set(templates.premarked(record.prompt))
        options = [_option(text, str(place), place in chosen) for place, text in marked]
        first = [[menu(encode_verb(record, Verb.SEND), options, len(options))]]
    elif len(answers) > 2 * ROW:
        pages = [answers[at : at + OPTIONS] for at in range(0, min(len(answers), 3 * OPTIONS), OPTIONS)]
        first = [
            [menu(encode_verb(record, Verb.ANSWER, f"menu{at}"), [_option(one.label, one.data) for one in page])]
            for at, page in enumerate(pages)
        ]
    return rows(*first, [_button(one) for one in refusing[:ROW]], [_button(one) for one in others[:ROW]])


def _option(label: str, value: str, default: bool = False) -> Params:
    return {"label": cut_to(label, 100), "value": value, "default": default}


def _button(press: Press) -> Params:
    return button(press.label, press.data, COLOURS.get(press.role, 2))


def render(card: Card) -> Params:
    """The title, the tool's text in the room that is left, its origin, then the foot."""
    head = [f"**{plain(cut_to(card.title, 200))}**" if card.title else ""]
    origin = [plain(card.kind), plain(cut_to(card.header, 200))]
    foot = [plain(card.listed), plain(card.hint), with_link(card.last)]
    if card.quotes:
        foot = [*origin, *foot]
    else:
        head += [*origin, plain(card.text)]
    quoted: list[str] = []
    notes: list[str] = []
    if card.quotes:
        room = LIMIT - len("\n".join([*head, *foot])) - (400 if card.header else 20)
        quotes, notes = card.fitted(room, lambda text: len(block(text)))
        for quote in quotes:
            quoted += [f"*{plain(quote.caption)}:*" if quote.caption else "", block(quote.text)]
    lines = [*head, *quoted, *(f"**{plain(note)}**" for note in notes), *foot]
    shown = [[_button(one) for one in row] for row in card.rows]
    if len(shown) > ROWS:
        shown = [[one for row in shown for one in row]]
    components = render_components(card.asks) if card.asks and not shown else rows(*shown)
    return {"content": cut_to("\n".join(line for line in lines if line), LIMIT), "components": components}


class DiscordChannel(ChatChannel):
    name = "discord"
    title = "Discord"
    sign = "!"
    muted = "prompts arrive without a sound; reminders and notices do not arrive."
    piece = BLOCK
    hint = "share a server with the bot, allow its direct messages, and see: atlasbridge hub status"
    hushed: ClassVar[Params] = {"flags": SILENT}

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = DiscordSettings.model_validate(dict(settings))
        token = own.bot_token.get_secret_value()
        self._api = DiscordApi(token, own.api_url, own.request_timeout_s, clock)
        self._furnish(own, self._api, lambda room: own.messages_per_s)
        gateway = Gateway(self._api, token, self.take, own.backoff_first_s, self.state_changed)
        self._connection = self._gateway = gateway

    # required by the base class

    async def _chats(self) -> list[str]:
        await self._open_rooms(self._own.allowed_users, self._api.open_dm)
        return list(self._rooms.values())

    def _paint(self, card: Card) -> Params:
        return render(card)

    def _paint_file(self, title: str, name: str, content: bytes, picture: bool) -> Params:
        return {"content": plain(cut_to(title, BLOCK // 2)), "document": (name, content)}

    def _question(self, event: PromptRecord, session: SessionRecord) -> Card:
        return cards.question(event, session, self._host, event.prompt.choices, 500)

    def _beside(self, place: Place) -> Params:
        return {"message_reference": {"message_id": place[1], "fail_if_not_exists": False}}

    def _answering(self, origin: Asked) -> Params:
        return self._beside(origin.place)

    def _size(self, text: str) -> int:
        return max(len(block(text)), len(plain(text)))

    def tell(self, token: Any, sentence: str) -> None:
        """Answer a press for its person only, and a text with a reply."""
        if token.token:
            params = self._paint(cards.notice(sentence)) | {"flags": ONLY_YOU}
            path = f"/webhooks/{self._gateway.application_id}/{token.token}"
            self._tasks.hold(self._api.call("POST", path, params))
        else:
            super().tell(token, sentence)

    # called by the gateway

    async def take(self, kind: str, event: dict[str, Any]) -> None:
        """Store the update, acknowledge a press within Discord's three seconds, then process it."""
        self.heard()
        author = event.get("user") or event.get("author") or {}
        user = str(author.get("id"))
        if event.get("guild_id") or author.get("bot") or (kind == "INTERACTION_CREATE" and event.get("type") != 3):
            return
        if user not in self._own.allowed_users:
            self._strangers.note(user)
            return
        self._rooms[user] = str(event["channel_id"])
        self._people.learn(user, author.get("global_name") or author.get("username"), event.get("locale"))
        update_id = str(event["id"]) + (f".{event.get('edited_timestamp')}" if kind == "MESSAGE_UPDATE" else "")
        update = {"kind": kind, "event": event}
        news = await self._admit(update_id, update)
        if news == "copy":
            return
        if kind == "INTERACTION_CREATE":
            path = f"/interactions/{event['id']}/{event['token']}/callback"
            self._tasks.hold(self._api.call("POST", path, {"type": 6}))
        await self._process_new(update_id, update, news)

    # what people do

    async def _process(self, update_id: str, update: Any, seen_before: bool) -> bool:
        kind, event = update["kind"], update["event"]
        origin = Asked(
            room=str(event["channel_id"]),
            user=str((event.get("user") or event.get("author") or {}).get("id")),
            message=str((event.get("message") or event)["id"]),
            token=str(event.get("token") or ""),
            at=((int(event["id"]) >> 22) + 1_420_070_400_000) / 1000,  # an id contains its time
            update_id=update_id,
            seen_before=seen_before,
        )
        with reading(self.reader_of(origin.room)):
            if kind == "INTERACTION_CREATE":
                values = [str(one) for one in event["data"].get("values") or []]
                data = event["data"].get("custom_id")
                pressed = parse_callback(data)
                is_menu = pressed is not None and pressed.verb == Verb.ANSWER and pressed.value.startswith("menu")
                return self._on_press(origin, "".join(values[:1]) if is_menu else data, values)
            if kind == "MESSAGE_CREATE":
                return self._on_message(origin, event)
            if event.get("edited_timestamp"):
                self.tell(origin, t(EDITED))
        return False

    def _on_message(self, origin: Asked, event: dict[str, Any]) -> bool:
        text = str(event.get("content") or "")
        if not text:
            self.tell(origin, t(ONLY_TEXT))
            return False
        place = (origin.room, str((event.get("message_reference") or {}).get("message_id") or ""))
        return self._on_words(origin, text, place)
