"""The file of a server's channels, and what a person in a chat sees of it: strict fakes, nothing of the server
itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.chat_stage import text_of
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, TEAM, FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import until

Message = dict[str, Any]


def chat_file(folder: Path, more: str = "", **channels: dict[str, Any]) -> Path:
    """Written as an operator would: one table for each channel."""
    lines = [more]
    for name, table in channels.items():
        lines += [f"[channels.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    path = folder / "server.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def telegram_table(server: FakeTelegram, **changes: Any) -> dict[str, Any]:
    return {
        "bot_token": server.token,
        "api_url": server.url,
        "poll_timeout_s": 20,
        "backoff_first_s": 0.02,
        "messages_per_s": 1000.0,
        **changes,
    }


def slack_table(server: FakeSlack) -> dict[str, Any]:
    return {
        "bot_token": BOT_TOKEN,
        "app_token": APP_TOKEN,
        "team_id": TEAM,
        "api_url": f"{server.url}/api/",
        "backoff_first_s": 0.02,
        "messages_per_s": 1000.0,
        "ping_interval_s": 1.0,
    }


async def sees(person: Any, words: str, count: int = 1) -> Message:
    """Wait until so many messages that this person sees have these words; the last of them."""
    await until(lambda: len(with_words(person, words)) >= count)
    return with_words(person, words)[-1]


def with_words(person: Any, words: str) -> list[Message]:
    return [one for one in person.sees() if words in text_of(one)]
