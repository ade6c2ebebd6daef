"""What people do in Slack, turned into replies.  Workspace, person and room are checked; the gate decides the rest."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import Any, Protocol

from atlasbridge.channels import listening
from atlasbridge.channels.commands import Command, parse_command
from atlasbridge.channels.listening import SeenUpdates, Strangers, Throttle, guess_target
from atlasbridge.channels.outbox import Place
from atlasbridge.channels.shown import Shown
from atlasbridge.channels.slack.actions import (
    PICK,
    SHOW,
    SIGN,
    WRITE,
    Action,
    full_value,
    parse_action,
    parse_picked,
    parse_slash,
    plain_text,
)
from atlasbridge.channels.slack.blocks import CALLBACK, FIELD
from atlasbridge.channels.slack.envelope import Payload, key_of, kind_of, parse_sender
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, PromptType
from atlasbridge.core.prompt.reply import InboundReply
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
SEVERAL = (
    "Multiple active sessions. Please reply in the thread of the prompt,\n"
    "or target a session with !switch <session_id>."
)
NOT_OURS = "This button is not one of mine."
EDITED = "An edit changes nothing that was already taken. Write a new message instead."
NO_MARKS = "Slack did not say what is marked. Reply in the thread with the numbers instead."
MARKING = ("checkboxes", "multi_static_select")
HEARD_SUBTYPES = (None, "thread_broadcast")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from.  `thread` is set for written words: they are answered where they stand."""

    room: str
    user: str
    thread: str = ""
    update_id: str = ""
    seen_before: bool = False


class Doors(Protocol):
    """Where inbound things go: the channel."""

    def deliver(self, reply: InboundReply) -> None: ...
    def say(self, origin: Origin, sentence: str) -> None: ...
    def show_more(self, place: Place, record: PromptRecord) -> None: ...
    async def open_modal(self, origin: Origin, trigger_id: str, record: PromptRecord) -> None: ...
    def command(self, user: str, command: Command) -> None: ...
    def chosen(self, room: str) -> str: ...
    def warn(self, record: PromptRecord) -> None: ...


class Inbound:
    def __init__(self, settings: SlackSettings, desk: Desk, clock: Clock, shown: Shown, doors: Doors) -> None:
        self._settings, self._desk, self._clock = settings, desk, clock
        self._shown, self._doors = shown, doors
        self._seen = SeenUpdates(desk, "slack")
        self._strangers = Strangers(desk, "slack")
        self._throttle = Throttle(settings.replies_per_minute)
        self._again: set[str] = set()
        self.names: dict[str, str] = {}

    async def admit(self, kind: str, payload: Payload) -> bool:
        """Into the inbox once; strangers and the bot's own echo never get there."""
        if not self._is_ours(kind, payload):
            return False
        key = key_of(kind, payload)
        news = await self._seen.take(key, json.dumps(payload, ensure_ascii=False))
        if news == "again":
            self._again.add(key)
        return news != "copy"

    async def take(self, kind: str, payload: Payload) -> None:
        """Settled at once, unless it became a reply: then when that is decided."""
        if not await self._dispatch(kind, payload):
            await self._seen.settle(key_of(kind, payload))

    async def replay(self) -> None:
        """What an earlier process acknowledged and died over: Slack will not send it again."""
        for key, payload in self._seen.left_over():
            kind = kind_of(payload) if payload is not None else ""
            if kind and self._is_ours(kind, payload):
                log.info("%s is taken up again", key)
                self._again.add(key)
                await self.take(kind, payload)
            else:
                await self._seen.settle(key)

    async def settle(self, origin: Origin) -> None:
        """The gate has decided it."""
        await self._seen.settle(origin.update_id)

    async def _dispatch(self, kind: str, payload: Payload) -> bool:
        """True: a reply was passed on."""
        match kind, payload.get("type"):
            case "interactive", "block_actions":
                return await self._on_click(payload)
            case "interactive", "view_submission":
                return self._on_modal(payload)
            case "events_api", _:
                return self._on_event(payload)
            case "slash_commands", _:
                self._doors.command(str(payload["user_id"]), parse_slash(payload))
        return False

    def _is_ours(self, kind: str, payload: Payload) -> bool:
        """The workspace and the person, both by id."""
        sender = parse_sender(kind, payload)
        if sender is None:
            return False
        if sender.name:
            self.names[sender.user_id] = visible(sender.name, keep_lines=False)[:40]
        if sender.teams == {self._settings.team_id} and sender.user_id in self._settings.allowed_users:
            return True
        self._strangers.note(f"{'+'.join(sorted(sender.teams))}/{sender.user_id}")
        return False

    async def _on_click(self, payload: Payload) -> bool:
        room = str((payload.get("channel") or {}).get("id") or "")
        place = (room, str((payload.get("container") or {}).get("message_ts") or ""))
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        clicked = (payload.get("actions") or [{}])[0]
        if clicked.get("type") in MARKING:
            return False  # Slack keeps the marks itself until they are sent
        action = parse_action(clicked.get("value"))
        record = self._desk.prompt(action.prompt_id) if action else None
        known = self._shown.prompt_at(place)
        if action is None or (known and (record is None or known != record.prompt_id)):
            self._doors.say(origin, NOT_OURS)
        elif action.verb == SHOW and record is not None:
            self._doors.show_more(place, record)
        elif action.verb == WRITE and record is not None:
            await self._doors.open_modal(origin, str(payload.get("trigger_id") or ""), record)
        elif action.verb == PICK and record is not None:
            return self._pass_marks(origin, place, action, record, parse_picked(payload, record))
        else:
            return self._pass_click(origin, place, action, record)
        return False

    def _pass_click(self, origin: Origin, place: Place, action: Action, record: PromptRecord | None) -> bool:
        if record is not None and record.nonce == action.nonce:
            self._shown.add(record.prompt_id, place)  # a copy whose sending was never confirmed is edited too
        if not self._is_within_limit(origin, record):
            return False
        value = full_value(action, record) if record else action.value
        return self._deliver(origin, action.prompt_id, value, session_id=action.session_id, nonce=action.nonce)

    def _pass_marks(
        self, origin: Origin, place: Place, action: Action, record: PromptRecord, picked: str | None
    ) -> bool:
        if picked is None:
            self._doors.say(origin, NO_MARKS)
            return False
        return self._pass_click(origin, place, replace(action, value=picked), record)

    def _on_modal(self, payload: Payload) -> bool:
        view = payload.get("view") or {}
        action = parse_action(view.get("private_metadata"))
        values = (view.get("state") or {}).get("values") or {}
        text = ((values.get(FIELD) or {}).get(FIELD) or {}).get("value")
        if view.get("callback_id") != CALLBACK or action is None or not isinstance(text, str):
            return False
        record = self._desk.prompt(action.prompt_id)
        places = self._shown.places(record.prompt_id) if record else []
        room = places[0][0] if places else ""
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        if not self._is_within_limit(origin, record):
            return False
        as_text = record is not None and record.prompt.type is PromptType.TYPE_FREE_TEXT
        ids = {"session_id": action.session_id, "nonce": action.nonce}
        return self._deliver(origin, action.prompt_id, text, as_text=as_text, **ids)

    def _on_event(self, payload: Payload) -> bool:
        event = payload["event"]
        changed = event.get("subtype") == "message_changed"
        message = event.get("message", {}) if changed else event
        room, thread = str(event.get("channel")), str(message.get("thread_ts") or "")
        replied = self._shown.prompt_at((room, thread)) if thread else ""
        if event.get("channel_type") != "im" and not replied:
            return False  # talk among people in a channel
        origin = self._origin("events_api", payload, room, str(message["user"]), thread or str(message["ts"]))
        if changed:
            self._doors.say(origin, EDITED)
        elif not thread and (command := parse_command(plain_text(str(event.get("text") or "")), "", SIGN)):
            self._doors.command(origin.user, command)
        elif event.get("subtype") in HEARD_SUBTYPES:
            return self._on_text(origin, replied, plain_text(str(event.get("text") or "")))
        return False

    def _on_text(self, origin: Origin, replied: str, text: str) -> bool:
        record, why = self._target(origin, replied)
        if record is None:
            self._doors.say(origin, why)
        elif record.prompt.secret:
            self._doors.say(origin, listening.refuse_secret(record))
        elif self._is_within_limit(origin, record):
            as_text = record.prompt.type is PromptType.TYPE_FREE_TEXT
            return self._deliver(origin, record.prompt_id, text, as_text=as_text, session_id=record.session_id)
        return False

    def _target(self, origin: Origin, replied: str) -> tuple[PromptRecord | None, str]:
        if replied:
            return self._desk.prompt(replied), listening.NOT_OPEN
        if origin.seen_before:
            return None, listening.RESTARTED
        return guess_target(self._desk, self._doors.chosen(origin.room), SEVERAL)

    def _deliver(self, origin: Origin, prompt_id: str, value: str, **fields: Any) -> bool:
        identity = f"slack:{self._settings.team_id}/{origin.user}"
        self._doors.deliver(InboundReply("slack", identity, prompt_id, value, token=origin, **fields))
        return True

    def _is_within_limit(self, origin: Origin, record: PromptRecord | None) -> bool:
        sentence, warn = self._throttle.admit(record.session_id if record else "", self._clock.now())
        if sentence:
            self._doors.say(origin, sentence)
        if warn and record is not None:
            self._doors.warn(record)
        return not sentence

    def _origin(self, kind: str, payload: Payload, room: str, user: str, thread: str = "") -> Origin:
        key = key_of(kind, payload)
        seen = key in self._again
        self._again.discard(key)
        return Origin(room, user, thread, key, seen)
