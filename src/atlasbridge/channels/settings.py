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
    session_notices: bool = Field(default=True, description="Whether to notify people of started and ended sessions.")


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
        description='A command that prints the words of a voice note, such as `["whisper-cli", "{file}"]`.',
    )


class GroupSettings(BaseModel):
    """A group, and optionally a topic in it, that shows prompts besides the private chats."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    chat_id: Annotated[int, Field(lt=0, strict=True)] = Field(description="The group's number, which is negative.")
    topic_id: Annotated[int, Field(gt=0, strict=True)] | None = Field(
        default=None, description="The topic in it; none: the whole group."
    )


class TelegramSettings(ListeningSettings):
    bot_token: SecretStr = Field(description="The token from @BotFather, or `env:NAME` or `file:PATH`.")
    allowed_users: Annotated[list[TelegramUser], Field(min_length=1)] = Field(
        description="The numbers of the people who are asked and can answer."
    )
    groups: list[GroupSettings] = Field(default=[], description="Groups and topics to use; none by default.")
    api_url: str = Field(default=TELEGRAM_API, description="The Bot API server.")
    poll_timeout_s: PollTimeout = Field(default=30, description="How long one poll waits.")


class SlackSettings(ListeningSettings):
    bot_token: SecretStr = Field(description="The bot token (xoxb-...), or `env:NAME` or `file:PATH`.")
    app_token: SecretStr = Field(description="The app-level token (xapp-...) with the scope connections:write.")
    team_id: SlackTeam = Field(description="The workspace (T...); people of other workspaces are refused.")
    allowed_users: Annotated[list[SlackUser], Field(min_length=1)] = Field(
        description="The ids (U...) of the people who are asked and can answer."
    )
    channels: list[SlackRoom] = Field(default=[], description="Channels (C...) to use; none by default.")
    threads: bool = Field(default=True, description="Whether each session has its own thread in those channels.")
    api_url: str = Field(default=SLACK_API, description="The Web API.")
    ping_interval_s: Positive = Field(default=5.0, description="How often the connection is checked.")


class DiscordSettings(ChatSettings):
    bot_token: SecretStr = Field(description="The bot's token, or `env:NAME` or `file:PATH`.")
    allowed_users: Annotated[list[DiscordUser], Field(min_length=1)] = Field(
        description="The ids (numbers) of the people who are asked and can answer, by direct message."
    )
    api_url: str = Field(default=DISCORD_API, description="The REST API.")


class MatrixSettings(ChatSettings):
    homeserver: str = Field(description="The server's address, such as https://matrix.example.org.")
    access_token: SecretStr = Field(description="The token of a separate account for AtlasBridge.")
    room: Annotated[str, Field(pattern=r"^!\S+$")] = Field(
        description="The id (!...) of a room of that account; it must not be encrypted."
    )
    allowed_users: Annotated[list[MatrixUser], Field(min_length=1)] = Field(
        description="Who can answer: whole ids, such as @ada:example.org."
    )
    language: Language = Field(default="", description="The language; empty: as in [[people]], or English.")
    poll_timeout_s: PollTimeout = Field(default=30, description="How long one poll waits.")


class NtfySettings(RetryingSettings):
    """The name of a topic is its only protection: everyone who knows it can read it. Names must therefore be long, and
    a public server gets no text of the tool unless the user enables that."""

    topic: Topic = Field(
        description="The topic of notifications, long and random, as `setup` creates it. Subscribe your phone to it."
    )
    reply_topic: Topic = Field(description="The topic of the buttons; a different one, also long and random.")
    server: str = Field(default=PUBLIC_NTFY, description="Your own server, or the public one.")
    access_token: SecretStr = Field(default=SecretStr(""), description="For a server that requires one (tk_...).")
    reply_token: SecretStr = Field(
        default=SecretStr(""),
        description="A token that can only write to reply_topic. The buttons contain it, so anyone who reads the topic "
        "sees it. Not set: they contain access_token.",
    )
    allowed_users: Annotated[list[str], Field(min_length=1, max_length=1)] = Field(
        default=["phone"], description="The name of the person with that phone: the identity is `ntfy:phone`."
    )
    show_text: bool | None = Field(
        default=None,
        description="Whether the question is sent; not set: only to your own server. Without it, only No is a button.",
    )
    taps_agree: bool | None = Field(
        default=None,
        description="Whether a button can approve. Not set: only if the server does not let the hub read the topic "
        "that your phone reads. Anyone who can read it can press its buttons; tools in sessions can read this file.",
    )
    page_url: str = Field(default="", description="The address that a tap opens, such as the page's.")
    language: Language = Field(default="", description="The language; empty: as in [[people]], or English.")
    session_notices: bool = Field(default=False, description="Whether to notify people of started and ended sessions.")

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
        description="Apprise addresses; they contain keys, so `env:NAME` and `file:PATH` are possible."
    )
    page_url: str = Field(
        default="", description="The address at which to answer, such as the page's; it is in each message."
    )
    show_text: bool = Field(default=False, description="Whether the question is sent; otherwise only its session.")
    language: Language = Field(default="", description="The language of the texts; empty: English.")
    session_notices: bool = Field(default=False, description="Whether to notify people of started and ended sessions.")


class DesktopSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    sound: bool = Field(default=False, description="Whether a notification makes a sound, if the desktop can.")
    show_text: bool = Field(default=True, description="Whether the question is shown, also on a locked screen.")
    language: Language = Field(default="", description="The language of the texts; empty: this machine's locale.")
    session_notices: bool = Field(default=False, description="Whether to notify people of started and ended sessions.")
    program: str = Field(default="", description="A program instead of notify-send (Linux) or osascript (macOS).")
