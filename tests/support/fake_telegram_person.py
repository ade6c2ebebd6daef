"""The person with a phone: taps, writes, replies, edits, forwards, blocks. Everything a bot's user can do to it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.fake_telegram import Chat, FakeTelegram, Message, Tap


class Person:
    """One user of the fake server; messages are the server's own dictionaries."""

    def __init__(self, server: FakeTelegram, user_id: int, name: str) -> None:
        self.server, self.user_id, self.name, self.language = server, user_id, name, ""

    @property
    def wire(self) -> dict[str, Any]:
        known = {"language_code": self.language} if self.language else {}
        return {"id": self.user_id, "is_bot": False, "first_name": self.name} | known

    def sees(self, chat_id: int | None = None) -> list[Message]:
        """The bot's messages, as they look now."""
        return self.server.sent(chat_id or self.user_id)

    def last(self, chat_id: int | None = None) -> Message:
        return self.sees(chat_id)[-1]

    def start(self) -> Message:
        self.server.chats[self.user_id].started = True
        return self.write("/start")

    def write(
        self, text: str, *, chat_id: int | None = None, reply_to: Message | None = None, thread: int | None = None
    ) -> Message:
        return self._say({"text": text} | _command_entity(text), chat_id, reply_to, thread)

    def forward(self, text: str, origin: str = "Someone") -> Message:
        """A message that somebody else wrote."""
        source = {"type": "hidden_user", "sender_user_name": origin, "date": 1}
        return self._say({"text": text, "forward_origin": source, "forward_date": 1}, None, None, None)

    def write_marked(self, text: str, **marks: Any) -> Message:
        """With what Telegram says of a message that was scheduled, came through a bot, or replies elsewhere."""
        return self._say({"text": text, **marks}, None, None, None)

    def send_photo(self) -> Message:
        return self._say(
            {"photo": [{"file_id": "P", "file_unique_id": "P", "width": 1, "height": 1}]}, None, None, None
        )

    def send_file(self, kind: str, content: bytes, reply_to: Message | None = None, **body: Any) -> Message:
        """A `photo`, a `document` (with `file_name`) or a `voice`; with `caption` where there is one."""
        file_id = f"{kind}{len(self.server.uploads)}"
        self.server.uploads[file_id] = content
        about = {"file_id": file_id, "file_unique_id": file_id, "file_size": len(content)}
        about |= {"file_name": body.pop("file_name")} if "file_name" in body else {}
        sent: Any = [{"file_id": "small", "file_unique_id": "s"}, about] if kind == "photo" else about
        return self._say({kind: sent, **body}, None, reply_to, None)

    def edit(self, message: Message, text: str) -> None:
        """Change a message that this person wrote."""
        with self.server.lock:
            stored = self.server.chats[message["chat"]["id"]].messages[message["message_id"]]
            assert stored["from"]["id"] == self.user_id, "people edit only their own messages"
            stored |= {"text": text, "edit_date": int(self.server.clock())}
            self.server.put("edited_message", copy.deepcopy(stored))

    def tap(self, message: Message, button: str) -> Tap:
        """Press the button whose label contains these words."""
        for row in message.get("reply_markup", {}).get("inline_keyboard", []):
            for shown in row:
                if button in shown["text"]:
                    return self.tap_data(message, shown["callback_data"])
        raise AssertionError(f"no button {button!r} on {message.get('text')!r}")

    def tap_data(self, message: Message, data: str, *, inaccessible: bool = False) -> Tap:
        """Press with any data: a stale screen or a bad client can (the server does not check it)."""
        tap = self.server.new_tap(data)
        shown = copy.deepcopy({key: value for key, value in message.items() if not key.startswith("_")})
        if inaccessible:
            shown = {"chat": shown["chat"], "message_id": shown["message_id"], "date": 0}
        query = {"id": tap.query_id, "from": self.wire, "message": shown, "chat_instance": "1", "data": data}
        self.server.put("callback_query", query, life_s=tap.dies_at - self.server.clock())
        return tap

    def block(self) -> None:
        self._set_blocked(True)

    def unblock(self) -> None:
        self._set_blocked(False)

    def _set_blocked(self, blocked: bool) -> None:
        with self.server.lock:
            chat = self.server.chats[self.user_id]
            chat.blocked = blocked
        bot = {"user": dict(self.server.me)}
        member, kicked = bot | {"status": "member"}, bot | {"status": "kicked", "until_date": 0}
        old, new = (member, kicked) if blocked else (kicked, member)
        change = {"chat": chat.wire(), "from": self.wire, "date": int(self.server.clock())}
        self.server.put("my_chat_member", change | {"old_chat_member": old, "new_chat_member": new})

    def _say(self, body: dict[str, Any], chat_id: int | None, reply_to: Message | None, thread: int | None) -> Message:
        with self.server.lock:
            chat: Chat = self.server.chats[chat_id or self.user_id]
            message = body | {"chat": chat.wire(), "from": self.wire, "date": int(self.server.clock())}
            if reply_to is not None:
                message["reply_to_message"] = {k: v for k, v in reply_to.items() if not k.startswith("_")}
            if thread is not None:
                message |= {"message_thread_id": thread, "is_topic_message": True}
            message["message_id"] = next(chat.numbers)
            chat.messages[message["message_id"]] = message
            self.server.put("message", copy.deepcopy(message))
        return message


def _command_entity(text: str) -> dict[str, Any]:
    if not text.startswith("/"):
        return {}
    return {"entities": [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]}
