"""The Slack channel: sends prompts to every approver and receives clicks, modals and thread replies.

The gate decides about replies. `api` transports messages, `blocks` renders.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels import card as cards
from atlasbridge.channels.callback import expand_callback, parse_callback
from atlasbridge.channels.card import Card
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.commands import ABOUT_SESSION, Command
from atlasbridge.channels.incoming import EDITED, Doubt, Sent, find_target
from atlasbridge.channels.language import reading, t
from atlasbridge.channels.outbox import EDIT, Params, Place
from atlasbridge.channels.settings import SlackSettings
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.slack.api import Link, SlackApi, moment_of
from atlasbridge.channels.slack.blocks import (
    CALLBACK,
    FIELD,
    SIGN,
    clicked_value,
    parse_picked,
    parse_slash,
    plain_text,
)
from atlasbridge.channels.templates import reads_as_words, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord, session_name
from atlasbridge.core.values import replace

# Reads the kind, the id and the sender of a Socket Mode envelope. Pure.
Payload = dict[str, Any]
KINDS = {"event_callback": "events_api", "block_actions": "interactive", "view_submission": "interactive"}


@dataclass(frozen=True, slots=True)
class Sender:
    """`teams` has more than one element if a person of a connected workspace writes here."""

    user_id: str
    teams: frozenset[str]
    name: str = ""


def kind_of(payload: Payload) -> str:
    """Return the kind of envelope that contained this payload."""
    return "slash_commands" if "command" in payload else KINDS.get(str(payload.get("type")), "")


def key_of(kind: str, payload: Payload) -> str:
    """A key that stays the same when Slack sends an update again; envelope ids change."""
    if kind == "events_api":
        return str(payload.get("event_id"))
    if kind == "slash_commands":
        return f"slash:{payload.get('trigger_id')}"
    if payload.get("type") == "view_submission":
        view = payload.get("view") or {}
        return f"view:{view.get('id')}:{view.get('hash')}"
    clicked = (payload.get("actions") or [{}])[0]
    return f"click:{payload.get('user', {}).get('id')}:{clicked.get('action_ts')}:{clicked.get('action_id')}"


def room_at(payload: Payload) -> str:
    """Return the room that the update comes from; "" for a modal."""
    where = payload.get("channel") or payload.get("channel_id") or (payload.get("event") or {}).get("channel") or ""
    return str(where.get("id") if isinstance(where, dict) else where)


def parse_sender(kind: str, payload: Payload) -> Sender | None:
    """Return None if no person sent it: other kinds of events, and the bot's own messages."""
    match kind:
        case "events_api":
            return _author(payload, payload.get("event") or {})
        case "interactive":
            user: Payload = payload.get("user") or {}
            team_id = (payload.get("team") or {}).get("id")
            return _sender(user.get("id"), team_id, user.get("team_id", team_id), str(user.get("name") or ""))
        case "slash_commands":
            return _sender(payload.get("user_id"), payload.get("team_id"), payload.get("team_id"))
    return None


def _author(payload: Payload, event: Payload) -> Sender | None:
    author: Payload = event.get("message", event) if event.get("subtype") == "message_changed" else event
    if event.get("type") != "message" or author.get("bot_id") or not author.get("user"):
        return None
    team_id = payload.get("team_id")
    return _sender(author["user"], team_id, event.get("team", team_id))


def _sender(user_id: object, team_id: object, own_team_id: object, name: str = "") -> Sender:
    return Sender(str(user_id), frozenset({str(team_id), str(own_team_id)}), name)


MARKING = ("checkboxes", "multi_static_select")
HEARD_SUBTYPES = (None, "thread_broadcast")
MOST_FILES = 10  # in one message

log = logging.getLogger(__name__)


class SlackChannel(ChatChannel):
    """One thread per session, in the configured channels: it contains the session's prompts and notices. Direct
    messages have no threads, because a question in a thread is easy to miss there."""

    name = "slack"
    title = "Slack"
    sign = SIGN
    muted = "no reminders and notices. Prompts still make a sound, because Slack has no silent messages."
    piece = blocks.QUOTE_LIMIT
    confirms = True
    threads = True
    hint = "invite the app to the channel, check its scopes, and see: atlasbridge hub status"

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = SlackSettings.model_validate(dict(settings))
        self._api = SlackApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._furnish(own, self._api, lambda room: own.messages_per_s, own.channels if own.threads else ())
        self._connection = Link(own, self._api, self, self.state_changed)

    # required by the base class

    async def _chats(self) -> list[str]:
        """The direct messages of the approvers and the configured channels, without people who cannot be reached."""
        users = [f"{self._own.team_id}/{user}" for user in self._own.allowed_users]
        await self._open_rooms(users, self._open_dm, bool(self._own.channels))
        return [*self._rooms.values(), *self._own.channels]

    def _paint(self, card: Card) -> Params:
        return blocks.render(card)

    def _paint_file(self, title: str, name: str, content: bytes, picture: bool) -> Params:
        return {"text": title, "document": (name, content)}

    def _question(self, event: PromptRecord, session: SessionRecord) -> Card:
        return blocks.question(event, session, self._host)

    async def _open_dm(self, user: str) -> str:
        return await self._api.open_dm(_own_id(user))

    def _within(self, chat: str, session: SessionRecord | None, loud: bool = False) -> Params:
        thread = self._threads.thread_of(chat, session.session_id) if session is not None else ""
        return ({"thread_ts": thread} | ({"reply_broadcast": True} if loud else {})) if thread else {}

    def _beside(self, place: Place) -> Params:
        return {"thread_ts": self._root(place), "reply_broadcast": True}

    def _inside(self, origin: Asked) -> Params:
        return {"thread_ts": origin.thread} if origin.thread else {}

    def _root(self, place: Place) -> str:
        """Return the thread for replies to this message: its session's thread, or the message's own thread."""
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        return (self._threads.thread_of(place[0], record.session_id) if record else "") or place[1]

    def tell(self, token: Any, sentence: str) -> None:
        """Answer a text in its thread, and a click with a message that only the person sees."""
        if token.token and token.room:
            only = {"only_for": _own_id(token.user)}
            self._outbox.post(token.room, self._paint(cards.notice(sentence)) | only, EDIT)
        elif token.room:
            super().tell(token, sentence)

    async def make_thread(self, room: str, session: SessionRecord) -> str:
        begins = f"🧵 {session_name(session)} · {tool_name(session)} · {short_id(session.session_id)} · {session.cwd}"
        return (await self._outbox.send(room, self._paint(cards.notice(begins)))).message

    async def state_changed(self, state: str, detail: str) -> None:
        if state == "unauthorized":
            self.hub_api.note("CHANNEL_UNAUTHORIZED", channel="slack")
        await super().state_changed(state, detail)
        if state == "ok":
            self._tasks.hold(self._learn_names())

    async def _learn_names(self) -> None:
        """Load the names of people, so that messages show a name instead of an id."""
        for user_id in self._own.allowed_users:
            asked = {"user": user_id, "include_locale": "true"}
            user = (await self._api.call("users.info", asked)).get("user") or {}
            profile = user.get("profile") or {}
            called = profile.get("display_name") or user.get("real_name") or user.get("name")
            self._people.learn(f"{self._own.team_id}/{user_id}", called, user.get("locale"), user.get("tz"))

    async def _obey(self, origin: Asked, command: Command) -> None:
        """Answer in the session's thread if the command came from there, otherwise in the person's direct messages."""
        in_thread = not origin.token and self._threads.session_at(origin.room, origin.thread)
        if not (in_thread and command.name in ABOUT_SESSION):
            try:
                room = self._rooms[origin.user] = self._rooms.get(origin.user) or await self._open_dm(origin.user)
            except ChannelError as fault:
                log.warning("a command could not be answered: %s", fault)
                return
            origin = replace(origin, room=room, thread="", token="")
        with reading(self.reader_of(origin.room)):
            await super()._obey(origin, command)

    async def _ask_for_words(self, origin: Asked, record: PromptRecord, label: str) -> None:
        """One attempt without a queue, because the trigger expires after three seconds."""
        view = blocks.render_modal(record, self._session(record), label)
        try:
            await self._api.call("views.open", {"trigger_id": origin.token, "view": view})
        except ChannelError as fault:
            log.warning("a text field could not be shown: %s", fault)
            self.tell(origin, t("The text field could not be shown. Reply in the thread of the prompt instead."))

    # called by the link

    async def admit(self, kind: str, payload: Payload) -> str:
        """Store the update in the inbox once. Updates from unknown senders and the bot's own messages are ignored."""
        self.heard()
        return await self._admit(key_of(kind, payload), payload) if self._is_ours(kind, payload) else "copy"

    async def take(self, kind: str, payload: Payload, news: str) -> None:
        await self._process_new(key_of(kind, payload), payload, news)

    # what people do

    async def _process(self, update_id: str, update: Any, seen_before: bool) -> bool:
        kind = kind_of(update)
        sender = parse_sender(kind, update)
        if sender is None or not self._is_ours(kind, update):
            return False
        user = f"{self._own.team_id}/{sender.user_id}"
        origin = Asked(room=room_at(update), user=user, update_id=update_id, seen_before=seen_before)
        with reading(self.reader_of(origin.room)):
            match kind, update.get("type"):
                case "interactive", "block_actions":
                    return self._on_click(origin, update)
                case "interactive", "view_submission":
                    return self._on_modal(origin, update)
                case "events_api", _:
                    return self._on_event(origin, update["event"])
                case "slash_commands", _:
                    self._command(replace(origin, token="slash"), parse_slash(update))
        return False

    def _is_ours(self, kind: str, payload: Payload) -> bool:
        """Whether the update comes from an allowed person of our workspace, both compared by id."""
        sender = parse_sender(kind, payload)
        if sender is None:
            return False
        if sender.teams == {self._own.team_id} and sender.user_id in self._own.allowed_users:
            person_id = f"{self._own.team_id}/{sender.user_id}"
            if not self._people.name(person_id):  # prefer the profile's name if it is known
                self._people.learn(person_id, sender.name)
            return True
        self._strangers.note(f"{'+'.join(sorted(sender.teams))}/{sender.user_id}")
        return False

    def _on_click(self, origin: Asked, payload: Payload) -> bool:
        message = str((payload.get("container") or {}).get("message_ts") or "")
        clicked = (payload.get("actions") or [{}])[0]
        if clicked.get("type") in MARKING:
            return False  # Slack stores the marks until they are sent
        thread = self._root((origin.room, message))
        origin = replace(origin, message=message, thread=thread, token=str(payload.get("trigger_id") or "press"))
        return self._on_press(origin, clicked_value(clicked), parse_picked(payload))

    def _on_modal(self, origin: Asked, payload: Payload) -> bool:
        view = payload.get("view") or {}
        callback = parse_callback(view.get("private_metadata"))
        values = (view.get("state") or {}).get("values") or {}
        text = ((values.get(FIELD) or {}).get(FIELD) or {}).get("value")
        if view.get("callback_id") != CALLBACK or callback is None or not isinstance(text, str):
            return False
        record = self.hub_api.prompt(callback.prompt_id)
        places = self._shown.places(record.prompt_id) if record else []
        origin = replace(origin, room=places[0][0] if places else "", token="modal")
        if not self.is_within_limit(origin, record):
            return False
        if record is None:
            ids = {"session_id": callback.session_id, "nonce": callback.nonce}
            return self._deliver(origin, callback.prompt_id, text, **ids)
        session_id, nonce, _ = expand_callback(callback, record)
        as_text = callback.value == "words" or reads_as_words(record.prompt, text)
        return self._deliver(origin, record.prompt_id, text, session_id=session_id, nonce=nonce, as_text=as_text)

    def _on_event(self, origin: Asked, event: Payload) -> bool:
        changed = event.get("subtype") == "message_changed"
        message = event.get("message", {}) if changed else event
        room, thread = origin.room, str(message.get("thread_ts") or "")
        replied = self._shown.prompt_at((room, thread)) if thread else ""
        about = self._threads.session_at(room, thread)
        if event.get("channel_type") != "im" and not replied and not about:
            return False  # a conversation between people in a channel
        ts = str(message.get("ts") or "")
        origin = replace(origin, message=ts, thread=thread or ts, at=moment_of(ts))
        said = plain_text(str(event.get("text") or ""))
        command = self._read_command(said, replied)
        if changed:
            if not about:
                self.tell(origin, t(EDITED))
        elif command and (not thread or about or replied):
            self._command(origin, command)
        elif event.get("files"):
            self._on_files(origin, event["files"], said, self._meant(origin, replied, bool(thread), about), about)
        elif event.get("subtype") in HEARD_SUBTYPES:
            target = self._meant(origin, replied, bool(thread), about)
            return target is not None and self._on_text(origin, target, said)
        return False

    def _on_files(
        self, origin: Asked, files: list[Payload], said: str, target: PromptRecord | Doubt | None, about: str
    ) -> None:
        """Transcribe audio; save other files in the session's folder. The text of the message is used once."""
        meant = target.session_id if isinstance(target, PromptRecord) else about
        for file in files[:MOST_FILES]:
            if file.get("subtype") == "slack_audio" or str(file.get("mimetype")).startswith("audio/"):
                self._hear(origin, self._sent(file), target)
            else:
                self._keep_file(origin, self._sent(file), said, meant)
                said = ""

    def _sent(self, file: dict[str, Any]) -> Sent:
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        fetch = functools.partial(self._api.download, url, str(file.get("mimetype")))
        return Sent(str(file.get("name") or "file"), int(file.get("size") or 0), fetch)

    def _meant(self, origin: Asked, replied: str, threaded: bool, about: str) -> PromptRecord | Doubt | None:
        """A text in a session's thread answers that session's prompt, or else is a conversation between people
        (None)."""
        if not about:
            return self._target(origin, replied, threaded)
        found = find_target(self.hub_api, self._shown, origin.room, origin.at, about, origin.seen_before)
        if isinstance(found, PromptRecord):
            return found if found.session_id == about else None
        offered = tuple(record for record in found.offered if record.session_id == about)
        return replace(found, offered=offered) if offered else None


def _own_id(user: str) -> str:
    """The id without the workspace."""
    return user.rpartition("/")[2]
