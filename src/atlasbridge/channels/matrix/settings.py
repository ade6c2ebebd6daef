"""The settings of `[channels.matrix]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from atlasbridge.channels.language import Language

UserId = Annotated[str, Field(pattern=r"^@[^:\s]+:\S+$")]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class MatrixSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    homeserver: str = Field(description="The server's address, such as https://matrix.example.org.")
    access_token: SecretStr = Field(description="Of an account for AtlasBridge alone.")
    room: Annotated[str, Field(pattern=r"^!\S+$")] = Field(
        description="The room's id (!...), where that account is; it must not be encrypted."
    )
    allowed_users: Annotated[list[UserId], Field(min_length=1)] = Field(
        description="Who may answer: whole ids, such as @ada:example.org."
    )
    host_name: str = Field(default="", description="This machine's name in messages; empty: its own.")
    language: Language = Field(default="", description="Of the texts here; empty: as [[people]] says, or English.")
    session_notices: bool = Field(default=True, description="Whether starts and ends of sessions are told.")
    poll_timeout_s: Annotated[int, Field(ge=1, le=50)] = Field(default=30, description="How long one poll waits.")
    request_timeout_s: Positive = Field(default=8.0, description="How long any other request may take.")
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to a minute."
    )
