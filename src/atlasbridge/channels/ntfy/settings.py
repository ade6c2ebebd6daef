"""The settings of `[channels.ntfy]`.

The name of a topic is its only protection: everyone who knows it can read it. Names must therefore be long, and a
public server gets no text of the tool unless the user enables that.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from atlasbridge.channels.language import Language

PUBLIC = "https://ntfy.sh"
Topic = Annotated[SecretStr, Field(min_length=20, max_length=64)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class NtfySettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    topic: Topic = Field(
        description="Where you are told: long and random, as `setup` makes it. Subscribe your phone to it."
    )
    reply_topic: Topic = Field(description="Where your buttons answer; another one, as long and as random.")
    server: str = Field(default=PUBLIC, description="Your own server, or the public one.")
    access_token: SecretStr = Field(default=SecretStr(""), description="For a server that wants one (tk_...).")
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
    request_timeout_s: Positive = Field(default=8.0, description="How long one request may take.")
    backoff_first_s: Positive = Field(
        default=1.0, description="First pause after a failure; it doubles, up to a minute."
    )

    @model_validator(mode="after")
    def _apart(self) -> NtfySettings:
        if self.topic.get_secret_value() == self.reply_topic.get_secret_value():
            raise ValueError("topic and reply_topic must be two topics")
        return self

    @property
    def shows_text(self) -> bool:
        return self.server.rstrip("/") != PUBLIC if self.show_text is None else self.show_text
