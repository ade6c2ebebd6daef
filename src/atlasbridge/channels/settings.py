"""The tables `[channels.NAME]` of the configuration. Tokens are secrets; people are named by ids, because a name can
pass to another person.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator

from atlasbridge.channels.language import Language

DISCORD_API = "https://discord.com/api/v10"
PUBLIC_NTFY = "https://ntfy.sh"
SLACK_API = "https://slack.com/api/"
TELEGRAM_API = "https://api.telegram.org"
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PollTimeout = Annotated[int, Field(ge=1, le=50)]
Topic = Annotated[SecretStr, Field(min_length=20, max_length=64)]
DiscordUser = Annotated[str, StringConstraints(pattern=r"^\d{15,21}$")]
MatrixUser = Annotated[str, Field(pattern=r"^@[^:\s]+:\S+$")]
SlackTeam = Annotated[str, StringConstraints(pattern=r"^[TE][A-Z0-9]+$")]
SlackUser = Annotated[str, StringConstraints(pattern=r"^[UW][A-Z0-9]+$")]
SlackRoom = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]+$")]
TelegramUser = Annotated[int, Field(gt=0, strict=True)]


class ServiceSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    request_timeout_s: Positive = Field(default=8.0, description="How long one request may take, except a poll.")
    session_notices: bool = Field(default=True, description="Whether starts and ends of sessions are told.")


class RetryingSettings(ServiceSettings):
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to 60 seconds."
    )


class ChatSettings(RetryingSettings):
    host_name: str = Field(default="", description="This machine's name in messages; empty: its own.")
    messages_per_s: Positive = Field(default=1.0, description="Most messages a second to one chat.")
    replies_per_minute: Annotated[int, Field(gt=0)] = Field(
        default=10, description="Most replies a minute for one session."
    )


class ListeningSettings(ChatSettings):
    transcriber: list[str] = Field(
        default=[],
        description='A command that writes the words of a voice note, such as `["whisper-cli", "{file}"]`.',
    )


class GroupSettings(BaseModel):
    """A group, and optionally a topic in it, that shows prompts besides the private chats."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    chat_id: Annotated[int, Field(lt=0, strict=True)] = Field(description="The group's number, which is negative.")
    topic_id: Annotated[int, Field(gt=0, strict=True)] | None = Field(
        default=None, description="The topic in it; none: the whole group."
    )


class TelegramSettings(ListeningSettings):
    bot_token: SecretStr = Field(description="What @BotFather gave you; `env:NAME` and `file:PATH` name its place.")
    allowed_users: Annotated[list[TelegramUser], Field(min_length=1)] = Field(
        description="The numbers of the people who are asked and may answer."
    )
    groups: list[GroupSettings] = Field(default=[], description="Groups and topics that take part; none by default.")
    api_url: str = Field(default=TELEGRAM_API, description="The Bot API server.")
    poll_timeout_s: PollTimeout = Field(default=30, description="How long one poll waits.")


class SlackSettings(ListeningSettings):
    bot_token: SecretStr = Field(description="The bot token (xoxb-...); `env:NAME` and `file:PATH` name its place.")
    app_token: SecretStr = Field(description="The app-level token (xapp-...) with the scope connections:write.")
    team_id: SlackTeam = Field(description="The workspace (T...); people of any other are refused.")
    allowed_users: Annotated[list[SlackUser], Field(min_length=1)] = Field(
        description="The ids (U...) of the people who are asked and may answer."
    )
    channels: list[SlackRoom] = Field(default=[], description="Channels (C...) that take part; none by default.")
    threads: bool = Field(default=True, description="In those channels each session has a thread of its own.")
    api_url: str = Field(default=SLACK_API, description="The Web API.")
    ping_interval_s: Positive = Field(default=5.0, description="How often the connection is tried.")


class DiscordSettings(ChatSettings):
    bot_token: SecretStr = Field(description="The bot's token; `env:NAME` and `file:PATH` name its place.")
    allowed_users: Annotated[list[DiscordUser], Field(min_length=1)] = Field(
        description="The ids (numbers) of the people who are asked and may answer, by direct message."
    )
    api_url: str = Field(default=DISCORD_API, description="The REST API.")


class MatrixSettings(ChatSettings):
    homeserver: str = Field(description="The server's address, such as https://matrix.example.org.")
    access_token: SecretStr = Field(description="Of an account for AtlasBridge alone.")
    room: Annotated[str, Field(pattern=r"^!\S+$")] = Field(
        description="The room's id (!...), where that account is; it must not be encrypted."
    )
    allowed_users: Annotated[list[MatrixUser], Field(min_length=1)] = Field(
        description="Who may answer: whole ids, such as @ada:example.org."
    )
    language: Language = Field(default="", description="Of the texts here; empty: as [[people]] says, or English.")
    poll_timeout_s: PollTimeout = Field(default=30, description="How long one poll waits.")


class NtfySettings(RetryingSettings):
    """The name of a topic is its only protection: everyone who knows it can read it. Names must therefore be long, and
    a public server gets no text of the tool unless the user enables that."""

    topic: Topic = Field(
        description="Where you are told: long and random, as `setup` makes it. Subscribe your phone to it."
    )
    reply_topic: Topic = Field(description="Where your buttons answer; another one, as long and as random.")
    server: str = Field(default=PUBLIC_NTFY, description="Your own server, or the public one.")
    access_token: SecretStr = Field(default=SecretStr(""), description="For a server that wants one (tk_...).")
    reply_token: SecretStr = Field(
        default=SecretStr(""),
        description="A token that can only write to reply_topic: the buttons carry it, and anyone who reads the topic "
        "sees it. Left out, they carry access_token.",
    )
    allowed_users: Annotated[list[str], Field(min_length=1, max_length=1)] = Field(
        default=["phone"], description="What anyone who holds that phone is called: the identity is `ntfy:phone`."
    )
    show_text: bool | None = Field(
        default=None,
        description="Whether the question itself is sent; left out: only to a server of your own. Without it, only No.",
    )
    taps_agree: bool | None = Field(
        default=None,
        description="Whether a button may agree. Left out: only where the server does not let us read the topic that "
        "your phone reads. Anyone who can read it can press its buttons, and the tool in a session can read this file.",
    )
    page_url: str = Field(default="", description="Where a tap on the notification leads, such as the page's address.")
    language: Language = Field(default="", description="Of the texts here; empty: as [[people]] says, or English.")
    session_notices: bool = Field(default=False, description="Whether starts and ends of sessions are told.")

    @model_validator(mode="after")
    def _apart(self) -> NtfySettings:
        if self.topic.get_secret_value() == self.reply_topic.get_secret_value():
            raise ValueError("topic and reply_topic must be two topics")
        return self

    @property
    def shows_text(self) -> bool:
        return self.server.rstrip("/") != PUBLIC_NTFY if self.show_text is None else self.show_text


class TellSettings(ServiceSettings):
    urls: Annotated[list[SecretStr], Field(min_length=1)] = Field(
        description="Apprise addresses of who is told; they hold keys, so `env:NAME` and `file:PATH` name their place."
    )
    page_url: str = Field(
        default="", description="Where to answer, such as the page's address; told with each message."
    )
    show_text: bool = Field(default=False, description="Whether the question itself is sent; otherwise only who asks.")
    language: Language = Field(default="", description="Of the texts here; empty: English.")
    session_notices: bool = Field(default=False, description="Whether starts and ends of sessions are told.")


class DesktopSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    sound: bool = Field(default=False, description="Whether a notification makes a sound, where the desktop can.")
    show_text: bool = Field(default=True, description="Whether the question is shown; so may a locked screen.")
    language: Language = Field(default="", description="Of the texts here; empty: as this machine's own locale.")
    session_notices: bool = Field(default=False, description="Whether starts and ends of sessions are told.")
    program: str = Field(default="", description="Another program than notify-send (Linux) or osascript (macOS).")
