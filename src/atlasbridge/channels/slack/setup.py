"""The Slack part of `atlasbridge setup`: it checks the app and identifies the person before a channel is configured."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import Any

from atlasbridge.channels.introductions import Person
from atlasbridge.channels.slack.api import SlackApi, SlackRefused
from atlasbridge.channels.slack.blocks import plain_text
from atlasbridge.channels.slack.link import Link
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.core.errors import ChannelError

API_URL = "https://slack.com/api/"
REQUEST_TIMEOUT_S = 10.0
HINT = "the app needs Socket Mode, a bot token (xoxb-) and an app-level token (xapp-) with connections:write"
NOBODY = ["UNOBODY"]  # a placeholder, because the settings require a list


class SlackIntroduction:
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._tokens, self._api_url = tokens, api_url or API_URL
        self._api = SlackApi(tokens["bot_token"], self._api_url, REQUEST_TIMEOUT_S)
        self._heard: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._listening: asyncio.Task[None] | None = None
        self.team_id = ""

    async def check(self) -> str:
        app = SlackApi(self._tokens["app_token"], self._api_url, REQUEST_TIMEOUT_S)
        try:
            me = await self._api.call("auth.test")
            await app.call("apps.connections.open")
        except SlackRefused as fault:
            raise ChannelError(f"Slack does not take the tokens: {fault.error}", HINT) from None
        finally:
            await app.close()
        self.team_id = str(me["team_id"])
        return f"{me.get('user', '?')} in {me.get('team', self.team_id)}"

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        def match(kind: str, payload: dict[str, Any]) -> str:
            event = payload.get("event") or {}
            own = payload.get("team_id") == self.team_id and not event.get("bot_id")
            said = plain_text(str(event.get("text") or "")).strip().lower()
            return str(event.get("user") or "") if own and said == word.lower() else ""

        user_id = await self._await(match, patience_s)
        if not user_id:
            return None
        user = (await self._api.call("users.info", {"user": user_id})).get("user") or {}
        return Person(user_id, str(user.get("real_name") or user.get("name") or ""))

    async def prove(self, person_id: str, patience_s: float) -> bool:
        secret = secrets.token_hex(8)
        label = {"type": "plain_text", "text": "✅ It works"}
        button = {"type": "button", "action_id": "setup", "value": secret, "text": label}
        text = "AtlasBridge asks: do you see this?"
        section = {"type": "section", "text": {"type": "plain_text", "text": text}}
        room = await self._api.open_dm(person_id)
        asked = {"text": text, "blocks": [section, {"type": "actions", "elements": [button]}]}
        ts = (await self._api.post(room, asked)).message

        def match(kind: str, payload: dict[str, Any]) -> str:
            clicked = (payload.get("actions") or [{}])[0]
            user_id = str((payload.get("user") or {}).get("id"))
            return user_id if clicked.get("value") == secret and user_id == person_id else ""

        found = await self._await(match, patience_s)
        done = "✅ AtlasBridge is connected." if found else "⌛ Nobody clicked in time."
        section = {"type": "section", "text": {"type": "plain_text", "text": done}}
        await self._api.edit((room, ts), {"text": done, "blocks": [section]})
        return bool(found)

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == API_URL else {"api_url": self._api_url}
        return {"team_id": self.team_id, "allowed_users": person_ids, **custom}

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._api.close()

    async def _await(self, match: Any, patience_s: float) -> str:
        self._listen()
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    if found := match(*await self._heard.get()):
                        return str(found)
        except TimeoutError:
            return ""

    def _listen(self) -> None:
        if self._listening is None:
            settings = SlackSettings.model_validate(
                {**self._tokens, "team_id": self.team_id, "allowed_users": NOBODY, "api_url": self._api_url}
            )
            self._listening = asyncio.get_running_loop().create_task(Link(settings, self._api, self).run())

    # called by the link

    async def admit(self, kind: str, payload: dict[str, Any]) -> bool:
        return True

    async def take(self, kind: str, payload: dict[str, Any]) -> None:
        self._heard.put_nowait((kind, payload))

    def state_changed(self, state: str) -> None:
        """Not needed: each wait has its own timeout."""


# The manifest of the Slack app for Slack's "from a manifest" page. `docs/slack-manifest.json` is a copy.

BOT_SCOPES = ["chat:write", "commands", "files:read", "files:write", "im:history", "im:write", "users:read"]
MANIFEST: dict[str, Any] = {
    "display_information": {
        "name": "AtlasBridge",
        "description": "Asks you when an AI coding tool waits for a person.",
    },
    "features": {
        "app_home": {
            "home_tab_enabled": False,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": "AtlasBridge", "always_online": True},
        "slash_commands": [
            {
                "command": "/atlasbridge",
                "description": "What runs and what waits",
                "usage_hint": "status | sessions | screen NAME | help",
                "should_escape": False,
            }
        ],
    },
    "oauth_config": {"scopes": {"bot": BOT_SCOPES}},
    "settings": {
        "event_subscriptions": {"bot_events": ["message.im"]},
        "interactivity": {"is_enabled": True},
        "org_deploy_enabled": False,
        "socket_mode_enabled": True,
        "token_rotation_enabled": False,
    },
}
STEPS = """1. Open https://api.slack.com/apps, press "Create New App", "From a manifest", choose your workspace, paste:

{manifest}

2. Press "Install to Workspace" and copy the bot token (xoxb-...) from "OAuth & Permissions".
3. Under "Basic Information", "App-Level Tokens", make a token with the scope connections:write and copy it (xapp-...).
Without the manifest: switch on Socket Mode and Interactivity, subscribe to the bot event message.im, and under
"App Home" switch on the Messages Tab and allow messages in it: it is off by default, and nobody could write to the app.
To use a channel, too: add the scopes channels:history and groups:history, the events message.channels and
message.groups, and invite the app there."""


def manifest_json() -> str:
    return json.dumps(MANIFEST, indent=2)


def setup_steps() -> str:
    return STEPS.format(manifest=manifest_json())
