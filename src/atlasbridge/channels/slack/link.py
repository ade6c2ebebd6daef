"""Keeps the Socket Mode connection open. The SDK does not do it, because it can retry a used ticket for ever.

Every envelope goes to the listener, which says when it is acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

import aiohttp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from atlasbridge.channels.outbox import Backoff
from atlasbridge.channels.slack.api import SlackApi, SlackRefused, sdk_log
from atlasbridge.channels.slack.settings import SlackSettings
from atlasbridge.core.errors import ChannelError

log = logging.getLogger(__name__)
CONNECT_TIMEOUT_S = 15.0
LOOK_EVERY_S = 0.5
GRACE_LOOKS = 4  # the SDK could be switching to a new socket by itself


class Listener(Protocol):
    async def admit(self, kind: str, payload: dict[str, Any]) -> bool:
        """Store the update in the inbox; the link acknowledges it when this returns. False if it is a copy."""

    async def take(self, kind: str, payload: dict[str, Any]) -> None: ...
    def state_changed(self, state: str) -> None: ...


class Link:
    def __init__(self, settings: SlackSettings, api: SlackApi, listener: Listener) -> None:
        self._settings, self._api, self._listener = settings, api, listener
        self._backoff = Backoff(settings.backoff_first_s)
        self.state, self.detail = "starting", ""
        self.bot_user = ""

    async def run(self) -> None:
        while True:
            try:
                await self._check_workspace()
                await self._live()
                self._move("unreachable", "the connection was lost")
            except SlackRefused as fault:
                self._move("unauthorized" if fault.bad_token else "failing", str(fault))
            except ChannelError as fault:
                self._move("unreachable", str(fault))
            except Exception as fault:  # the channel boundary: report the error and retry
                log.exception("the Slack connection failed")
                self._move("failing", type(fault).__name__)
            await asyncio.sleep(self._backoff.next_wait())

    async def _check_workspace(self) -> None:
        me = await self._api.call("auth.test")
        if me.get("team_id") != self._settings.team_id:
            raise ChannelError("the bot token belongs to another workspace than team_id says")
        self.bot_user = str(me.get("user_id", ""))

    async def _live(self) -> None:
        """One client, until its connection is lost."""
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
            self._move("ok", "")
            self._backoff.reset()
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
        fresh = await self._listener.admit(request.type, request.payload)
        try:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))
        except (ConnectionError, aiohttp.ClientError) as fault:  # Slack sends it again, and we recognise the copy
            log.info("an event could not be acknowledged (%s)", type(fault).__name__)
        if fresh:
            await self._listener.take(request.type, request.payload)

    def _move(self, state: str, detail: str) -> None:
        if state != self.state:
            log.log(logging.INFO if state == "ok" else logging.WARNING, "Slack is %s %s", state, detail)
        self.state, self.detail = state, detail
        self._listener.state_changed(state)


async def _close(client: SocketModeClient) -> None:
    tasks = [client.message_processor, client.current_session_monitor, client.message_receiver]
    await client.close()
    await asyncio.gather(*(task for task in tasks if task is not None), return_exceptions=True)
    await asyncio.sleep(0)  # the transport closes its socket in the next iteration of the loop
