"""A strict Telegram Bot API on loopback with people behind it, for tests.

It keeps the rules that bite (one poller, offsets, taps that live 150 s, sizes, entities, floods, blocked bots) and
refuses what the real server refuses. Pure checks are in fake_telegram_rules; threads and faults in fake_server.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from tests.support import fake_telegram_rules as rules
from tests.support.fake_server import FakeServer, Fault, cut
from tests.support.fake_telegram_person import Person
from tests.support.fake_telegram_rules import Refused, bad_request

TOKEN = "123456789:AAFakeTokenThatMustNeverBeSeenInALog"
TAP_LIFE_S = 150.0
MESSAGE_LIFE_S = 86_400.0
EDIT_LIFE_S = 48 * 3600.0
CONFLICT = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_CONFLICT = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
QUERY_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
Message = dict[str, Any]


@dataclass(slots=True)
class Pending:
    """An update in the server's queue and the moment it is dropped."""

    update: dict[str, Any]
    dies_at: float


@dataclass(slots=True)
class Tap:
    """A button pressed: what the person sees of it (the toast), once the bot has answered."""

    query_id: str
    data: str
    dies_at: float
    answered: bool = False
    toast: str | None = None
    alert: bool = False


@dataclass(slots=True)
class Chat:
    """A private chat or a group, with its own message numbers (so nobody may key by message id alone)."""

    chat_id: int
    kind: str
    title: str = ""
    forum: bool = False
    started: bool = False
    blocked: bool = False
    threads: set[int] = field(default_factory=set)
    manages_topics: bool = False
    topics: dict[int, str] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    messages: dict[int, Message] = field(default_factory=dict)
    numbers: Any = field(default_factory=lambda: itertools.count(1))
    last_sent_at: float = -1e9

    def wire(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": self.chat_id, "type": self.kind}
        if self.kind == "private":
            return shown | {"first_name": self.title}
        return shown | {"title": self.title} | ({"is_forum": True} if self.forum else {})


class FakeTelegram(FakeServer):
    """The server. `person()` makes people, `group()` chats; `fail()` plans faults; `sent()` is what the bot wrote."""

    def __init__(self, token: str = TOKEN, clock: Callable[[], float] = time.time, seed: int = 0) -> None:
        super().__init__(clock)
        self.token = token
        self.me = {"id": int(token.split(":")[0]), "is_bot": True, "first_name": "Bridge", "username": "bridge_bot"}
        self.chats: dict[int, Chat] = {}
        self.taps: dict[str, Tap] = {}
        self.commands: list[dict[str, str]] = []
        self.commands_in: dict[str, list[dict[str, str]]] = {}
        self.uploads: dict[str, bytes] = {}
        self.webhook = ""
        self.min_interval_s = 0.0
        self.duplicate_share = 0.0
        self.reorder_share = 0.0
        self.conflicts = 0
        self.confirmed: set[int] = set()
        self.random = random.Random(seed)
        self._queue: list[Pending] = []
        self._given: list[dict[str, Any]] = []
        self._update_ids = itertools.count(700_000_001)
        self._query_ids = itertools.count(5_000_000_000_001)
        self._allowed: list[str] | None = None
        self._poll: asyncio.Future[str] | None = None

    # -- the world of people -------------------------------------------------------------------------------------

    def person(self, user_id: int, name: str = "Ada", started: bool = True) -> Person:
        with self.lock:
            self.chats.setdefault(user_id, Chat(user_id, "private", name)).started |= started
        return Person(self, user_id, name)

    def group(self, chat_id: int, title: str = "Team", forum: bool = False, threads: tuple[int, ...] = ()) -> Chat:
        chat = Chat(chat_id, "supergroup", title, forum, started=True, threads=set(threads))
        self.chats[chat_id] = chat
        return chat

    def put(self, kind: str, body: dict[str, Any], life_s: float = MESSAGE_LIFE_S) -> int:
        """Queue an update and wake the poller; kinds the bot did not ask for never enter the queue."""
        with self.lock:
            if self._allowed is not None and kind not in self._allowed:
                return 0
            number = next(self._update_ids)
            self._queue.append(Pending({"update_id": number, kind: body}, self.clock() + life_s))
        self.soon(self._wake)
        return number

    def new_tap(self, data: str) -> Tap:
        with self.lock:
            tap = Tap(str(next(self._query_ids)), data, self.clock() + TAP_LIFE_S)
            self.taps[tap.query_id] = tap
        return tap

    def sent(self, chat_id: int) -> list[Message]:
        """The bot's messages in a chat, as they look now (after edits), oldest first."""
        with self.lock:
            chat = self.chats.get(chat_id)
            messages = [] if chat is None else chat.messages.values()
            return [copy.deepcopy(message) for message in messages if message["from"]["id"] == self.me["id"]]

    def unconfirmed(self) -> int:
        with self.lock:
            return len(self._queue)

    # -- HTTP ----------------------------------------------------------------------------------------------------

    def routes(self) -> list[web.RouteDef]:
        return [
            web.route("*", "/bot{token}/{method}", self._handle),
            web.get("/file/bot{token}/{path:.+}", self._give_file),
        ]

    async def _give_file(self, request: web.Request) -> web.StreamResponse:
        found = self.uploads.get(request.match_info["path"].removeprefix("files/"))
        if request.match_info["token"] != self.token or found is None:
            return web.json_response({"ok": False, "error_code": 404, "description": "Not Found"}, status=404)
        return web.Response(body=found)

    async def on_stop(self) -> None:
        self._end_poll("down")

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        method, params = request.match_info["method"], await _read_params(request)
        if request.match_info["token"] != self.token:
            return _failure(Refused(401, "Unauthorized"))
        self.note(method, params)
        fault = self.take_fault(method)
        if fault is not None and fault.kind != "cut_after":
            spoiled = await self._spoil(request, fault)
            if spoiled is not None:
                return spoiled
        try:
            result = await self._dispatch(method, params)
        except Refused as refused:
            return _failure(refused)
        finally:
            self.tell()
        if fault is not None and fault.kind == "cut_after":
            return cut(request)
        return web.json_response({"ok": True, "result": result})

    async def _spoil(self, request: web.Request, fault: Fault) -> web.StreamResponse | None:
        match fault.kind:
            case "slow":
                await asyncio.sleep(fault.seconds)
                return None
            case "cut_before":
                return cut(request)
            case "garbage":
                return web.Response(status=fault.status, text="<html><body>Bad Gateway</body></html>")
            case _:
                extra = {} if fault.retry_after is None else {"retry_after": fault.retry_after}
                return _failure(Refused(fault.status, fault.description, **extra))

    async def _dispatch(self, method: str, params: dict[str, Any]) -> Any:
        if method == "getUpdates":
            return await self._get_updates(params)
        action = getattr(self, f"_do_{method}", None)
        if action is None:
            raise Refused(404, "Not Found: method not found")
        with self.lock:
            return copy.deepcopy(action(params))

    # -- updates -------------------------------------------------------------------------------------------------

    async def _get_updates(self, params: dict[str, Any]) -> list[dict[str, Any]]:
        if self.webhook:
            raise Refused(409, WEBHOOK_CONFLICT)
        limit = min(max(int(params.get("limit") or 100), 1), 100)
        offset, timeout = int(params.get("offset") or 0), min(int(params.get("timeout") or 0), 50)
        if isinstance(params.get("allowed_updates"), list):
            self._allowed = params["allowed_updates"] or None
        self._end_poll("conflict")
        self._confirm(offset)
        batch = self._batch(limit)
        if not batch and timeout > 0:
            await self._long_poll(timeout)
            batch = self._batch(limit)
        return batch

    async def _long_poll(self, timeout: int) -> None:
        poll: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._poll = poll
        try:
            done, _ = await asyncio.wait({poll}, timeout=timeout)
        finally:
            if self._poll is poll:
                self._poll = None
        if done and poll.result() == "conflict":
            self.conflicts += 1
            raise Refused(409, CONFLICT)

    def _end_poll(self, why: str) -> None:
        if self._poll is not None and not self._poll.done():
            self._poll.set_result(why)
            self._poll = None

    def _wake(self) -> None:
        self._end_poll("updates")

    def _confirm(self, offset: int) -> None:
        with self.lock:
            if offset < 0:
                self._queue = self._queue[offset:]
                return
            gone = [pending for pending in self._queue if pending.update["update_id"] < offset]
            self.confirmed.update(pending.update["update_id"] for pending in gone)
            self._queue = [pending for pending in self._queue if pending.update["update_id"] >= offset]
        self.tell()

    def _batch(self, limit: int) -> list[dict[str, Any]]:
        with self.lock:
            now = self.clock()
            self._queue = [pending for pending in self._queue if pending.dies_at > now]
            batch = [pending.update for pending in self._queue[:limit]]
            if batch and self._given and self.random.random() < self.duplicate_share:
                batch = [*self.random.sample(self._given, min(3, len(self._given))), *batch]
            if self.random.random() < self.reorder_share:
                self.random.shuffle(batch)
            self._given = (self._given + batch)[-200:]
            return copy.deepcopy(batch)

    # -- methods of the bot --------------------------------------------------------------------------------------

    def _do_getMe(self, params: dict[str, Any]) -> dict[str, Any]:
        return {
            **self.me,
            "can_join_groups": True,
            "can_read_all_group_messages": False,
            "supports_inline_queries": False,
        }

    def _do_getFile(self, params: dict[str, Any]) -> dict[str, Any]:
        file_id = str(params.get("file_id"))
        if file_id not in self.uploads:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        size = len(self.uploads[file_id])
        if size > 20 * 1024 * 1024:
            raise bad_request("file is too big")
        return {"file_id": file_id, "file_unique_id": file_id, "file_size": size, "file_path": f"files/{file_id}"}

    def _do_getChat(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._chat(params).wire()

    def _do_createForumTopic(self, params: dict[str, Any]) -> dict[str, Any]:
        chat, name = self._chat(params), params.get("name")
        if not chat.forum:
            raise bad_request("the chat is not a forum")
        if not chat.manages_topics:
            raise bad_request("not enough rights to create a topic")
        if not isinstance(name, str) or not 1 <= len(name) <= 128:
            raise bad_request("topic name is invalid")
        thread = next(chat.numbers)
        chat.threads.add(thread)
        chat.topics[thread] = name
        return {"message_thread_id": thread, "name": name, "icon_color": 7322096}

    def _do_closeForumTopic(self, params: dict[str, Any]) -> bool:
        chat, thread = self._chat(params), int(params.get("message_thread_id") or 0)
        if thread not in chat.topics:
            raise bad_request("TOPIC_ID_INVALID")
        chat.closed.add(thread)
        return True

    def _do_deleteWebhook(self, params: dict[str, Any]) -> bool:
        self.webhook = ""
        if params.get("drop_pending_updates"):
            self._queue.clear()
        return True

    def _do_setWebhook(self, params: dict[str, Any]) -> bool:
        self.webhook = str(params.get("url") or "")
        return True

    def _do_setMyCommands(self, params: dict[str, Any]) -> bool:
        listed, tag = rules.check_commands(params.get("commands")), str(params.get("language_code") or "")
        if tag and (len(tag) != 2 or not tag.isalpha()):
            raise bad_request("invalid language code specified")
        self.commands_in[tag] = listed
        self.commands = self.commands_in.get("", [])
        return True

    def _do_sendMessage(self, params: dict[str, Any]) -> Message:
        chat = self._open_chat(params)
        rules.check_parse_mode(params)
        text = rules.check_text(params.get("text"))
        body: Message = {"text": text}
        if entities := rules.check_entities(params.get("entities"), text):
            body["entities"] = entities
        return self._post(chat, body, params)

    def _do_sendPhoto(self, params: dict[str, Any]) -> Message:
        """PNG only, here; 10 MB, width and height 10,000 together, and at most 20 times as long as wide."""
        chat = self._open_chat(params)
        rules.check_parse_mode(params)
        photo = params.get("photo")
        if not isinstance(photo, dict) or "content" not in photo:
            raise bad_request("there is no photo in the request")
        content = photo["content"]
        width, height = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
        if not content.startswith(b"\x89PNG\r\n\x1a\n") or content[12:16] != b"IHDR":
            raise bad_request("IMAGE_PROCESS_FAILED")
        if len(content) > 10 * 2**20 or width + height > 10_000 or not 1 / 20 <= width / height <= 20:
            raise bad_request("PHOTO_INVALID_DIMENSIONS")
        sizes = [{"file_id": "P", "file_unique_id": "P", "width": width, "height": height, "file_size": len(content)}]
        body: Message = {"photo": sizes}
        if params.get("caption"):
            body["caption"] = rules.check_text(params["caption"], rules.MAX_CAPTION)
        message = self._post(chat, body, params)
        chat.messages[message["message_id"]]["_content"] = content
        return message

    def _do_sendDocument(self, params: dict[str, Any]) -> Message:
        chat = self._open_chat(params)
        rules.check_parse_mode(params)
        document = params.get("document")
        if not isinstance(document, dict) or "content" not in document:
            raise bad_request("there is no document in the request")
        if not document["content"]:
            raise bad_request("file must be non-empty")
        size = len(document["content"])
        body: Message = {"document": {"file_id": f"F{size}", "file_unique_id": f"U{size}", "file_size": size}}
        body["document"]["file_name"] = document["name"]
        if params.get("caption"):
            body["caption"] = rules.check_text(params["caption"], rules.MAX_CAPTION)
        message = self._post(chat, body, params)
        chat.messages[message["message_id"]]["_content"] = document["content"]
        return message

    def _do_editMessageText(self, params: dict[str, Any]) -> Message:
        message = self._own_message(params)
        rules.check_parse_mode(params)
        text = rules.check_text(params.get("text"))
        entities = rules.check_entities(params.get("entities"), text)
        markup = rules.check_markup(params.get("reply_markup"))
        now = (message.get("text"), message.get("entities", []), message.get("reply_markup"))
        if now == (text, entities, markup):
            raise bad_request(NOT_MODIFIED)
        message["text"] = text
        _set(message, "entities", entities)
        _set(message, "reply_markup", markup)
        message["edit_date"] = int(self.clock())
        return _public(message)

    def _do_editMessageReplyMarkup(self, params: dict[str, Any]) -> Message:
        message = self._own_message(params)
        markup = rules.check_markup(params.get("reply_markup"))
        if message.get("reply_markup") == markup:
            raise bad_request(NOT_MODIFIED)
        _set(message, "reply_markup", markup)
        return _public(message)

    def _do_deleteMessage(self, params: dict[str, Any]) -> bool:
        message = self._own_message(params)
        del self.chats[message["chat"]["id"]].messages[message["message_id"]]
        return True

    def _do_answerCallbackQuery(self, params: dict[str, Any]) -> bool:
        tap = self.taps.get(str(params.get("callback_query_id")))
        if tap is None or tap.answered or self.clock() >= tap.dies_at:
            raise bad_request(QUERY_TOO_OLD)
        text = params.get("text")
        if text is not None and len(str(text)) > rules.MAX_ANSWER_TEXT:
            raise bad_request("MESSAGE_TOO_LONG")
        tap.answered, tap.toast, tap.alert = True, text, bool(params.get("show_alert"))
        return True

    # -- shared by the methods -----------------------------------------------------------------------------------

    def _chat(self, params: dict[str, Any]) -> Chat:
        try:
            chat = self.chats[int(params.get("chat_id", 0))]
        except (KeyError, ValueError):
            raise bad_request("chat not found") from None
        if not chat.started:
            raise Refused(403, "Forbidden: bot can't initiate conversation with a user")
        if chat.blocked:
            private = chat.kind == "private"
            who = "was blocked by the user" if private else "was kicked from the supergroup chat"
            raise Refused(403, f"Forbidden: bot {who}")
        return chat

    def _open_chat(self, params: dict[str, Any]) -> Chat:
        """The chat, if one more message may go there now."""
        chat = self._chat(params)
        wait_s = chat.last_sent_at + self.min_interval_s - self.clock()
        if wait_s > 0:
            seconds = max(1, round(wait_s))
            raise Refused(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)
        return chat

    def _post(self, chat: Chat, body: Message, params: dict[str, Any]) -> Message:
        message = body | {"chat": chat.wire(), "from": dict(self.me), "date": int(self.clock())}
        thread = params.get("message_thread_id")
        if thread is not None:
            if int(thread) not in chat.threads:
                raise bad_request("message thread not found")
            message |= {"message_thread_id": int(thread), "is_topic_message": True}
        self._link_reply(chat, message, params)
        if markup := rules.check_markup(params.get("reply_markup")):
            message["reply_markup"] = markup
        message["message_id"] = next(chat.numbers)
        chat.messages[message["message_id"]] = message
        chat.last_sent_at = self.clock()
        return _public(message)

    def _link_reply(self, chat: Chat, message: Message, params: dict[str, Any]) -> None:
        link = params.get("reply_parameters") or {}
        target = link.get("message_id") or params.get("reply_to_message_id")
        if target is None:
            return
        original = chat.messages.get(int(target))
        if original is not None:
            message["reply_to_message"] = _public(original)
        elif not (link.get("allow_sending_without_reply") or params.get("allow_sending_without_reply")):
            raise bad_request("message to be replied not found")

    def _own_message(self, params: dict[str, Any]) -> Message:
        message = self._chat(params).messages.get(int(params.get("message_id") or 0))
        if message is None:
            raise bad_request("message to edit not found")
        if message.get("reply_markup", {}).get("force_reply"):
            raise bad_request("message can't be edited")
        if message["from"]["id"] != self.me["id"] or self.clock() - message["date"] > EDIT_LIFE_S:
            raise bad_request("message can't be edited")
        return message


def _set(message: Message, key: str, value: Any) -> None:
    message.pop(key, None)
    if value:
        message[key] = value


def _public(message: Message) -> Message:
    return {key: value for key, value in message.items() if not key.startswith("_")}


def _failure(refused: Refused) -> web.Response:
    body: dict[str, Any] = {"ok": False, "error_code": refused.code, "description": refused.description}
    if refused.parameters:
        body["parameters"] = refused.parameters
    return web.json_response(body, status=refused.code)


async def _read_params(request: web.Request) -> dict[str, Any]:
    """Query, form, multipart or JSON: nested values may come as JSON text, as the real server allows."""
    params: dict[str, Any] = dict(request.query)
    if request.content_type == "application/json":
        params |= await request.json()
        return params
    for name, value in (await request.post()).items():
        if isinstance(value, web.FileField):
            params[name] = {"name": value.filename, "content": value.file.read()}
        else:
            params[name] = value
    return {name: _decode(name, value) for name, value in params.items()}


def _decode(name: str, value: Any) -> Any:
    nested = {"reply_markup", "entities", "allowed_updates", "commands", "reply_parameters", "drop_pending_updates"}
    if name in nested and isinstance(value, str) and value:
        try:
            return json.loads(value)
        except ValueError:
            raise web.HTTPBadRequest(text=f"can't parse {name}") from None
    return value
