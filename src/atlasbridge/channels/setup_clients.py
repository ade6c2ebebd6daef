"""Clients of the chat services for `setup`, before a channel is configured. Only the requested one is imported.

The steps are: check the token, identify the person, send a test prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from atlasbridge.channels.language import t
from atlasbridge.channels.registry import needs_extra

DO_YOU_SEE = "AtlasBridge asks: do you see this?"
IT_WORKS = "✅ It works"
CONNECTED = "✅ AtlasBridge is connected."
NOT_TAPPED = "⌛ Nobody tapped it in time."
HOW_TO_START = {
    "matrix": "Make an account for AtlasBridge alone on your homeserver, and copy its access token.",
    "discord": (
        "At https://discord.com/developers/applications make an application; on its page Bot press Reset Token and "
        "copy it.\nOn its page Installation invite it to a server that you share, so that you can write to it."
    ),
    "tell": "An address that Apprise knows, such as tgram://TOKEN/CHAT or mailto://USER:PASSWORD@example.org.",
    "telegram": "In Telegram, write to @BotFather, say /newbot, and copy the token it gives you.",
}


@dataclass(frozen=True, slots=True)
class Person:
    person_id: str
    name: str


class Introduction(Protocol):
    """Talks to a service before a channel is configured. Every method can raise ChannelError."""

    async def check(self) -> str:
        """Check the tokens with the server; return the bot's name."""

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Wait until a person sends this word to the bot; None after the timeout."""

    async def prove(self, person_id: str, patience_s: float) -> bool:
        """Send a test prompt and wait for that person's tap."""

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        """Return the settings for the channel's table, without the tokens."""

    async def close(self) -> None: ...


class HeardIntroduction:
    """For a service that tells an app what people write: it listens from the first wait on."""

    def __init__(self, listen: Callable[[], Awaitable[None]], close: Callable[[], Awaitable[None]]) -> None:
        self._listen, self._close = listen, close
        self._heard: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue()
        self._listening: asyncio.Future[None] | None = None

    async def _await(self, wanted: Callable[[str, dict[str, Any]], bool], patience_s: float) -> dict[str, Any] | None:
        """Return the first matching update; ignore the others."""
        self._listening = self._listening or asyncio.ensure_future(self._listen())
        try:
            async with asyncio.timeout(patience_s):
                while True:
                    kind, update = await self._heard.get()
                    if wanted(kind, update):
                        return update
        except TimeoutError:
            return None

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._close()


def how_to_start(channel: str) -> str:
    """What a person must do at the service before they have a token."""
    if channel == "slack":
        from atlasbridge.channels.slack.api import setup_steps

        return setup_steps()
    return t(HOW_TO_START.get(channel, HOW_TO_START["telegram"]))


def introduce(
    channel: str, tokens: dict[str, str], api_url: str, room: str = "", people: tuple[str, ...] = ()
) -> Introduction:
    """Return the client for this chat service, for `setup`."""
    if channel == "matrix":
        from atlasbridge.channels.matrix import MatrixIntroduction

        return MatrixIntroduction(tokens, api_url, room, people)
    if channel == "ntfy":
        from atlasbridge.channels.ntfy import NtfyIntroduction

        return NtfyIntroduction(tokens, api_url)
    if channel == "telegram":
        from atlasbridge.channels.telegram.api import TelegramIntroduction

        return TelegramIntroduction(tokens, api_url)
    with needs_extra(channel):
        if channel == "discord":
            from atlasbridge.channels.discord.api import DiscordIntroduction

            return DiscordIntroduction(tokens, api_url)
        from atlasbridge.channels.slack.api import SlackIntroduction
    return SlackIntroduction(tokens, api_url)
