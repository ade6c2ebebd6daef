"""The settings of `[channels.tell]`."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from atlasbridge.channels.language import Language

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class TellSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    urls: Annotated[list[SecretStr], Field(min_length=1)] = Field(
        description="Apprise addresses of who is told; they hold keys, so `env:NAME` and `file:PATH` name their place."
    )
    page_url: str = Field(
        default="", description="Where to answer, such as the page's address; told with each message."
    )
    show_text: bool = Field(default=False, description="Whether the question itself is sent; otherwise only who asks.")
    language: Language = Field(default="", description="Of the texts here; empty: English.")
    session_notices: bool = Field(default=False, description="Whether starts and ends of sessions are told.")
    request_timeout_s: Positive = Field(default=8.0, description="How long telling may take.")
