"""The person in Slack: clicks, fills in a modal, writes in a thread, edits.  The app hears of it by an envelope."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.fake_slack import Envelope, FakeSlack, Message


class Person:
    def __init__(self, server: FakeSlack, user_id: str) -> None:
        self.server, self.user_id = server, user_id
        self.marked: dict[str, dict[str, Any]] = {}

    @property
    def dm(self) -> str:
        return self.server.dm_with(self.user_id).room_id

    def sees(self, room_id: str = "") -> list[Message]:
        """The bot's messages that this person can see, as they look now."""
        messages = self.server.sent(room_id or self.dm)
        return [message for message in messages if message.get("_only_for") in (None, self.user_id)]

    def last(self, room_id: str = "") -> Message:
        return self.sees(room_id)[-1]

    def click(self, message: Message, label: str, room_id: str = "") -> Envelope:
        """Press the button whose label contains these words."""
        for block in message.get("blocks", []):
            for element in block.get("elements", []):
                if element.get("type") == "button" and label in element["text"]["text"]:
                    return self.click_raw(message, element, room_id)
        raise AssertionError(f"no button {label!r} on {message.get('text')!r}")

    def click_raw(self, message: Message, element: dict[str, Any], room_id: str = "") -> Envelope:
        """Press with any value: a stale screen or a bad client can."""
        action = {**element, "block_id": "b", "action_ts": self.server.new_ts()}
        payload = self._payload("block_actions") | {
            "container": {"type": "message", "message_ts": message["ts"], "channel_id": room_id or self.dm},
            "channel": {"id": room_id or self.dm},
            "message": {key: value for key, value in copy.deepcopy(message).items() if not key.startswith("_")},
            "actions": [action],
            "state": {"values": self._marks_of(message)},
        }
        return self.server.emit("interactive", payload)

    def choose(self, message: Message, label: str, room_id: str = "") -> Envelope:
        """Choose the option of a menu whose label contains these words."""
        for block in message.get("blocks", []):
            for element in block.get("elements", []):
                for option in element.get("options", []) if element.get("type") == "static_select" else []:
                    if label in option["text"]["text"]:
                        return self.click_raw(message, {**element, "selected_option": option}, room_id)
        raise AssertionError(f"no option {label!r} on {message.get('text')!r}")

    def mark(self, message: Message, *labels: str) -> Envelope:
        """Mark exactly these options of the message's list; the app is told of it at once."""
        _, element = _list_of(message)
        chosen = [option for option in element["options"] if any(one in option["text"]["text"] for one in labels)]
        assert len(chosen) == len(labels), f"{labels} are not all among {element['options']}"
        self.marked[message["ts"]] = {"type": element["type"], "selected_options": chosen}
        return self.click_raw(message, {"type": element["type"], "action_id": element["action_id"]})

    def _marks_of(self, message: Message) -> dict[str, Any]:
        """As Slack does: every list of the message, with what is marked in it now."""
        block, element = _list_of(message)
        if not element:
            return {}
        untouched = {"type": element["type"], "selected_options": element.get("initial_options", [])}
        return {block["block_id"]: {element["action_id"]: self.marked.get(message["ts"], untouched)}}

    def modal(self) -> dict[str, Any]:
        """The modal that is open on the screen."""
        with self.server.lock:
            return copy.deepcopy(list(self.server.views.values())[-1])

    def submit(self, text: str) -> Envelope:
        """Fill in the one text field of the open modal and submit it."""
        view = self.modal()
        values = {
            block.get("block_id", "b"): {
                block["element"].get("action_id", "a"): {"type": "plain_text_input", "value": text}
            }
            for block in view["blocks"]
            if block["type"] == "input"
        }
        return self.server.emit(
            "interactive", self._payload("view_submission") | {"view": view | {"state": {"values": values}}}
        )

    def write(self, text: str, room_id: str = "", thread: Message | None = None, **extra: Any) -> Message:
        with self.server.lock:
            room = self.server.rooms[room_id or self.dm]
            message: Message = {
                "type": "message",
                "user": self.user_id,
                "text": text,
                "ts": self.server.new_ts(),
                **extra,
            }
            if thread is not None:
                message["thread_ts"] = thread.get("thread_ts") or thread["ts"]
            room.messages[message["ts"]] = message
        self._event(message | {"channel": room.room_id, "channel_type": room.kind, "team": self._team})
        return message

    def send_file(
        self, name: str, content: bytes, text: str = "", mimetype: str = "image/png", **where: Any
    ) -> Message:
        """Share a file, as Slack tells an app of it; `mimetype` of a voice note is audio."""
        file_id = f"F{self.server.number()}"
        self.server.shared[file_id] = content
        url = f"{self.server.url}/files/{file_id}"
        file = {"id": file_id, "name": name, "mimetype": mimetype, "size": len(content), "url_private_download": url}
        return self.write(text, subtype="file_share", files=[file], **where)

    def slash(self, text: str, command: str = "/atlasbridge") -> Envelope:
        """Type a slash command of the app, anywhere."""
        return self.server.emit(
            "slash_commands",
            {
                "team_id": self._team,
                "channel_id": self.dm,
                "user_id": self.user_id,
                "user_name": self.server.users[self.user_id]["name"],
                "command": command,
                "text": text,
                "api_app_id": "A0APP",
                "response_url": f"{self.server.url}/respond",
                "trigger_id": self.server.new_trigger(),
            },
        )

    def edit(self, message: Message, text: str, room_id: str = "") -> None:
        changed = {"type": "message", "subtype": "message_changed", "channel": room_id or self.dm, "channel_type": "im"}
        self._event(changed | {"message": message | {"text": text}, "previous_message": message})

    @property
    def _team(self) -> str:
        return str(self.server.users[self.user_id]["team_id"])

    def _payload(self, kind: str) -> dict[str, Any]:
        user = self.server.users[self.user_id]
        return {
            "type": kind,
            "user": {"id": self.user_id, "name": user["name"], "username": user["name"], "team_id": self._team},
            "team": {"id": self._team, "domain": "team"},
            "api_app_id": "A0APP",
            "trigger_id": self.server.new_trigger(),
        }

    def _event(self, event: dict[str, Any]) -> Envelope:
        payload = self.server.event_payload(event)
        payload["team_id"] = self._team
        return self.server.emit("events_api", payload)


def _list_of(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """The block and the element where options can be marked; both empty when there is none."""
    for block in message.get("blocks", []):
        for element in [*block.get("elements", []), block.get("accessory", {})]:
            if element.get("type") in ("checkboxes", "multi_static_select"):
                return block, element
    return {}, {}
