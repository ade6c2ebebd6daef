"""Calls Slack's Web API through slack-sdk. A call returns the answer or raises one of two errors; the outbox
retries."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Connection, HideTokens, Params, Place, Posted, Refused, Unreachable
from atlasbridge.channels.settings import SLACK_API, SlackSettings
from atlasbridge.channels.setup_clients import CONNECTED, DO_YOU_SEE, IT_WORKS, NOT_TAPPED, HeardIntroduction, Person
from atlasbridge.channels.slack.blocks import plain_text
from atlasbridge.core.errors import ChannelError

log = logging.getLogger(__name__)

QUERIES = {"users.info"}  # Slack accepts no JSON for these methods
FILE_HOSTS = {"files.slack.com", "slack-files.com"}
OK, CHUNK, DOWNLOAD_S = 200, 65536, 60.0
PASSING = {"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
GONE = {"channel_not_found", "is_archived", "not_in_channel", "user_disabled", "user_not_found", "cannot_dm_bot"}
BAD_TOKEN = {
    "invalid_auth",
    "not_authed",
    "token_revoked",
    "token_expired",
    "account_inactive",
    "not_allowed_token_type",
}
_TOKEN = re.compile(r"x(?:ox[a-z]|app)-[\w-]+|(?<=ticket=)[\w-]+|(?<=/link/)[\w?=&-]+")


sdk_log = logging.getLogger(f"{__name__}.sdk")
sdk_log.setLevel(logging.INFO)  # at DEBUG the SDK logs the messages of people
sdk_log.addFilter(HideTokens(_TOKEN, "<token>"))


class SlackRefused(Refused):
    def __init__(self, method: str, error: str, flood_s: float | None = None) -> None:
        state = "unauthorized" if error in BAD_TOKEN else "failing"
        super().__init__(f"Slack refused {method}: {error}", flood_s=flood_s, gone=error in GONE, state=state)
        self.error = error


class SlackApi:
    def __init__(self, token: str, base_url: str, timeout_s: float) -> None:
        self._token, self._base_url, self._timeout_s = token, base_url, timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._client = AsyncWebClient()

    def __repr__(self) -> str:
        return "SlackApi(<token>)"

    def _web(self) -> AsyncWebClient:
        """One client for the life of the channel. It belongs to the event loop that first uses it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=self._timeout_s))
            self._client = AsyncWebClient(
                self._token,
                base_url=self._base_url,
                session=self._session,
                logger=sdk_log,
                retry_handlers=[],  # a hidden retry could post a message twice
            )
        return self._client

    async def call(self, method: str, params: Params | None = None) -> dict[str, Any]:
        sent: dict[str, Any] = {"json": params or {}}
        if method in QUERIES:
            sent = {"http_verb": "GET", "params": params or {}}
        try:
            response = await self._web().api_call(method, **sent)
        except SlackApiError as fault:
            raise _judge(method, fault) from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError, ValueError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return dict(response.data) if isinstance(response.data, dict) else {}

    async def post(self, chat: str, params: Params) -> Posted:
        """Post a message, a message for a single person (`only_for`), or a file if params has a `document`."""
        if "document" in params:
            return Posted(await self._upload(chat, params))
        rest = {name: value for name, value in params.items() if name != "only_for"}
        sent = {"channel": chat, "unfurl_links": False, "unfurl_media": False, **rest}
        if only_for := params.get("only_for"):
            answer = await self.call("chat.postEphemeral", {**sent, "user": only_for})
            return Posted(str(answer.get("message_ts", "")))
        ts = str((await self.call("chat.postMessage", sent))["ts"])
        return Posted(ts, moment_of(ts))

    async def edit(self, place: Place, params: Params) -> None:
        """Edit a message. Its thread cannot change."""
        rest = {name: value for name, value in params.items() if name not in ("thread_ts", "reply_broadcast")}
        await self.call("chat.update", {"channel": place[0], "ts": place[1], **rest})

    async def download(self, url: str, kind: str, most: int) -> bytes | None:
        """Download a file; None if it is larger than `most` bytes. The token is sent to Slack's own hosts only."""
        if not self._is_slacks(url):
            raise Unreachable("the file is not at Slack")
        self._web()
        if self._session is None:
            raise Unreachable("the channel is closed")
        patience = aiohttp.ClientTimeout(total=DOWNLOAD_S)
        headers = {"Authorization": f"Bearer {self._token}"}
        content = bytearray()
        try:
            async with self._session.get(url, headers=headers, allow_redirects=False, timeout=patience) as response:
                if response.status != OK or (response.content_type == "text/html" and kind != "text/html"):
                    raise Unreachable("Slack does not give the file; has the app the scope files:read?")
                async for chunk in response.content.iter_chunked(CHUNK):
                    content += chunk
                    if len(content) > most:
                        return None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return bytes(content)

    def _is_slacks(self, url: str) -> bool:
        asked, own = urlsplit(url), urlsplit(self._base_url)
        if (asked.scheme, asked.netloc) == (own.scheme, own.netloc):
            return True
        return asked.scheme == "https" and (asked.hostname or "") in FILE_HOSTS

    async def open_dm(self, user_id: str) -> str:
        answer = await self.call("conversations.open", {"users": user_id})
        return str(answer["channel"]["id"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # transports close their sockets in the next iteration of the loop

    async def _upload(self, chat: str, params: Params) -> str:
        name, content = params["document"]
        try:
            await self._web().files_upload_v2(
                channel=chat,
                filename=name,
                content=content,
                title=params.get("text") or name,
                thread_ts=params.get("thread_ts"),
            )
        except SlackApiError as fault:
            raise _judge("files.upload", fault) from None
        except (aiohttp.ClientError, SlackClientError, TimeoutError, OSError) as fault:
            raise Unreachable(f"Slack cannot be reached ({type(fault).__name__})") from None
        return ""


def moment_of(ts: object) -> float:
    """Return when a message was posted, by Slack's clock; 0 if `ts` is not a timestamp."""
    try:
        return float(str(ts))
    except ValueError:
        return 0.0


def _judge(method: str, fault: SlackApiError) -> Refused | Unreachable:
    """Classify the error. A broken answer has no error code and is worth a retry."""
    status = int(getattr(fault.response, "status_code", 0) or getattr(fault.response, "status", 0) or 0)
    data = getattr(fault.response, "data", None)
    error = str(data.get("error", "")) if isinstance(data, dict) else ""
    if status == 429 or error == "ratelimited":
        headers = getattr(fault.response, "headers", None) or {}
        return SlackRefused(method, "ratelimited", flood_s=float(headers.get("Retry-After", 1)))
    if status >= 500 or not error or error in PASSING:
        return Unreachable(f"Slack has a fault of its own ({status} {error})")
    return SlackRefused(method, error)


# The Slack part of `atlasbridge setup`: it checks the app and identifies the person before a channel is configured.

REQUEST_TIMEOUT_S = 10.0
HINT = "the app needs Socket Mode, a bot token (xoxb-) and an app-level token (xapp-) with connections:write"
NOBODY = ["UNOBODY"]  # a placeholder, because the settings require a list


class SlackIntroduction(HeardIntroduction):
    def __init__(self, tokens: dict[str, str], api_url: str = "") -> None:
        self._tokens, self._api_url = tokens, api_url or SLACK_API
        self._api = SlackApi(tokens["bot_token"], self._api_url, REQUEST_TIMEOUT_S)
        super().__init__(self._run_link, self._api.close)
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
        def is_word(kind: str, payload: dict[str, Any]) -> bool:
            event = payload.get("event") or {}
            own = payload.get("team_id") == self.team_id and event.get("user") and not event.get("bot_id")
            return bool(own) and plain_text(str(event.get("text") or "")).strip().lower() == word.lower()

        found = await self._await(is_word, patience_s)
        if found is None:
            return None
        user_id = str(found["event"]["user"])
        user = (await self._api.call("users.info", {"user": user_id})).get("user") or {}
        return Person(user_id, str(user.get("real_name") or user.get("name") or ""))

    async def prove(self, person_id: str, patience_s: float) -> bool:
        secret = secrets.token_hex(8)
        label = {"type": "plain_text", "text": t(IT_WORKS)}
        button = {"type": "button", "action_id": "setup", "value": secret, "text": label}
        text = t(DO_YOU_SEE)
        section = {"type": "section", "text": {"type": "plain_text", "text": text}}
        room = await self._api.open_dm(person_id)
        asked = {"text": text, "blocks": [section, {"type": "actions", "elements": [button]}]}
        ts = (await self._api.post(room, asked)).message

        def is_press(kind: str, payload: dict[str, Any]) -> bool:
            clicked = (payload.get("actions") or [{}])[0]
            return clicked.get("value") == secret and (payload.get("user") or {}).get("id") == person_id

        found = await self._await(is_press, patience_s)
        done = t(CONNECTED) if found else t(NOT_TAPPED)
        section = {"type": "section", "text": {"type": "plain_text", "text": done}}
        await self._api.edit((room, ts), {"text": done, "blocks": [section]})
        return found is not None

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        custom = {} if self._api_url == SLACK_API else {"api_url": self._api_url}
        return {"team_id": self.team_id, "allowed_users": person_ids, **custom}

    async def _run_link(self) -> None:
        settings = SlackSettings.model_validate(
            {**self._tokens, "team_id": self.team_id, "allowed_users": NOBODY, "api_url": self._api_url}
        )
        await Link(settings, self._api, self).run()

    # called by the link

    async def admit(self, kind: str, payload: dict[str, Any]) -> str:
        return "new"

    async def take(self, kind: str, payload: dict[str, Any], news: str) -> None:
        self._heard.put_nowait((kind, payload))


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
    return t(STEPS, manifest=manifest_json())


# Keeps the Socket Mode connection open. The SDK does not do it, because it can retry a used ticket for ever.

CONNECT_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.5
GRACE_LOOKS = 4  # the SDK could be switching to a new socket by itself


class Listener(Protocol):
    async def admit(self, kind: str, payload: dict[str, Any]) -> str:
        """Store the update in the inbox; the link acknowledges it when this returns. "copy" if it is one."""

    async def take(self, kind: str, payload: dict[str, Any], news: str) -> None:
        """Process it. `news` is what `admit` has returned."""


class Link(Connection):
    title = "Slack"

    def __init__(
        self,
        settings: SlackSettings,
        api: SlackApi,
        listener: Listener,
        changed: Callable[[str, str], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(settings.backoff_first_s, changed)
        self._settings, self._api, self._listener = settings, api, listener

    async def _check_workspace(self) -> None:
        me = await self._api.call("auth.test")
        if me.get("team_id") != self._settings.team_id:
            raise ChannelError("the bot token belongs to another workspace than team_id says")
        self.bot = str(me.get("user_id", ""))

    async def _live(self) -> None:
        """One client, until its connection is lost."""
        await self._check_workspace()
        own = self._settings
        token = own.app_token.get_secret_value()
        client = SocketModeClient(
            token,
            logger=sdk_log,
            web_client=AsyncWebClient(token, base_url=own.api_url, logger=sdk_log, timeout=int(CONNECT_TIMEOUT_S)),
            auto_reconnect_enabled=False,
            ping_interval=own.ping_interval_s,
        )
        client.socket_mode_request_listeners.append(self._hear)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                client.wss_uri = await self._new_address()
                await client.connect()
            await self._move("ok")
            await self._watch(client)
        except TimeoutError:
            raise ChannelError("Slack did not answer in time") from None
        finally:
            await _close(client)

    async def _new_address(self) -> str:
        """Request the address of a socket; it is valid for one connection."""
        own = self._settings
        api = SlackApi(own.app_token.get_secret_value(), own.api_url, own.request_timeout_s)
        try:
            return str((await api.call("apps.connections.open"))["url"])
        finally:
            await api.close()

    async def _watch(self, client: SocketModeClient) -> None:
        missing = 0
        while missing < GRACE_LOOKS:
            await asyncio.sleep(LOOK_EVERY_S)
            missing = 0 if await client.is_connected() else missing + 1

    async def _hear(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        """Store, acknowledge, then process: an error of ours must not make Slack send it again."""
        news = await self._listener.admit(request.type, request.payload)
        try:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))
        except (ConnectionError, aiohttp.ClientError) as fault:  # Slack sends it again, and we recognise the copy
            log.info("an event could not be acknowledged (%s)", type(fault).__name__)
        if news != "copy":
            await self._listener.take(request.type, request.payload, news)


async def _close(client: SocketModeClient) -> None:
    tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
    await client.close()
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
    await asyncio.sleep(0)  # the transport closes its socket in the next iteration of the loop
