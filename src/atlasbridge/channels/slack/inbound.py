"""Turns the actions of people in Slack into replies. It checks workspace, person and room; the gate decides the
rest."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from atlasbridge.channels.commands import NOT_OURS, Command, is_about, parse_command
from atlasbridge.channels.free_text import needs_words, reads_as_words
from atlasbridge.channels.language import Reader, reading, t
from atlasbridge.channels.listening import SeenUpdates, Strangers
from atlasbridge.channels.message_index import Shown
from atlasbridge.channels.outbox import Place
from atlasbridge.channels.receipts import People
from atlasbridge.channels.slack.api import moment_of
from atlasbridge.channels.slack.blocks import (
    AGAIN,
    CALLBACK,
    FIELD,
    GRANT,
    LATER,
    PICK,
    SHOW,
    SIGN,
    THIS,
    WRITE,
    Action,
    clicked_value,
    full_value,
    parse_action,
    parse_picked,
    parse_slash,
    plain_text,
)
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.channels.target import GONE, NOT_OPEN, NOTHING_OPEN, Doubt, Held, find_target, offer, refuse_secret
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord

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


log = logging.getLogger(__name__)
EDITED = "An edit changes nothing that was already taken. Write a new message instead."
NO_MARKS = "Slack did not say what is marked. Reply in the thread with the numbers instead."
MARKING = ("checkboxes", "multi_static_select")
HEARD_SUBTYPES = (None, "thread_broadcast")
MOST_FILES = 10  # in one message


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from. `thread` and `ts` are set for texts, which are answered in their thread."""

    room: str
    user: str
    thread: str = ""
    update_id: str = ""
    seen_before: bool = False
    ts: str = ""


class Integrations(Protocol):
    """The channel, as inbound calls it."""

    def reader_of(self, chat: str) -> Reader: ...
    def deliver(self, reply: InboundReply) -> None: ...
    def say(self, origin: Origin, sentence: str) -> None: ...
    def show_more(self, place: Place, record: PromptRecord) -> None: ...
    def ask_which(self, origin: Origin, doubt: Doubt) -> None: ...
    def ask_again(self, origin: Origin, record: PromptRecord) -> None: ...
    def grant(self, origin: Origin, place: Place, record: PromptRecord, value: str) -> None: ...
    def settle_which(self, place: Place, record: PromptRecord) -> None: ...
    def tidy(self, place: Place, record: PromptRecord) -> None: ...
    async def open_modal(self, origin: Origin, trigger_id: str, record: PromptRecord, label: str) -> None: ...
    def command(self, user: str, command: Command, origin: Origin | None = None) -> None: ...
    def later(self, origin: Origin, record: PromptRecord, nonce: str, what: str) -> None: ...
    def chosen(self, room: str) -> str: ...
    def session_at(self, room: str, thread: str) -> str: ...
    def keep_file(self, origin: Origin, file: Payload, caption: str, session_id: str) -> None: ...
    def hear(self, origin: Origin, file: Payload, then: Callable[[str], None]) -> None: ...
    def is_within_limit(self, token: Any, record: PromptRecord | None) -> bool: ...
    def speak(self, identity: str, prompt_id: str, value: str, token: Any, **fields: Any) -> InboundReply: ...


@dataclass(frozen=True, slots=True)
class Memory:
    """State that inbound shares with its channel."""

    shown: Shown
    people: People
    held: Held


class Inbound:
    def __init__(
        self, settings: SlackSettings, hub_api: HubApi, clock: Clock, memory: Memory, integrations: Integrations
    ) -> None:
        self._settings, self._hub_api, self._clock = settings, hub_api, clock
        self._shown, self._people, self._held = memory.shown, memory.people, memory.held
        self._integrations = integrations
        self._seen = SeenUpdates(hub_api, "slack")
        self._strangers = Strangers(hub_api, "slack")
        self._again: set[str] = set()

    async def admit(self, kind: str, payload: Payload) -> bool:
        """Store the update in the inbox once. Updates from unknown senders and the bot's own messages are ignored."""
        if not self._is_ours(kind, payload):
            return False
        key = key_of(kind, payload)
        news = await self._seen.take(key, json.dumps(payload, ensure_ascii=False))
        if news == "again":
            self._again.add(key)
        return news != "copy"

    async def take(self, kind: str, payload: Payload) -> None:
        """Process the update. It is settled at once, unless work for it continues in the background."""
        with reading(self._integrations.reader_of(room_at(payload))):
            later = await self._dispatch(kind, payload)
        if not later:
            await self._seen.settle(key_of(kind, payload))

    async def replay(self) -> None:
        """Process the updates that an earlier process acknowledged but did not finish; Slack does not send them
        again."""
        for key, payload in self._seen.left_over():
            kind = kind_of(payload) if payload is not None else ""
            if kind and self._is_ours(kind, payload):
                log.info("%s is taken up again", key)
                self._again.add(key)
                await self.take(kind, payload)
            else:
                await self._seen.settle(key)

    async def settle(self, origin: Origin) -> None:
        """The gate has decided about the reply."""
        await self._seen.settle(origin.update_id)

    async def _dispatch(self, kind: str, payload: Payload) -> bool:
        """Return True if the update is settled later: when its reply is decided or its work is done."""
        match kind, payload.get("type"):
            case "interactive", "block_actions":
                return await self._on_click(payload)
            case "interactive", "view_submission":
                return self._on_modal(payload)
            case "events_api", _:
                return self._on_event(payload)
            case "slash_commands", _:
                self._integrations.command(str(payload["user_id"]), parse_slash(payload))
        return False

    def _is_ours(self, kind: str, payload: Payload) -> bool:
        """Whether the update comes from an allowed person of our workspace, both compared by id."""
        sender = parse_sender(kind, payload)
        if sender is None:
            return False
        if sender.teams == {self._settings.team_id} and sender.user_id in self._settings.allowed_users:
            person_id = f"{self._settings.team_id}/{sender.user_id}"
            if not self._people.name(person_id):  # prefer the profile's name if it is known
                self._people.learn(person_id, sender.name)
            return True
        self._strangers.note(f"{'+'.join(sorted(sender.teams))}/{sender.user_id}")
        return False

    async def _on_click(self, payload: Payload) -> bool:
        room = str((payload.get("channel") or {}).get("id") or "")
        place = (room, str((payload.get("container") or {}).get("message_ts") or ""))
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        clicked = (payload.get("actions") or [{}])[0]
        if clicked.get("type") in MARKING:
            return False  # Slack stores the marks until they are sent
        action = parse_action(clicked_value(clicked))
        record = self._hub_api.prompt(action.prompt_id) if action else None
        known = self._shown.prompt_at(place)
        trigger = str(payload.get("trigger_id") or "")
        if action is None or (known and (record is None or known != record.prompt_id)):
            self._integrations.say(origin, t(NOT_OURS))
        elif record is None or self._is_hidden(record, origin):
            return self._pass_click(origin, place, action, None)
        elif action.verb == SHOW and record.prompt.idle:
            self._integrations.command(origin.user, Command("last", record.session_id), origin)
        elif action.verb == SHOW:
            self._integrations.show_more(place, record)
        elif action.verb == LATER:
            self._integrations.later(origin, record, action.nonce, action.value)
            return True
        elif action.verb == AGAIN:
            self._integrations.ask_again(origin, record)
            return True
        elif action.verb == GRANT:
            return self._on_grant(origin, place, action, record)
        elif action.verb == WRITE or self._wants_words(action, record):
            await self._integrations.open_modal(origin, trigger, record, _label(record, full_value(action, record)))
        elif action.verb == PICK:
            return self._pass_marks(origin, place, action, record, parse_picked(payload, record))
        elif action.verb == THIS:
            return self._on_which(origin, place, action, record)
        else:
            return self._pass_click(origin, place, action, record)
        return False

    def _on_grant(self, origin: Origin, place: Place, action: Action, record: PromptRecord) -> bool:
        if (action.session_id, action.nonce) != (record.session_id, record.nonce):
            self._integrations.say(origin, t(NOT_OURS))
        elif self._integrations.is_within_limit(origin, record):
            self._integrations.grant(origin, place, record, action.value)
            return True
        return False

    def _wants_words(self, action: Action, record: PromptRecord) -> bool:
        live = record.state in OPEN and action.nonce == record.nonce and action.verb not in (THIS, PICK)
        return live and needs_words(record.prompt, full_value(action, record))

    def _on_which(self, origin: Origin, place: Place, action: Action, record: PromptRecord) -> bool:
        """The person has chosen the prompt that an earlier text meant."""
        text = self._held.take(origin.room, action.value)
        if text is None:
            self._integrations.say(origin, t(GONE))
            return False
        self._integrations.settle_which(place, record)
        as_text = reads_as_words(record.prompt, text)
        return self._pass_click(origin, ("", ""), replace(action, value=text), record, as_text)

    def _pass_click(
        self, origin: Origin, place: Place, action: Action, record: PromptRecord | None, as_text: bool = False
    ) -> bool:
        if record is not None and record.nonce == action.nonce and place[1]:
            self._meet_copy(place, record)
        if not self._integrations.is_within_limit(origin, record):
            return False
        value = full_value(action, record) if record and action.verb != THIS else action.value
        ids = {"session_id": action.session_id, "nonce": action.nonce}
        return self._deliver(origin, action.prompt_id, value, as_text=as_text, **ids)

    def _meet_copy(self, place: Place, record: PromptRecord) -> None:
        """An unconfirmed copy of the message was clicked: edit it like the others, at once if the prompt has ended."""
        if self._shown.prompt_at(place) != record.prompt_id:
            self._shown.add(record.prompt_id, place)
            if record.state not in OPEN:
                self._integrations.tidy(place, record)

    def _pass_marks(
        self, origin: Origin, place: Place, action: Action, record: PromptRecord, picked: str | None
    ) -> bool:
        if picked is None:
            self._integrations.say(origin, t(NO_MARKS))
            return False
        return self._pass_click(origin, place, replace(action, value=picked), record)

    def _is_hidden(self, record: PromptRecord, origin: Origin) -> bool:
        """Whether this person is not allowed to see the prompt. Any press is then refused and logged."""
        identity = f"slack:{self._settings.team_id}/{origin.user}"
        return self._hub_api.seen_by(identity).prompt(record.prompt_id) is None

    def _on_modal(self, payload: Payload) -> bool:
        view = payload.get("view") or {}
        action = parse_action(view.get("private_metadata"))
        values = (view.get("state") or {}).get("values") or {}
        text = ((values.get(FIELD) or {}).get(FIELD) or {}).get("value")
        if view.get("callback_id") != CALLBACK or action is None or not isinstance(text, str):
            return False
        record = self._hub_api.prompt(action.prompt_id)
        places = self._shown.places(record.prompt_id) if record else []
        room = places[0][0] if places else ""
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        if not self._integrations.is_within_limit(origin, record):
            return False
        as_text = record is not None and (action.value == "words" or reads_as_words(record.prompt, text))
        ids = {"session_id": action.session_id, "nonce": action.nonce}
        return self._deliver(origin, action.prompt_id, text, as_text=as_text, **ids)

    def _on_event(self, payload: Payload) -> bool:
        event = payload["event"]
        changed = event.get("subtype") == "message_changed"
        message = event.get("message", {}) if changed else event
        room, thread = str(event.get("channel")), str(message.get("thread_ts") or "")
        replied = self._shown.prompt_at((room, thread)) if thread else ""
        about = self._integrations.session_at(room, thread)
        if event.get("channel_type") != "im" and not replied and not about:
            return False  # a conversation between people in a channel
        ts = str(message.get("ts") or "")
        origin = self._origin("events_api", payload, room, str(message["user"]), thread or ts, ts)
        said = plain_text(str(event.get("text") or ""))
        if changed:
            if not about:
                self._integrations.say(origin, t(EDITED))
        elif (command := parse_command(said, "", SIGN)) and (not thread or about or (replied and is_about(command))):
            rest = f"{replied} {command.rest}" if replied else command.rest
            self._integrations.command(origin.user, Command(command.name, rest), origin)
        elif event.get("files"):
            self._on_files(origin, event["files"], said, self._target(origin, replied, bool(thread), about), about)
        elif event.get("subtype") in HEARD_SUBTYPES:
            target = self._target(origin, replied, bool(thread), about)
            return target is not None and self._on_text(origin, target, said)
        return False

    def _on_files(
        self, origin: Origin, files: list[Payload], said: str, target: PromptRecord | Doubt | None, about: str
    ) -> None:
        """Transcribe audio; save other files in the session's folder. The text of the message is used once."""
        meant = target.session_id if isinstance(target, PromptRecord) else about
        for file in files[:MOST_FILES]:
            if file.get("subtype") == "slack_audio" or str(file.get("mimetype")).startswith("audio/"):
                self._integrations.hear(origin, file, lambda heard: self._heard(origin, target, heard))
            else:
                self._integrations.keep_file(origin, file, said, meant)
                said = ""

    def _heard(self, origin: Origin, target: PromptRecord | Doubt | None, heard: str) -> None:
        """Show the transcript first; a click on the right prompt sends it."""
        if isinstance(target, PromptRecord) and target.prompt.secret:
            self._integrations.say(origin, refuse_secret(target))
            return
        doubt = target if isinstance(target, Doubt) else Doubt("", (target,) if target else ())
        told = f"{t('Press to send it.') if doubt.offered else ''} {doubt.told(SIGN, threads=True)}".strip()
        told = told or t(NOTHING_OPEN)
        if doubt.offered:
            self._held.keep(origin.room, origin.ts, heard)
        self._integrations.ask_which(origin, Doubt(f"🎙 “{heard}”\n{told}", doubt.offered))

    def _on_text(self, origin: Origin, target: PromptRecord | Doubt, text: str) -> bool:
        if isinstance(target, Doubt):
            if target.offered:
                self._held.keep(origin.room, origin.ts, text)
            self._integrations.ask_which(origin, target)
        elif target.prompt.secret:
            self._integrations.say(origin, refuse_secret(target))
        elif self._integrations.is_within_limit(origin, target):
            as_text = reads_as_words(target.prompt, text)
            return self._deliver(origin, target.prompt_id, text, as_text=as_text, session_id=target.session_id)
        return False

    def _target(self, origin: Origin, replied: str, threaded: bool, about: str = "") -> PromptRecord | Doubt | None:
        """A reply in a prompt's thread answers that prompt only. A text in a session's thread answers that session's
        prompt, or else is a conversation between people (None). A plain text answers the question that was shown
        before it."""
        if about:
            moment = moment_of(origin.ts)
            found = find_target(self._hub_api, self._shown, origin.room, moment, about, origin.seen_before)
            if isinstance(found, PromptRecord):
                return found if found.session_id == about else None
            offered = tuple(record for record in found.offered if record.session_id == about)
            return replace(found, offered=offered) if offered else None
        if replied:
            return self._hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if threaded:
            return offer(self._hub_api, self._shown, origin.room)
        chosen = self._integrations.chosen(origin.room)
        return find_target(self._hub_api, self._shown, origin.room, moment_of(origin.ts), chosen, origin.seen_before)

    def _deliver(self, origin: Origin, prompt_id: str, value: str, **fields: Any) -> bool:
        identity = f"slack:{self._settings.team_id}/{origin.user}"
        self._integrations.deliver(self._integrations.speak(identity, prompt_id, value, origin, **fields))
        return True

    def _origin(self, kind: str, payload: Payload, room: str, user: str, thread: str = "", ts: str = "") -> Origin:
        key = key_of(kind, payload)
        seen = key in self._again
        self._again.discard(key)
        return Origin(room, user, thread, key, seen, ts)


def _label(record: PromptRecord, value: str) -> str:
    return next((choice.label for choice in record.prompt.choices if value and choice.value == value), "")
