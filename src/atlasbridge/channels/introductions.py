"""Who can talk to each chat service before there is a channel, for `setup`; only the one asked for is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

# What `atlasbridge setup` needs of a chat service: is the token good, who is this person, does a tap arrive.


@dataclass(frozen=True, slots=True)
class Person:
    person_id: str
    name: str


class Introduction(Protocol):
    """Talks to the service before there is a channel.  Every method may raise ChannelError."""

    async def check(self) -> str:
        """Try the tokens against the server; returns how the bot is called there."""

    async def find_person(self, word: str, patience_s: float) -> Person | None:
        """Wait until somebody sends this word to the bot; None: nobody did."""

    async def prove(self, person_id: str, patience_s: float) -> bool:
        """Send a test prompt and wait for that person's tap."""

    def settings(self, person_ids: list[str]) -> dict[str, Any]:
        """What belongs into the channel's table, besides the tokens."""

    async def close(self) -> None: ...


def how_to_start(channel: str) -> str:
    """What a person has to do at the service before there is a token."""
    if channel == "slack":
        from atlasbridge.channels.slack.setup import setup_steps

        return setup_steps()
    if channel == "matrix":
        return "Make an account for AtlasBridge alone on your homeserver, and copy its access token."
    if channel == "tell":
        return "An address that Apprise knows, such as tgram://TOKEN/CHAT or mailto://USER:PASSWORD@example.org."
    return "In Telegram, write to @BotFather, say /newbot, and copy the token it gives you."


def introduce(
    channel: str, tokens: dict[str, str], api_url: str, room: str = "", people: tuple[str, ...] = ()
) -> Introduction:
    """Somebody who can talk to a chat service before there is a channel, for `setup`."""
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
        from atlasbridge.channels.slack.setup import SlackIntroduction
    except ModuleNotFoundError as missing:
        from atlasbridge.core.distribution import install_line
        from atlasbridge.core.errors import ConfigError

        raise ConfigError(f"the Slack channel needs {missing.name}", install_line("slack")) from None
    return SlackIntroduction(tokens, api_url)
