"""Clients of the chat services for `setup`, before a channel is configured. Only the requested one is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

# Steps of `atlasbridge setup` for a chat service: check the token, identify the person, send a test prompt.


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


def how_to_start(channel: str) -> str:
    """What a person must do at the service before they have a token."""
    if channel == "slack":
        from atlasbridge.channels.slack.setup import setup_steps

        return setup_steps()
    if channel == "matrix":
        return "Make an account for AtlasBridge alone on your homeserver, and copy its access token."
    if channel == "discord":
        return (
            "At https://discord.com/developers/applications make an application; on its page Bot press Reset Token and "
            "copy it.\nOn its page Installation invite it to a server that you share, so that you can write to it."
        )
    if channel == "tell":
        return "An address that Apprise knows, such as tgram://TOKEN/CHAT or mailto://USER:PASSWORD@example.org."
    return "In Telegram, write to @BotFather, say /newbot, and copy the token it gives you."


def introduce(
    channel: str, tokens: dict[str, str], api_url: str, room: str = "", people: tuple[str, ...] = ()
) -> Introduction:
    """Return the client for this chat service, for `setup`."""
    if channel == "matrix":
        from atlasbridge.channels.matrix.setup import MatrixIntroduction

        return MatrixIntroduction(tokens, api_url, room, people)
    if channel == "ntfy":
        from atlasbridge.channels.ntfy.setup import NtfyIntroduction

        return NtfyIntroduction(tokens, api_url)
    if channel == "telegram":
        from atlasbridge.channels.telegram.setup import TelegramIntroduction

        return TelegramIntroduction(tokens, api_url)
    try:
        if channel == "discord":
            from atlasbridge.channels.discord.setup import DiscordIntroduction

            return DiscordIntroduction(tokens, api_url)
        from atlasbridge.channels.slack.setup import SlackIntroduction
    except ModuleNotFoundError as missing:
        from atlasbridge.core.distribution import install_line
        from atlasbridge.core.errors import ConfigError

        raise ConfigError(f"the channel {channel} needs {missing.name}", install_line(channel)) from None
    return SlackIntroduction(tokens, api_url)
