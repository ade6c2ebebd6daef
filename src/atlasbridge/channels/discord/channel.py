"""The Discord channel: direct messages with buttons to every operator. The gate decides about replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from atlasbridge.channels import grant_card, templates
from atlasbridge.channels.callback import (
    AGAIN,
    ALWAYS,
    ANSWER,
    GRANT,
    LATER,
    PAGE,
    SEND,
    SHOW,
    THIS,
    Callback,
    encode_callback,
    encode_verb,
    expand_callback,
    parse_callback,
)
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.commands import NOT_OURS, Command, is_about, parse_command
from atlasbridge.channels.discord.api import ONLY_YOU, SILENT, DiscordApi, Gateway
from atlasbridge.channels.excerpt import (
    LAST_OUTPUT,
    count_missing,
    cut_to,
    fit_quotes,
    quotes_of,
    render_effects,
    title_whole,
    warn_incomplete,
    whole_text,
)
from atlasbridge.channels.language import reading, t
from atlasbridge.channels.listening import (
    GONE,
    NOT_OPEN,
    Doubt,
    SeenUpdates,
    Strangers,
    find_target,
    offer,
    refuse_secret,
)
from atlasbridge.channels.outbox import EDIT, Params, Place
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.settings import DiscordSettings
from atlasbridge.channels.templates import Button, Role, needs_words, reads_as_words
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, PromptRecord
from atlasbridge.core.session.model import SessionRecord

# How a message looks. Discord reads Markdown, so the tool's text is in a code block, or escaped if it contains one.

LIMIT, BLOCK = 2000, 1800  # characters of a message, and of a code block that stands alone
LABEL, ROW, ROWS, OPTIONS = 80, 5, 5, 25
MOST_PIECES = 4  # a longer text is sent as a file
EDITED = "An edit changes nothing that was already taken. Write a new message instead."
ONLY_TEXT = "Only text and buttons are taken here."
COLOURS = {Role.REFUSE: 4, Role.ANSWER: 3}  # red, green; the others are grey
_MARKDOWN = re.compile(r"([\\*_`~|>#\[\]()<@:-])")


def plain(text: str) -> str:
    return _MARKDOWN.sub(r"\\\1", escape_controls(text))


def block(text: str) -> str:
    """The text as the tool wrote it."""
    return f"```\n{text}\n```" if "```" not in text and text.strip() else plain(text) or t("(blank)")


def button(label: str, custom_id: str, style: int = 2) -> Params:
    return {"type": 2, "style": style, "label": cut_to(label, LABEL, len), "custom_id": custom_id}


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
    shown = templates.render_buttons(record.prompt)
    answers = [one for one in shown if one.role in (Role.ANSWER, Role.ALWAYS)]
    refusing = [one for one in shown if one.role is Role.REFUSE][:ROW]
    others = [one for one in shown if one not in answers and one.role is not Role.REFUSE][:ROW]
    first = [[_button(record, one) for one in answers]]
    if marked := templates.pickable(record.prompt)[:OPTIONS]:
        chosen = set(templates.premarked(record.prompt))
        options = [_option(text, str(place), place in chosen) for place, text in marked]
        first = [[menu(encode_verb(record, SEND, ""), options, len(options))]]
    elif len(answers) > 2 * ROW:
        pages = [answers[at : at + OPTIONS] for at in range(0, min(len(answers), 3 * OPTIONS), OPTIONS)]
        first = [
            [menu(encode_verb(record, ANSWER, f"menu{at}"), [_option(one.label, _data(record, one)) for one in page])]
            for at, page in enumerate(pages)
        ]
    return rows(*first, [_button(record, one) for one in refusing], [_button(record, one) for one in others])


def _option(label: str, value: str, default: bool = False) -> Params:
    return {"label": cut_to(label, 100, len), "value": value, "default": default}


def _button(record: PromptRecord, one: Button) -> Params:
    return button(one.label, _data(record, one), COLOURS.get(one.role, 2))


def _data(record: PromptRecord, one: Button) -> str:
    if one.role is Role.LATER:
        return encode_verb(record, LATER, one.value)
    verb = {Role.SHOW: SHOW, Role.GRANT: GRANT, Role.ALWAYS: ALWAYS}.get(one.role, ANSWER)
    return encode_callback(record, one.value, verb)


def render_question(
    record: PromptRecord, session: SessionRecord, host: str, title: str, foot: list[str], ended: bool = False
) -> str:
    """Title, the tool's text in the room that is left, origin, then the foot."""
    prompt = record.prompt
    head = f"**{plain(cut_to(title, 200, len))}**"
    origin = cut_to(templates.render_header(prompt, session, host, titled=not ended), 200, len)
    foot = [plain(line) for line in (origin, *foot) if line]
    room = LIMIT - len("\n".join([head, *foot])) - 400
    quotes = fit_quotes(quotes_of(prompt, titled=True), room, lambda text: len(block(text)))
    quoted = [part for one in quotes for part in (f"*{plain(one.caption)}:*" if one.caption else "", block(one.text))]
    notes = [count_missing(quotes, t(templates.REST)), warn_incomplete(prompt), render_effects(prompt)]
    lines = [head, *quoted, *(f"**{plain(note)}**" for note in notes if note), *foot]
    return cut_to("\n".join(line for line in lines if line), LIMIT, len)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Asked):
    """`token` is set for a press, which is answered for its person only."""

    message: str
    token: str = ""
    at: float = 0.0


class DiscordChannel(ChatChannel):
    name = "discord"
    title = "Discord"
    sign = "!"
    muted = "prompts come without a sound, reminders and notices not at all."

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = DiscordSettings.model_validate(dict(settings))
        token = own.bot_token.get_secret_value()
        self._rooms: dict[str, str] = {}
        self._api = DiscordApi(token, own.api_url, own.request_timeout_s, clock)
        self._furnish(own, self._api, lambda room: own.messages_per_s)
        self._seen, self._strangers = SeenUpdates(hub_api, self.name), Strangers(hub_api, self.name)
        self._gateway = Gateway(self._api, token, self, own.backoff_first_s)

    # called by the hub

    def health(self) -> dict[str, Any]:
        gateway = self._gateway
        return {
            "state": gateway.state,
            "detail": gateway.detail,
            "bot": gateway.me.get("username", ""),
            **self.common_health(),
        }

    # required by the base class

    async def _serve(self) -> None:
        await self._gateway.run()

    async def _replay(self) -> None:
        for update_id, kept in self._seen.left_over():
            if kept is None or not await self._handle(update_id, kept["kind"], kept["event"], True):
                await self._seen.settle(update_id)

    async def _chats(self) -> list[str]:
        faults = set()
        for user in self._own.allowed_users:
            try:
                self._rooms[user] = self._rooms.get(user) or await self._api.open_dm(user)
            except ChannelError as fault:
                faults.add(str(fault))
        if not self._rooms:
            raise ChannelError("nobody was reached: " + "; ".join(sorted(faults)), self._hint)
        return list(self._rooms.values())

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        quiet = self._hushed if self._is_silent(event.prompt_id, chat) else {}
        if short:
            asks = t("{name} asks something", name=templates.session_name(session))
            return {"content": f"❗ **{plain(asks)}**\n{plain(t(templates.NOT_SHOWN))}"} | quiet
        prompt = event.prompt
        listed = templates.listed_choices(prompt, prompt.choices, 500)
        foot = [*listed, templates.render_hint(prompt, event.prompt_id), templates.render_deadline(event)]
        kind = templates.render_kind(prompt, session)
        title = templates.render_title(prompt, session)
        content = render_question(event, session, self._host, title, [kind, *foot])
        return {"content": content, "components": render_components(event)} | quiet

    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params:
        content = render_question(event, session, self._host, outcome.title, [outcome.detail], ended=True)
        again = [button(f"🔁 {t('Ask again')}", encode_verb(event, AGAIN, ""))] if outcome.again else []
        return {"content": content, "components": rows(again) if again else []}

    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str) -> Params:
        name = f"*{plain(templates.session_name(session))}*\n" if session is not None else ""
        return {"content": name + plain(cut_to(message, BLOCK // 2, len)) or "…"}

    def _paint_reminder(self, sentence: str, event: PromptRecord, chat: str) -> Params:
        spans = (("In 15 minutes", "15"), ("In an hour", "60"))
        buttons = [button(f"💤 {t(span)}", encode_verb(event, LATER, minutes)) for span, minutes in spans]
        return self._paint_notice(sentence, None, chat) | {"components": rows(buttons)}

    def _owner(self, chat: str) -> str:
        user = next((user for user, room in self._rooms.items() if room == chat), "")
        return f"discord:{user}" if user else ""

    @property
    def _hushed(self) -> Params:
        return {"flags": SILENT}

    def _beside(self, place: Place) -> Params:
        return {"message_reference": {"message_id": place[1], "fail_if_not_exists": False}}

    @property
    def _hint(self) -> str:
        return "share a server with the bot, allow its direct messages, and see: atlasbridge hub status"

    def _tell(self, token: Any, sentence: str) -> None:
        self._say(token, {"content": plain(cut_to(sentence, BLOCK // 2, len))})

    def _say(self, origin: Origin, params: Params) -> None:
        """Answer a press for its person only, and a text with a reply."""
        if origin.token:
            path = f"/webhooks/{self._gateway.application_id}/{origin.token}"
            self._tasks.hold(self._api.call("POST", path, {**params, "flags": ONLY_YOU}))
        else:
            self._outbox.post(origin.room, params | self._beside((origin.room, origin.message)), EDIT)

    # called by the gateway

    def state_changed(self, state: str) -> None:
        if state == "ok":
            self.heard()
            self._tasks.hold(self.came_back())
        else:
            self.went_deaf()

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
        news = await self._seen.take(update_id, json.dumps({"kind": kind, "event": event}))
        if news == "copy":
            return
        if kind == "INTERACTION_CREATE":
            self._tasks.hold(
                self._api.call("POST", f"/interactions/{event['id']}/{event['token']}/callback", {"type": 6})
            )
        if not await self._handle(update_id, kind, event, news == "again"):
            await self._seen.settle(update_id)

    async def _handle(self, update_id: str, kind: str, event: dict[str, Any], again: bool) -> bool:
        """Return True if the update is settled later."""
        user = str((event.get("user") or event.get("author") or {}).get("id"))
        message = str((event.get("message") or event)["id"])
        at = ((int(event["id"]) >> 22) + 1_420_070_400_000) / 1000  # an id contains its time
        room, token = str(event["channel_id"]), str(event.get("token") or "")
        origin = Origin(
            room=room, user=user, update_id=update_id, seen_before=again, message=message, token=token, at=at
        )
        with reading(self.reader_of(origin.room)):
            if kind == "INTERACTION_CREATE":
                return self._on_press(origin, event["data"])
            if kind == "MESSAGE_UPDATE":
                if event.get("edited_timestamp"):
                    self._tell(origin, t(EDITED))
                return False
            return self._on_message(origin, event)

    def _on_press(self, origin: Origin, data: dict[str, Any]) -> bool:
        values = [str(one) for one in data.get("values") or []]
        callback = parse_callback(data.get("custom_id"))
        if callback is not None and callback.value.startswith("menu"):
            callback = parse_callback(values[0] if values else "")
        identity, place = f"discord:{origin.user}", (origin.room, origin.message)
        record = self.hub_api.prompt(callback.prompt_id) if callback else None
        known = self._shown.prompt_at(place)
        if callback is None or (known and (record is None or known != record.prompt_id)):
            self._tell(origin, t(NOT_OURS))
            return False
        if record is None or self.hub_api.seen_by(identity).prompt(record.prompt_id) is None:
            return self._pass(origin, callback, None)
        match callback.verb:
            case x if x == SHOW and record.prompt.idle:
                self._command(origin, Command("last", record.session_id))
            case x if x == SHOW:
                self._show(origin, record)
            case x if x == AGAIN:
                self._do(origin, self.request_again(record, identity))
                return True
            case x if x == LATER:
                self._do(origin, self.put_off(identity, record, callback.nonce, callback.value))
                return True
            case x if x == GRANT:
                self._do(origin, self._grant(origin, place, record, callback))
                return True
            case x if x in (ALWAYS, PAGE):
                self._make_sure(place, record, callback)
            case x if x == THIS:
                if (text := self._held.take(origin.room, callback.value)) is None:
                    self._tell(origin, t(GONE))
                    return False
                self.settle_which(place, record)
                return self._pass(origin, replace(callback, value=text), record, reads_as_words(record.prompt, text))
            case x if x == SEND:
                marked = sorted(int(one) for one in values if one.isdecimal())
                allowed = dict(templates.pickable(record.prompt))
                picked = templates.picked_value(record.prompt, [one for one in marked if one in allowed])
                return self._pass(origin, replace(callback, value=picked), record)
            case _:
                return self._pass(origin, callback, record)
        return False

    def _pass(self, origin: Origin, callback: Callback, record: PromptRecord | None, as_text: bool = False) -> bool:
        session_id, nonce, value = callback.session_id, callback.nonce, callback.value
        if record is not None:
            session_id, nonce, value = expand_callback(callback, record)
            value = callback.value if callback.verb in (THIS, SEND) else value
            if record.state in OPEN and nonce == record.nonce and not as_text and needs_words(record.prompt, value):
                label = next(one.label for one in record.prompt.choices if one.value == value)
                self._tasks.hold(self._ask_for_words(origin, record, label))
                return False
        if not self.is_within_limit(origin, record):
            return False
        ids = {"session_id": session_id, "nonce": nonce, "as_text": as_text}
        prompt_id = record.prompt_id if record else callback.prompt_id
        self.deliver(self.speak(f"discord:{origin.user}", prompt_id, value, origin, **ids))
        return True

    async def _ask_for_words(self, origin: Origin, record: PromptRecord, label: str) -> None:
        wanted = t("Write your words for “{label}” as a reply to this message.", label=templates.short_label(label))
        posted = await self._outbox.send(origin.room, {"content": f"✍ {plain(wanted)}"})
        self._shown.refer(record.prompt_id, (origin.room, posted.message))

    def _make_sure(self, place: Place, record: PromptRecord, callback: Callback) -> None:
        """An answer that is not asked again takes a second press, in the place of the first buttons."""
        params = self._paint_prompt(record, self._session(record), place[0], False)
        _, _, value = expand_callback(callback, record)
        lasting = [one for one in record.prompt.choices if one.always and one.value == value]
        if callback.verb == ALWAYS and lasting and record.state in OPEN:
            sure = button(templates.sure_label(lasting[0]), encode_callback(record, value), COLOURS[Role.ANSWER])
            back = button(f"‹ {t(templates.BACK)}", encode_verb(record, PAGE, "0"))
            params["components"] = rows([sure], [back])
            params["content"] = cut_to(f"**{plain(t(templates.SURE))}**\n{params['content']}", LIMIT, len)
        if record.state in OPEN:
            self._outbox.edit(place, params)

    def _show(self, origin: Origin, record: PromptRecord) -> None:
        again = templates.offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt)[-LAST_OUTPUT:] if again else whole_text(record.prompt)
        self._send_text(origin.room, t("Last output:") if again else title_whole(record.prompt), whole, "screen.txt")
        if again:
            params = {"content": plain(t("What should AtlasBridge do?")), "components": render_components(record)}
            self._tasks.hold(self._delivery.send_to(origin.room, record, lambda *_: dict(params), patient=True))

    async def _grant(self, origin: Origin, place: Place, record: PromptRecord, callback: Callback) -> str:
        if expand_callback(callback, record)[:2] != (record.session_id, record.nonce):
            return t(NOT_OURS)
        told = await grant_card.press(self.hub_api, record, callback.value, self.caller(f"discord:{origin.user}"))
        if isinstance(told, str):
            return told
        shown = [button(label, encode_verb(record, GRANT, value)) for label, value in told.buttons]
        params = {"content": plain(told.text), "components": rows(shown)}
        if told.beside:
            self._outbox.post(place[0], params | self._beside(place), EDIT)
        else:
            self._outbox.edit(place, params)
        return told.toast

    async def _settle(self, token: Any) -> None:
        await self._seen.settle(token.update_id)

    def _on_message(self, origin: Origin, event: dict[str, Any]) -> bool:
        text = str(event.get("content") or "")
        place = (origin.room, str((event.get("message_reference") or {}).get("message_id") or ""))
        wanted = self._shown.words_wanted_at(place)
        replied = wanted or self._shown.prompt_at(place)
        command = parse_command(text, "", self.sign)
        if command and (not replied or is_about(command)):
            self._command(
                origin, Command(command.name, f"{replied} {command.rest}".strip() if replied else command.rest)
            )
        elif not text:
            self._tell(origin, t(ONLY_TEXT))
        else:
            return self._on_text(origin, self._target(origin, replied, bool(place[1])), text, bool(wanted))
        return False

    def _target(self, origin: Origin, replied: str, is_reply: bool) -> PromptRecord | Doubt:
        if replied:
            return self.hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if is_reply:
            return offer(self.hub_api, self._shown, origin.room)
        chosen = self._commands.chosen(origin.room)
        return find_target(self.hub_api, self._shown, origin.room, origin.at, chosen, origin.seen_before)

    def _on_text(self, origin: Origin, target: PromptRecord | Doubt, text: str, as_words: bool) -> bool:
        if isinstance(target, Doubt):
            briefs = [(one, templates.render_brief(one.prompt, self._session(one))) for one in target.offered]
            which = [button(brief, encode_verb(one, THIS, origin.message[-12:])) for one, brief in briefs]
            if which:
                self._held.keep(origin.room, origin.message[-12:], text)
            self._say(origin, {"content": plain(target.told(self.sign)), "components": rows(which)})
        elif target.prompt.secret:
            self._tell(origin, refuse_secret(target))
        elif self.is_within_limit(origin, target):
            fields = {"session_id": target.session_id, "as_text": as_words or reads_as_words(target.prompt, text)}
            self.deliver(self.speak(f"discord:{origin.user}", target.prompt_id, text, origin, **fields))
            return True
        return False

    def _command(self, origin: Origin, command: Command) -> None:
        self._tasks.hold(self._obey(origin, command))

    async def _obey(self, origin: Origin, command: Command) -> None:
        spoken = await self._commands.run(origin.room, command, f"discord:{origin.user}", origin)
        if spoken.file is not None:
            self._outbox.post(
                origin.room, {"content": plain(spoken.text), "document": (spoken.name, spoken.file)}, EDIT
            )
        elif spoken.screen is not None:
            self._send_text(origin.room, spoken.text, spoken.screen, spoken.name)
        else:
            for piece in split_rows(plain(spoken.text).split("\n"), LIMIT, len):
                self._outbox.post(origin.room, {"content": piece}, EDIT)

    def _send_text(self, room: str, title: str, text: str, name: str) -> None:
        """A few messages if it fits, otherwise a file."""
        shown = escape_controls(text).rstrip() or t("(nothing)")
        pieces = split_rows(shown.split("\n"), BLOCK, len)
        if len(pieces) > MOST_PIECES or "```" in shown:
            self._outbox.post(room, {"content": plain(title), "document": (name, shown.encode())}, EDIT)
            return
        for number, piece in enumerate(pieces, 1):
            page = f" ({templates.page_of(number, len(pieces))})" if len(pieces) > 1 else ""
            self._outbox.post(room, {"content": f"{plain(cut_to(title, 60, len))}{page}\n{block(piece)}"}, EDIT)
