"""One person in one chat, Telegram's or Slack's, with a clock that the test moves: the same play on both stages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.channels.conftest import serving, slack_settings, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import ManualClock, SystemClock
from atlasbridge.core.prompt.model import Prompt, PromptRecord

Message = dict[str, Any]


class Stage:
    """What a person does and sees; `clock` is the chat's own."""

    def __init__(self, hub_api: MiniHub, server: Any, channel: Any, person: Any, clock: ManualClock) -> None:
        self.hub_api, self.server, self.channel, self.person, self.clock = hub_api, server, channel, person, clock

    async def ask(self, prompt: Prompt, **session: Any) -> PromptRecord:
        record = self.hub_api.add_prompt(self.hub_api.add_session(**session), prompt)
        await self.hub_api.ask(self.channel, record)
        return record

    def message_of(self, record: PromptRecord) -> Message:
        place = self.hub_api.deliveries(record.prompt_id, self.channel.name)[0].split()[0].split("/")[1]
        return next(m for m in self.person.sees() if str(m.get("message_id") or m.get("ts")) == place)

    async def until(self, condition: Any, what: str) -> None:
        await self.server.until(condition, what)

    async def reads(self, words: str) -> Message:
        """Wait until something that this person sees has these words."""
        await self.until(lambda: any(words in text_of(one) for one in self.person.sees()), f"{words!r}")
        return next(one for one in reversed(self.person.sees()) if words in text_of(one))

    async def settle(self) -> None:
        """Everything that was said has been heard: a question that is surely answered comes after it."""
        before = len(self.person.sees())
        self.command("help")
        await self.until(lambda: len(self.person.sees()) > before and "/help" in self.all_text(), "help")

    def all_text(self) -> str:
        return "\n".join(text_of(one) for one in self.person.sees()).replace("!help", "/help")

    def write(self, text: str, reply_to: Message | None = None) -> Message:
        if isinstance(self.server, FakeTelegram):
            return self.person.write(text, reply_to=reply_to)
        return self.person.write(text, thread=reply_to)

    def command(self, words: str) -> None:
        self.write(("/" if isinstance(self.server, FakeTelegram) else "!") + words)

    def press(self, message: Message, label: str) -> Any:
        if isinstance(self.server, FakeTelegram):
            return self.person.tap(message, label)
        return self.person.click(message, label)

    def speak(self, sound: bytes, reply_to: Message | None = None) -> None:
        """Send a voice note."""
        if isinstance(self.server, FakeTelegram):
            self.person.send_file("voice", sound, reply_to)
        else:
            self.person.send_file("audio_message.m4a", sound, mimetype="audio/mp4", thread=reply_to)

    def files(self) -> list[bytes]:
        """What this person was sent as files."""
        if isinstance(self.server, FakeTelegram):
            return [one["_content"] for one in self.person.sees() if "_content" in one]
        return list(self.server.files.values())

    def buttons(self, message: Message) -> list[str]:
        return buttons_of(message)


def buttons_of(message: Message) -> list[str]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    blocks = [block for block in message.get("blocks", []) if block["type"] == "actions"]
    clicks = [e["text"]["text"] for block in blocks for e in block["elements"] if e["type"] == "button"]
    return [*(button["text"] for row in rows for button in row), *clicks]


def text_of(message: Message) -> str:
    """Everything a person reads in it, without buttons."""
    if "blocks" not in message:
        return str(message.get("text") or message.get("caption") or "")
    return "\n".join(line for block in message["blocks"] for line in _texts(block))


def _texts(block: Message) -> list[str]:
    match block["type"]:
        case "header" | "section":
            return [block["text"]["text"]]
        case "context":
            return [element["text"] for element in block["elements"]]
        case "rich_text":
            return [leaf["text"] for element in block["elements"] for leaf in element["elements"]]
    return []


@asynccontextmanager
async def stage(
    name: str, hub_api: MiniHub | None = None, language: str = "", zone: str = "", **settings: Any
) -> AsyncIterator[Stage]:
    """`language` and `zone` are what the service knows of the person."""
    clock, hub = ManualClock(), hub_api or MiniHub()
    server: Any = FakeTelegram(clock=clock.wall) if name == "telegram" else FakeSlack(clock=clock.wall, ack_s=1.0)
    with server:
        person = server.person(1001) if name == "telegram" else server.person("U0ADA")
        person.language = language
        if name == "slack" and language:
            server.users["U0ADA"] |= {"locale": language, "tz": zone}
        async with playing(name, server, hub, **settings) as channel:
            yield Stage(hub, server, channel, person, clock)


def channel_at(server: Any, hub: MiniHub, **settings: Any) -> Any:
    if isinstance(server, FakeTelegram):
        return TelegramChannel(telegram_settings(server, **settings), hub, SystemClock())
    return SlackChannel(slack_settings(server, **settings), hub, SystemClock())


@asynccontextmanager
async def playing(name: str, server: Any, hub: MiniHub, **settings: Any) -> AsyncIterator[Any]:
    made = channel_at(server, hub, **settings)
    assert name == "telegram" or server.dm_with("U0ADA")
    async with serving(hub, made):
        if name == "slack":
            await server.until(lambda: server.sockets, "the socket")
        yield made
        await asyncio.sleep(0)
