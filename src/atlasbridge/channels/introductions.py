"""Who can talk to each chat service before there is a channel, for `setup`; only the one asked for is imported."""

from __future__ import annotations

from atlasbridge.channels.introduction import Introduction


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
