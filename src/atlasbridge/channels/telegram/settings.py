"""The settings of `[channels.telegram]`. The configuration decides where tokens are stored."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

UserId = Annotated[int, Field(gt=0, strict=True)]  # numeric only, because a name can pass to another person
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class GroupSettings(BaseModel):
    """A group, and optionally a topic in it, that shows prompts besides the private chats."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    chat_id: Annotated[int, Field(lt=0, strict=True)] = Field(description="The group's number, which is negative.")
    topic_id: Annotated[int, Field(gt=0, strict=True)] | None = Field(
        default=None, description="The topic in it; none: the whole group."
    )


class TelegramSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    bot_token: SecretStr = Field(description="What @BotFather gave you; `env:NAME` and `file:PATH` name its place.")
    allowed_users: Annotated[list[UserId], Field(min_length=1)] = Field(
        description="The numbers of the people who are asked and may answer."
    )
    groups: list[GroupSettings] = Field(default=[], description="Groups and topics that take part; none by default.")
    api_url: str = Field(default="https://api.telegram.org", description="The Bot API server.")
    host_name: str = Field(default="", description="This machine's name in messages; empty: its own.")
    session_notices: bool = Field(default=True, description="Whether starts and ends of sessions are told.")
    poll_timeout_s: Annotated[int, Field(ge=1, le=50)] = Field(default=30, description="How long one poll waits.")
    transcriber: list[str] = Field(
        default=[],
        description='A command that writes the words of a voice note, such as `["whisper-cli", "{file}"]`.',
    )
    request_timeout_s: Positive = Field(default=8.0, description="How long any other request may take.")
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to 60 seconds."
    )
    messages_per_s: Positive = Field(default=1.0, description="Most messages a second to one chat.")
    replies_per_minute: Annotated[int, Field(gt=0)] = Field(
        default=10, description="Most replies a minute for one session."
    )
