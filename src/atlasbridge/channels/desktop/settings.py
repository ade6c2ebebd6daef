"""The settings of `[channels.desktop]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from atlasbridge.channels.language import Language


class DesktopSettings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    sound: bool = Field(default=False, description="Whether a notification makes a sound, where the desktop can.")
    show_text: bool = Field(default=True, description="Whether the question is shown; so may a locked screen.")
    language: Language = Field(default="", description="Of the texts here; empty: as this machine's own locale.")
    session_notices: bool = Field(default=False, description="Whether starts and ends of sessions are told.")
    program: str = Field(default="", description="Another program than notify-send (Linux) or osascript (macOS).")
