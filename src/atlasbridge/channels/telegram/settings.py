"""The Telegram table of the configuration, checked.  Where tokens are kept is the configuration's business."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

UserId = Annotated[int, Field(gt=0, strict=True)]  # numeric only: a name can change hands


class GroupSettings(BaseModel):
    """A group, and the topic in it, where prompts may be shown besides the private chats."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    chat_id: Annotated[int, Field(lt=0, strict=True)]
    topic_id: Annotated[int, Field(gt=0, strict=True)] | None = None


class TelegramSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    bot_token: SecretStr
    allowed_users: Annotated[list[UserId], Field(min_length=1)]
    groups: list[GroupSettings] = []
    api_url: str = "https://api.telegram.org"
    host_name: str = ""
    session_notices: bool = True
    poll_timeout_s: Annotated[int, Field(ge=1, le=50)] = 30
    request_timeout_s: Annotated[float, Field(gt=0)] = 8.0  # the hub gives a channel 10 s a call
    backoff_first_s: Annotated[float, Field(gt=0)] = 1.0
    messages_per_s: Annotated[float, Field(gt=0)] = 1.0
    replies_per_minute: Annotated[int, Field(gt=0)] = 10
