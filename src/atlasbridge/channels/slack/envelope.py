"""What an envelope of Socket Mode says about itself: its kind, its number, and who sent it.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Payload = dict[str, Any]
KINDS = {"event_callback": "events_api", "block_actions": "interactive", "view_submission": "interactive"}


@dataclass(frozen=True, slots=True)
class Sender:
    """`teams` has more than one element when somebody of a connected workspace speaks here."""

    user_id: str
    teams: frozenset[str]
    name: str = ""


def kind_of(payload: Payload) -> str:
    """Under which kind of envelope this came."""
    return "slash_commands" if "command" in payload else KINDS.get(str(payload.get("type")), "")


def key_of(kind: str, payload: Payload) -> str:
    """What stays the same when Slack sends a thing again: envelope ids do not."""
    if kind == "events_api":
        return str(payload.get("event_id"))
    if kind == "slash_commands":
        return f"slash:{payload.get('trigger_id')}"
    if payload.get("type") == "view_submission":
        view = payload.get("view") or {}
        return f"view:{view.get('id')}:{view.get('hash')}"
    clicked = (payload.get("actions") or [{}])[0]
    return f"click:{payload.get('user', {}).get('id')}:{clicked.get('action_ts')}:{clicked.get('action_id')}"


def parse_sender(kind: str, payload: Payload) -> Sender | None:
    """None for what no person said: other kinds of events, and the bot's own echo."""
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
