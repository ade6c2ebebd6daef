"""The Slack channel: sends prompts to every approver and receives clicks, modals and thread replies.

The gate decides about replies. `api` transports messages, `blocks` renders.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from atlasbridge.channels import grant_card
from atlasbridge.channels.chat import Asked, ChatChannel
from atlasbridge.channels.commands import NOT_OURS, Command, SessionCommands, Spoken, is_about, parse_command
from atlasbridge.channels.excerpt import LAST_OUTPUT, title_whole, whole_text
from atlasbridge.channels.language import reading, t
from atlasbridge.channels.listening import (
    GONE,
    NOT_OPEN,
    NOTHING_OPEN,
    WHICH_SESSION,
    Doubt,
    Received,
    SeenUpdates,
    Sent,
    Strangers,
    find_target,
    offer,
    refuse_secret,
)
from atlasbridge.channels.outbox import EDIT, Outbox, Params, Place
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.settings import SlackSettings
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.slack.api import Link, SlackApi, moment_of
from atlasbridge.channels.slack.blocks import (
    AGAIN,
    CALLBACK,
    FIELD,
    GRANT,
    LATER,
    PICK,
    SECTION_LIMIT,
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
from atlasbridge.channels.templates import needs_words, offers_again, page_of, reads_as_words, session_name, tool_name
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import OPEN, PromptRecord
from atlasbridge.core.session.model import SessionRecord, SessionState

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


EDITED = "An edit changes nothing that was already taken. Write a new message instead."
NO_MARKS = "Slack did not say what is marked. Reply in the thread with the numbers instead."
MARKING = ("checkboxes", "multi_static_select")
HEARD_SUBTYPES = (None, "thread_broadcast")
MOST_FILES = 10  # in one message


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(Asked):
    """`thread` and `ts` are set for texts, which are answered in their thread."""

    thread: str = ""
    ts: str = ""


# One thread per session, in the configured channels: it contains the session's prompts and notices, and replies in it
# are about that session. Direct messages have no threads, because a question in a thread is easy to miss there. The
# hub's notes store the threads, so that a restarted hub continues them.

log = logging.getLogger(__name__)
OPENING_S = 5.0  # a question waits at most this long for its thread


class Threads:
    """`rooms` are the channels with threads; `paint` renders the first message of a thread."""

    def __init__(
        self, outbox: Outbox, hub_api: HubApi, rooms: Iterable[str], paint: Callable[[SessionRecord], Params]
    ) -> None:
        self._outbox, self._hub_api, self._paint = outbox, hub_api, paint
        self._rooms = frozenset(rooms)
        self._turn = asyncio.Lock()

    def thread_of(self, room: str, session_id: str) -> str:
        """Return the timestamp of the first message of the session's thread, or "" if it has none."""
        return self._hub_api.recall(_thread(room, session_id)) if room in self._rooms else ""

    def session_at(self, room: str, thread: str) -> str:
        return self._hub_api.recall(f"slack.switch.{room_of(room, thread)}") if room in self._rooms and thread else ""

    def inside(self, room: str, session: SessionRecord | None, loud: bool = False) -> Params:
        """Parameters that put a message into its session's thread. `loud` shows it in the channel, too."""
        thread = self.thread_of(room, session.session_id) if session is not None else ""
        return ({"thread_ts": thread} | ({"reply_broadcast": True} if loud else {})) if thread else {}

    def root_of(self, place: Place, session_id: str) -> str:
        """Return the thread for replies to this message: its session's thread, or the message's own thread."""
        return self.thread_of(place[0], session_id) or place[1]

    async def open(self, session: SessionRecord) -> None:
        """Open the threads of a session. Without a thread, messages go to the channel itself. A session that only some
        people are allowed to see gets no thread, because everyone in the channel could read it."""
        if self._hub_api.readers(session.session_id, "slack") is not None:
            return
        missing = [room for room in self._rooms if not self.thread_of(room, session.session_id)]
        now = self._hub_api.session(session.session_id) or session
        if not missing or now.state is not SessionState.ACTIVE:
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for room in missing:
                    await self._open(room, session)
        except (TimeoutError, ChannelError) as fault:
            log.info("no thread for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    async def _open(self, room: str, session: SessionRecord) -> None:
        if self.thread_of(room, session.session_id):
            return
        posted = await self._outbox.send(room, self._paint(session))
        self._hub_api.remember(_thread(room, session.session_id), posted.message)
        self._hub_api.remember(f"slack.switch.{room_of(room, posted.message)}", session.session_id)

    def forget_ended(self, session: SessionRecord) -> None:
        now = self._hub_api.session(session.session_id) or session
        for room in self._rooms if now.state is not SessionState.ACTIVE else ():
            if thread := self.thread_of(room, session.session_id):
                self._hub_api.remember(f"slack.switch.{room_of(room, thread)}", "")
                self._hub_api.remember(_thread(room, session.session_id), "")


def room_of(room: str, thread: str) -> str:
    """Treat a session's thread as a separate room, so that commands in it apply to that session."""
    return f"{room}/{thread}"


def beginning(session: SessionRecord, tool: str) -> str:
    return f"🧵 {session_name(session)} · {tool} · {short_id(session.session_id)} · {session.cwd}"


def _thread(room: str, session_id: str) -> str:
    return f"slack.thread.{room}.{session_id}"


MOST_PIECES = 4  # a longer text is sent as a file


class SlackChannel(ChatChannel):
    name = "slack"
    title = "Slack"
    sign = SIGN
    muted = "no reminders or notices come; prompts still do, since Slack has no silent ones."

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        own = self._own = SlackSettings.model_validate(dict(settings))
        self._rooms: dict[str, str] = {}
        self._api = SlackApi(own.bot_token.get_secret_value(), own.api_url, own.request_timeout_s)
        self._furnish(own, self._api, lambda room: own.messages_per_s)
        self._seen, self._strangers = SeenUpdates(hub_api, self.name), Strangers(hub_api, self.name)
        self._again: set[str] = set()
        self._link = Link(own, self._api, self)
        self._received = Received(hub_api, self._tell, self, own.transcriber, self.title)
        self._threads = Threads(self._outbox, hub_api, own.channels if own.threads else (), self._paint_thread)

    # called by the hub

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        await self._threads.open(session)
        return await super().send_prompt(event, session)

    async def _notify(self, message: str | Callable[[], str], session: SessionRecord | None) -> None:
        if session is not None:
            await self._threads.open(session)
        await super()._notify(message, session)
        if session is not None:
            self._threads.forget_ended(session)

    def health(self) -> dict[str, Any]:
        return {
            "state": self._link.state,
            "detail": self._link.detail,
            "bot": self._link.bot_user,
            "operators": len(self._own.allowed_users),
            **self.common_health(),
        }

    # required by the base class

    async def _serve(self) -> None:
        await self._link.run()

    async def _chats(self) -> list[str]:
        """The direct messages of the approvers and the configured channels, without people who cannot be reached."""
        faults: list[str] = []
        for user_id in self._own.allowed_users:
            if user_id not in self._rooms:
                try:
                    self._rooms[user_id] = await self._api.open_dm(user_id)
                except ChannelError as fault:
                    faults.append(str(fault))
        rooms = [*self._rooms.values(), *self._own.channels]
        if not rooms:
            raise ChannelError("nobody was reached: " + "; ".join(sorted(set(faults))), self._hint)
        return rooms

    def _paint_prompt(self, event: PromptRecord, session: SessionRecord, chat: str, short: bool) -> Params:
        painted = blocks.render_short(event, session) if short else blocks.render_prompt(event, session, self._host)
        return painted | self._threads.inside(chat, session, loud=True)

    def _paint_outcome(self, event: PromptRecord, session: SessionRecord, outcome: Outcome) -> Params:
        return blocks.render_outcome(event, session, outcome, self._host, outcome.again)

    def _paint_notice(self, message: str, session: SessionRecord | None, chat: str) -> Params:
        return blocks.render_notice(message, session, self._host) | self._threads.inside(chat, session)

    def _paint_thread(self, session: SessionRecord) -> Params:
        return blocks.render_notice(beginning(session, tool_name(session)), None, self._host)

    def _paint_reminder(self, sentence: str, event: PromptRecord, chat: str) -> Params:
        notice = self._paint_notice(sentence, None, chat)
        return {**notice, "blocks": [*notice["blocks"], blocks.render_snooze(event)]}

    def _owner(self, chat: str) -> str:
        user = next((user for user, room in self._rooms.items() if room == chat), "")
        return f"slack:{self._own.team_id}/{user}" if user else ""

    def _beside(self, place: Place) -> Params:
        record = self.hub_api.prompt(self._shown.prompt_at(place) or "")
        return {"thread_ts": self._root(place, record), "reply_broadcast": True}

    def _root(self, place: Place, record: PromptRecord | None) -> str:
        return self._threads.root_of(place, record.session_id) if record else place[1]

    def _tell(self, token: Any, sentence: str) -> None:
        self.say(token, sentence)

    @property
    def _hint(self) -> str:
        return "invite the app to the channel, check its scopes, and see: atlasbridge hub status"

    # called by the link

    def state_changed(self, state: str) -> None:
        if state == "unauthorized":
            self.hub_api.note("CHANNEL_UNAUTHORIZED", channel="slack")
        if state == "ok":
            self.heard()
            self._tasks.hold(self._learn_names())
            self._tasks.hold(self.came_back())
        else:
            self.went_deaf()

    # carrying out

    def say(self, origin: Origin, sentence: str) -> None:
        """Answer a text in its thread, and a click with a message that only the person sees."""
        where = {"thread_ts": origin.thread} if origin.thread else {"only_for": origin.user}
        if origin.room:
            self._outbox.post(origin.room, blocks.render_notice(sentence, None, self._host) | where, EDIT)

    def ask_which(self, origin: Origin, doubt: Doubt) -> None:
        if not doubt.offered:
            self.say(origin, doubt.told(SIGN))
            return
        offered = [(record, self._session(record)) for record in doubt.offered]
        asked = blocks.render_which(doubt.told(SIGN, threads=True), offered, origin.ts)
        self._outbox.post(origin.room, asked | {"thread_ts": origin.thread}, EDIT)

    def ask_again(self, origin: Origin, record: PromptRecord) -> None:
        self._do(origin, self.request_again(record, self._identity(origin)))

    def later(self, origin: Origin, record: PromptRecord, nonce: str, what: str) -> None:
        self._do(origin, self.put_off(self._identity(origin), record, nonce, what))

    async def _settle(self, token: Any) -> None:
        await self._seen.settle(token.update_id)

    def _identity(self, origin: Origin) -> str:
        return f"slack:{self._own.team_id}/{origin.user}"

    def grant(self, origin: Origin, place: Place, record: PromptRecord, value: str) -> None:
        self._do(origin, self._grant(origin, place, record, value))

    async def _grant(self, origin: Origin, place: Place, record: PromptRecord, value: str) -> str:
        """Post the offer in the question's thread, and replace it by the result."""
        told = await grant_card.press(self.hub_api, record, value, self.caller(self._identity(origin)))
        if isinstance(told, str):
            return told
        params = blocks.render_granting(record, told.text, told.buttons)
        if told.beside:
            self._outbox.post(place[0], params | {"thread_ts": self._root(place, record)}, EDIT)
        else:
            self._outbox.edit(place, params)
        return ""

    def show_more(self, place: Place, record: PromptRecord) -> None:
        thread, again = {"thread_ts": self._root(place, record)}, offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt) if again else whole_text(record.prompt)
        if not again or len(whole) > LAST_OUTPUT:
            title = t("Last output:") if again else title_whole(record.prompt)
            self._outbox.post(place[0], _screen_params(title, whole) | thread, EDIT)
        if again:
            params = blocks.render_again(record) | thread
            self._tasks.hold(self._delivery.send_to(place[0], record, lambda *_: params, patient=True))

    def keep_file(self, origin: Origin, file: dict[str, Any], caption: str, session_id: str) -> None:
        identity = f"slack:{self._own.team_id}/{origin.user}"
        meant = self._commands.meant(origin.room, identity)
        session = self.hub_api.seen_by(identity).session(session_id) if session_id else meant
        if session is None:
            self.say(origin, t(WHICH_SESSION, sign=SIGN))
            return
        self._tasks.hold(self._received.keep_file(origin, self._sent(file), caption, session, identity))

    def hear(self, origin: Origin, file: dict[str, Any], then: Callable[[str], None]) -> None:
        self._tasks.hold(self._received.hear(origin, self._sent(file), then))

    def _sent(self, file: dict[str, Any]) -> Sent:
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        fetch = functools.partial(self._api.download, url, str(file.get("mimetype")))
        return Sent(str(file.get("name") or "file"), int(file.get("size") or 0), fetch)

    def command(self, user: str, command: Command, origin: Origin | None = None) -> None:
        """Run the command in the background, so that a slow session does not delay the acknowledgement of the next
        click."""
        self._tasks.hold(self._obey(user, command, origin))

    async def _obey(self, user: str, command: Command, origin: Origin | None) -> None:
        """Answer in the session's thread if the command came from there, otherwise in the person's direct messages."""
        identity = f"slack:{self._own.team_id}/{user}"
        if origin and command.name in SessionCommands.NAMES and self._threads.session_at(origin.room, origin.thread):
            await self._speak(room_of(origin.room, origin.thread), command, identity, origin, origin.thread)
            return
        try:
            room = self._rooms.get(user) or await self._api.open_dm(user)
        except ChannelError as fault:
            log.warning("a command could not be answered: %s", fault)
            return
        self._rooms[user] = room
        await self._speak(room, command, identity, origin)

    async def _speak(self, room: str, command: Command, identity: str, origin: Origin | None, thread: str = "") -> None:
        chat = origin.room if origin and thread else room
        with reading(self.reader_of(chat)):
            for params in self._spoken(await self._commands.run(room, command, identity, origin)):
                self._outbox.post(chat, params | ({"thread_ts": thread} if thread else {}), EDIT)

    def _spoken(self, spoken: Spoken) -> list[Params]:
        """Render the complete text as a few messages if it fits, otherwise as a file."""
        if spoken.file is not None:
            return [{"text": spoken.text, "document": (spoken.name, spoken.file)}]
        if spoken.screen is None:
            pieces = split_rows(escape_controls(spoken.text).split("\n"), SECTION_LIMIT, len) or [""]
            if len(pieces) > MOST_PIECES:
                return [
                    {"text": pieces[0].partition("\n")[0], "document": ("answer.txt", escape_controls(spoken.text))}
                ]
            return [blocks.render_notice(piece, None, self._host) for piece in pieces]
        if not spoken.split:
            return [_screen_params(spoken.text, spoken.screen)]
        rows = escape_controls(spoken.screen).rstrip().split("\n")
        pieces = split_rows(rows, blocks.QUOTE_LIMIT, len) or [t("(nothing)")]
        if len(pieces) > MOST_PIECES:
            return [{"text": spoken.text, "document": (spoken.name, escape_controls(spoken.screen))}]
        several = len(pieces) > 1
        counted = [f" ({page_of(number, len(pieces))})" if several else "" for number in range(1, len(pieces) + 1)]
        return [_screen_params(spoken.text + count, piece) for count, piece in zip(counted, pieces, strict=True)]

    async def open_modal(self, origin: Origin, trigger_id: str, record: PromptRecord, label: str) -> None:
        """One attempt without a queue, because the trigger expires after three seconds."""
        view = blocks.render_modal(record, self._session(record), label)
        try:
            await self._api.call("views.open", {"trigger_id": trigger_id, "view": view})
        except ChannelError as fault:
            log.warning("a text field could not be shown: %s", fault)
            self.say(origin, t("The text field could not be shown. Reply in the thread of the prompt instead."))

    async def _learn_names(self) -> None:
        """Load the names of people, so that messages show a name instead of an id."""
        for user_id in self._own.allowed_users:
            asked = {"user": user_id, "include_locale": "true"}
            user = (await self._api.call("users.info", asked)).get("user") or {}
            profile = user.get("profile") or {}
            called = profile.get("display_name") or user.get("real_name") or user.get("name")
            self._people.learn(f"{self._own.team_id}/{user_id}", called, user.get("locale"), user.get("tz"))

    # what people do

    async def admit(self, kind: str, payload: Payload) -> bool:
        """Store the update in the inbox once. Updates from unknown senders and the bot's own messages are ignored."""
        self.heard()
        if not self._is_ours(kind, payload):
            return False
        key = key_of(kind, payload)
        news = await self._seen.take(key, json.dumps(payload, ensure_ascii=False))
        if news == "again":
            self._again.add(key)
        return news != "copy"

    async def take(self, kind: str, payload: Payload) -> None:
        """Process the update. It is settled at once, unless work for it continues in the background."""
        with reading(self.reader_of(room_at(payload))):
            later = await self._dispatch(kind, payload)
        if not later:
            await self._seen.settle(key_of(kind, payload))

    async def _replay(self) -> None:
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
                self.command(str(payload["user_id"]), parse_slash(payload))
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

    async def _on_click(self, payload: Payload) -> bool:
        room = str((payload.get("channel") or {}).get("id") or "")
        place = (room, str((payload.get("container") or {}).get("message_ts") or ""))
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        clicked = (payload.get("actions") or [{}])[0]
        if clicked.get("type") in MARKING:
            return False  # Slack stores the marks until they are sent
        action = parse_action(clicked_value(clicked))
        record = self.hub_api.prompt(action.prompt_id) if action else None
        known = self._shown.prompt_at(place)
        trigger = str(payload.get("trigger_id") or "")
        if action is None or (known and (record is None or known != record.prompt_id)):
            self.say(origin, t(NOT_OURS))
        elif record is None or self._is_hidden(record, origin):
            return self._pass_click(origin, place, action, None)
        elif action.verb == SHOW and record.prompt.idle:
            self.command(origin.user, Command("last", record.session_id), origin)
        elif action.verb == SHOW:
            self.show_more(place, record)
        elif action.verb == LATER:
            self.later(origin, record, action.nonce, action.value)
            return True
        elif action.verb == AGAIN:
            self.ask_again(origin, record)
            return True
        elif action.verb == GRANT:
            return self._on_grant(origin, place, action, record)
        elif action.verb == WRITE or self._wants_words(action, record):
            await self.open_modal(origin, trigger, record, _label(record, full_value(action, record)))
        elif action.verb == PICK:
            return self._pass_marks(origin, place, action, record, parse_picked(payload, record))
        elif action.verb == THIS:
            return self._on_which(origin, place, action, record)
        else:
            return self._pass_click(origin, place, action, record)
        return False

    def _on_grant(self, origin: Origin, place: Place, action: Action, record: PromptRecord) -> bool:
        if (action.session_id, action.nonce) != (record.session_id, record.nonce):
            self.say(origin, t(NOT_OURS))
        elif self.is_within_limit(origin, record):
            self.grant(origin, place, record, action.value)
            return True
        return False

    def _wants_words(self, action: Action, record: PromptRecord) -> bool:
        live = record.state in OPEN and action.nonce == record.nonce and action.verb not in (THIS, PICK)
        return live and needs_words(record.prompt, full_value(action, record))

    def _on_which(self, origin: Origin, place: Place, action: Action, record: PromptRecord) -> bool:
        """The person has chosen the prompt that an earlier text meant."""
        text = self._held.take(origin.room, action.value)
        if text is None:
            self.say(origin, t(GONE))
            return False
        self.settle_which(place, record)
        as_text = reads_as_words(record.prompt, text)
        return self._pass_click(origin, ("", ""), replace(action, value=text), record, as_text)

    def _pass_click(
        self, origin: Origin, place: Place, action: Action, record: PromptRecord | None, as_text: bool = False
    ) -> bool:
        if record is not None and record.nonce == action.nonce and place[1]:
            self._meet_copy(place, record)
        if not self.is_within_limit(origin, record):
            return False
        value = full_value(action, record) if record and action.verb != THIS else action.value
        ids = {"session_id": action.session_id, "nonce": action.nonce}
        return self._deliver(origin, action.prompt_id, value, as_text=as_text, **ids)

    def _pass_marks(
        self, origin: Origin, place: Place, action: Action, record: PromptRecord, picked: str | None
    ) -> bool:
        if picked is None:
            self.say(origin, t(NO_MARKS))
            return False
        return self._pass_click(origin, place, replace(action, value=picked), record)

    def _is_hidden(self, record: PromptRecord, origin: Origin) -> bool:
        """Whether this person is not allowed to see the prompt. Any press is then refused and logged."""
        identity = f"slack:{self._own.team_id}/{origin.user}"
        return self.hub_api.seen_by(identity).prompt(record.prompt_id) is None

    def _on_modal(self, payload: Payload) -> bool:
        view = payload.get("view") or {}
        action = parse_action(view.get("private_metadata"))
        values = (view.get("state") or {}).get("values") or {}
        text = ((values.get(FIELD) or {}).get(FIELD) or {}).get("value")
        if view.get("callback_id") != CALLBACK or action is None or not isinstance(text, str):
            return False
        record = self.hub_api.prompt(action.prompt_id)
        places = self._shown.places(record.prompt_id) if record else []
        room = places[0][0] if places else ""
        origin = self._origin("interactive", payload, room, str(payload["user"]["id"]))
        if not self.is_within_limit(origin, record):
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
        about = self._threads.session_at(room, thread)
        if event.get("channel_type") != "im" and not replied and not about:
            return False  # a conversation between people in a channel
        ts = str(message.get("ts") or "")
        origin = self._origin("events_api", payload, room, str(message["user"]), thread or ts, ts)
        said = plain_text(str(event.get("text") or ""))
        if changed:
            if not about:
                self.say(origin, t(EDITED))
        elif (command := parse_command(said, "", SIGN)) and (not thread or about or (replied and is_about(command))):
            rest = f"{replied} {command.rest}" if replied else command.rest
            self.command(origin.user, Command(command.name, rest), origin)
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
                self.hear(origin, file, lambda heard: self._heard(origin, target, heard))
            else:
                self.keep_file(origin, file, said, meant)
                said = ""

    def _heard(self, origin: Origin, target: PromptRecord | Doubt | None, heard: str) -> None:
        """Show the transcript first; a click on the right prompt sends it."""
        if isinstance(target, PromptRecord) and target.prompt.secret:
            self.say(origin, refuse_secret(target))
            return
        doubt = target if isinstance(target, Doubt) else Doubt("", (target,) if target else ())
        told = f"{t('Press to send it.') if doubt.offered else ''} {doubt.told(SIGN, threads=True)}".strip()
        told = told or t(NOTHING_OPEN)
        if doubt.offered:
            self._held.keep(origin.room, origin.ts, heard)
        self.ask_which(origin, Doubt(f"🎙 “{heard}”\n{told}", doubt.offered))

    def _on_text(self, origin: Origin, target: PromptRecord | Doubt, text: str) -> bool:
        if isinstance(target, Doubt):
            if target.offered:
                self._held.keep(origin.room, origin.ts, text)
            self.ask_which(origin, target)
        elif target.prompt.secret:
            self.say(origin, refuse_secret(target))
        elif self.is_within_limit(origin, target):
            as_text = reads_as_words(target.prompt, text)
            return self._deliver(origin, target.prompt_id, text, as_text=as_text, session_id=target.session_id)
        return False

    def _target(self, origin: Origin, replied: str, threaded: bool, about: str = "") -> PromptRecord | Doubt | None:
        """A reply in a prompt's thread answers that prompt only. A text in a session's thread answers that session's
        prompt, or else is a conversation between people (None). A plain text answers the question that was shown
        before it."""
        if about:
            moment = moment_of(origin.ts)
            found = find_target(self.hub_api, self._shown, origin.room, moment, about, origin.seen_before)
            if isinstance(found, PromptRecord):
                return found if found.session_id == about else None
            offered = tuple(record for record in found.offered if record.session_id == about)
            return replace(found, offered=offered) if offered else None
        if replied:
            return self.hub_api.prompt(replied) or Doubt(NOT_OPEN)
        if threaded:
            return offer(self.hub_api, self._shown, origin.room)
        chosen = self._commands.chosen(origin.room)
        return find_target(self.hub_api, self._shown, origin.room, moment_of(origin.ts), chosen, origin.seen_before)

    def _deliver(self, origin: Origin, prompt_id: str, value: str, **fields: Any) -> bool:
        identity = f"slack:{self._own.team_id}/{origin.user}"
        self.deliver(self.speak(identity, prompt_id, value, origin, **fields))
        return True

    def _origin(self, kind: str, payload: Payload, room: str, user: str, thread: str = "", ts: str = "") -> Origin:
        key = key_of(kind, payload)
        seen = key in self._again
        self._again.discard(key)
        return Origin(room=room, user=user, thread=thread, update_id=key, seen_before=seen, ts=ts)


def _screen_params(title: str, screen: str) -> dict[str, Any]:
    """Show the screen in a message if it fits, otherwise as a file."""
    return blocks.render_screen(title, screen) or {"text": title, "document": ("screen.txt", escape_controls(screen))}


def _label(record: PromptRecord, value: str) -> str:
    return next((choice.label for choice in record.prompt.choices if value and choice.value == value), "")
