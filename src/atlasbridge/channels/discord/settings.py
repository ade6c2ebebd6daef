"""The settings of `[channels.discord]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

API_URL = "https://discord.com/api/v10"
UserId = Annotated[str, StringConstraints(pattern=r"^\d{15,21}$")]  # numeric only, because a name can change
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class DiscordSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    bot_token: SecretStr = Field(description="The bot's token; `env:NAME` and `file:PATH` name its place.")
    allowed_users: Annotated[list[UserId], Field(min_length=1)] = Field(
        description="The ids (numbers) of the people who are asked and may answer, by direct message."
    )
    api_url: str = Field(default=API_URL, description="The REST API.")
    host_name: str = Field(default="", description="This machine's name in messages; empty: its own.")
    session_notices: bool = Field(default=True, description="Whether starts and ends of sessions are told.")
    request_timeout_s: Positive = Field(default=8.0, description="How long a request may take.")
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to 60 seconds."
    )
    messages_per_s: Positive = Field(default=1.0, description="Most messages a second to one person.")
    replies_per_minute: Annotated[int, Field(gt=0)] = Field(
        default=10, description="Most replies a minute for one session."
    )
