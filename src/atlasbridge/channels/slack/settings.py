"""The settings of `[channels.slack]`. They contain ids only, because a name can pass to another person."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

TeamId = Annotated[str, StringConstraints(pattern=r"^[TE][A-Z0-9]+$")]
UserId = Annotated[str, StringConstraints(pattern=r"^[UW][A-Z0-9]+$")]
RoomId = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]+$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class SlackSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    bot_token: SecretStr = Field(description="The bot token (xoxb-...); `env:NAME` and `file:PATH` name its place.")
    app_token: SecretStr = Field(description="The app-level token (xapp-...) with the scope connections:write.")
    team_id: TeamId = Field(description="The workspace (T...); people of any other are refused.")
    allowed_users: Annotated[list[UserId], Field(min_length=1)] = Field(
        description="The ids (U...) of the people who are asked and may answer."
    )
    channels: list[RoomId] = Field(default=[], description="Channels (C...) that take part; none by default.")
    threads: bool = Field(default=True, description="In those channels each session has a thread of its own.")
    transcriber: list[str] = Field(
        default=[],
        description='A command that writes the words of a voice note, such as `["whisper-cli", "{file}"]`.',
    )
    api_url: str = Field(default="https://slack.com/api/", description="The Web API.")
    host_name: str = Field(default="", description="This machine's name in messages; empty: its own.")
    session_notices: bool = Field(default=True, description="Whether starts and ends of sessions are told.")
    request_timeout_s: Positive = Field(default=8.0, description="How long a request may take.")
    ping_interval_s: Positive = Field(default=5.0, description="How often the connection is tried.")
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to 60 seconds."
    )
    messages_per_s: Positive = Field(default=1.0, description="Most messages a second to one conversation.")
    replies_per_minute: Annotated[int, Field(gt=0)] = Field(
        default=10, description="Most replies a minute for one session."
    )
