"""The Slack table of the configuration, checked.  Ids only: names can change hands."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints

TeamId = Annotated[str, StringConstraints(pattern=r"^[TE][A-Z0-9]+$")]
UserId = Annotated[str, StringConstraints(pattern=r"^[UW][A-Z0-9]+$")]
RoomId = Annotated[str, StringConstraints(pattern=r"^[CG][A-Z0-9]+$")]


class SlackSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    bot_token: SecretStr
    app_token: SecretStr
    team_id: TeamId
    allowed_users: Annotated[list[UserId], Field(min_length=1)]
    channels: list[RoomId] = []
    api_url: str = "https://slack.com/api/"
    host_name: str = ""
    session_notices: bool = True
    request_timeout_s: Annotated[float, Field(gt=0)] = 8.0  # the hub gives a channel 10 s a call
    ping_interval_s: Annotated[float, Field(gt=0)] = 5.0
    backoff_first_s: Annotated[float, Field(gt=0)] = 1.0
    messages_per_s: Annotated[float, Field(gt=0)] = 1.0
    replies_per_minute: Annotated[int, Field(gt=0)] = 10
