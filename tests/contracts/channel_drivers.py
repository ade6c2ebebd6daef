"""How the contract suite drives each channel: how it is made against its service, and how a person answers there."""

from __future__ import annotations

import importlib.util
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.channels.conftest import discord_settings, slack_settings, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_desktop import FakeDesktop
from tests.support.fake_discord import FakeDiscord
from tests.support.fake_hook import FakeHook
from tests.support.fake_matrix import ROOM, TOKEN, FakeMatrix
from tests.support.fake_ntfy import FakeNtfy
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.memory_channel import MemoryChannel

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.callback import encode_callback
from atlasbridge.channels.desktop import DesktopChannel
from atlasbridge.channels.discord.channel import DiscordChannel
from atlasbridge.channels.local import LocalChannel
from atlasbridge.channels.matrix import MatrixChannel
from atlasbridge.channels.ntfy import NtfyChannel
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.channels.tell import TellChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.web.channel import WebChannel

EXAMPLE = Path(__file__).parents[2] / "examples" / "webhook_channel"


class Driver(ABC):
    """One channel and its person.  `carries_replies` is False where answers come by another way."""

    name: str
    carries_replies = True
    has_service = True

    async def open(self, hub: MiniHub) -> BaseChannel:
        await self.start_service()
        return self.build(hub)

    async def start_service(self) -> None:  # noqa: B027 - not every channel has one
        """The fake that this channel talks to."""

    async def stop_service(self) -> None:  # noqa: B027
        """May be called twice."""

    @abstractmethod
    def build(self, hub: MiniHub) -> BaseChannel: ...

    @abstractmethod
    async def answer(self, record: PromptRecord, value: str) -> None:
        """The person answers the newest prompt with a button that has this value."""

    def shown(self) -> str:
        """All that the person can read."""
        return ""


class TelegramDriver(Driver):
    name = "telegram"

    async def start_service(self) -> None:
        self.server = FakeTelegram().start()
        self.ada = self.server.person(1001)

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        return TelegramChannel(telegram_settings(self.server), hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        for message in self.ada.sees():
            for row in message.get("reply_markup", {}).get("inline_keyboard", []):
                for button in row:
                    if button["callback_data"].endswith(f":{value}"):
                        self.ada.tap_data(message, button["callback_data"])
                        return
        raise AssertionError(f"no button {value}")

    def shown(self) -> str:
        return str([message.get("text") for message in self.ada.sees()])


class SlackDriver(Driver):
    name = "slack"

    async def start_service(self) -> None:
        self.server = FakeSlack(ack_s=1.0).start()
        self.ada = self.server.person("U0ADA")

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        return SlackChannel(slack_settings(self.server), hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        await self.server.until(lambda: self.server.sockets, "the socket")
        for message in self.ada.sees():
            for block in message.get("blocks", []):
                for element in block.get("elements", []):
                    if str(element.get("value", "")).endswith(f":{value}"):
                        self.ada.click_raw(message, element)
                        return
        raise AssertionError(f"no button {value}")

    def shown(self) -> str:
        return str(self.ada.sees())


class DiscordDriver(Driver):
    name = "discord"

    async def start_service(self) -> None:
        self.server = FakeDiscord().start()
        self.ada = self.server.person()

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        return DiscordChannel(discord_settings(self.server), hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        await self.server.until(lambda: self.server.sessions, "the gateway")
        for message in self.ada.sees():
            for one in (one for row in message.get("components") or [] for one in row["components"]):
                if one["custom_id"].endswith(f":{value}"):
                    self.ada.press_id(message, one["custom_id"])
                    return
        raise AssertionError(f"no button {value}")

    def shown(self) -> str:
        return str(self.ada.sees())


class MemoryDriver(Driver):
    name = "memory"
    has_service = False

    def build(self, hub: MiniHub) -> BaseChannel:
        self.channel = MemoryChannel({}, hub, SystemClock())
        return self.channel

    async def answer(self, record: PromptRecord, value: str) -> None:
        self.channel.say(record, value)

    def shown(self) -> str:
        return str(self.channel.shown)


class LocalDriver(Driver):
    name = "local"
    carries_replies = False
    has_service = False

    def build(self, hub: MiniHub) -> BaseChannel:
        return LocalChannel({}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        raise AssertionError("answers come through the hub's socket")


class WebDriver(Driver):
    """The page's own tests talk HTTP; here it is enough that it keeps the contract of a channel."""

    name = "web"
    carries_replies = False
    has_service = False

    def build(self, hub: MiniHub) -> BaseChannel:
        return WebChannel({"port": 0}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        raise AssertionError("answers come through the HTTP API")


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    if spec.name not in sys.modules:
        sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[spec.name])
    return sys.modules[spec.name]


class WebhookDriver(Driver):
    name = "webhook"

    async def start_service(self) -> None:
        tests = _load("test_webhook_channel")
        self.endpoint = tests.Endpoint()
        await self.endpoint.start()
        self.settings = tests.settings(self.endpoint)

    async def stop_service(self) -> None:
        await self.endpoint.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        made: BaseChannel = _load("webhook_channel").WebhookChannel(self.settings, hub, SystemClock())
        return made

    async def answer(self, record: PromptRecord, value: str) -> None:
        self.endpoint.answer(value)

    def shown(self) -> str:
        return str(self.endpoint.posted)


class NtfyDriver(Driver):
    name = "ntfy"

    async def start_service(self) -> None:
        self.server = FakeNtfy().start()
        self.server.unreadable.add("out-0123456789abcdefghij")

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        topics = {"topic": "out-0123456789abcdefghij", "reply_topic": "in-0123456789abcdefghij"}
        return NtfyChannel({**topics, "server": self.server.url, "backoff_first_s": 0.02}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        self.server.say("in-0123456789abcdefghij", encode_callback(record, value))

    def shown(self) -> str:
        return str(self.server.messages)


class MatrixDriver(Driver):
    name = "matrix"

    async def start_service(self) -> None:
        self.server = FakeMatrix().start()

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        settings = {"homeserver": self.server.url, "access_token": TOKEN, "room": ROOM, "allowed_users": ["@ada:fake"]}
        quick = {"backoff_first_s": 0.02, "poll_timeout_s": 1, "messages_per_s": 1000.0}
        return MatrixChannel({**settings, **quick}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        await self.server.until(lambda: self.server.calls_of("sync"), "the first sync")
        self.server.react("@ada:fake", self.server.asked()[-1]["event_id"], f"{value}\ufe0f\u20e3")

    def shown(self) -> str:
        return str(self.server.events)


class TellDriver(Driver):
    """It only tells; a service that cannot be reached is found out when something is to be told."""

    name = "tell"
    carries_replies = False

    async def start_service(self) -> None:
        self.server = FakeHook().start()

    async def stop_service(self) -> None:
        self.server.stop()

    def build(self, hub: MiniHub) -> BaseChannel:
        return TellChannel({"urls": [self.server.apprise_url], "show_text": True}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        raise AssertionError("nobody can answer there")

    def shown(self) -> str:
        return str([call.params for call in self.server.calls])


class DesktopDriver(Driver):
    """A program that notes what it was to show; one that is gone shows nothing."""

    name = "desktop"
    carries_replies = False

    async def start_service(self) -> None:
        self.desktop = FakeDesktop()

    async def stop_service(self) -> None:
        self.desktop.remove()

    def build(self, hub: MiniHub) -> BaseChannel:
        return DesktopChannel({"program": self.desktop.program}, hub, SystemClock())

    async def answer(self, record: PromptRecord, value: str) -> None:
        raise AssertionError("nobody can answer there")

    def shown(self) -> str:
        return str(self.desktop.calls())


DRIVERS: list[type[Driver]] = [
    DesktopDriver,
    TelegramDriver,
    SlackDriver,
    DiscordDriver,
    NtfyDriver,
    MatrixDriver,
    TellDriver,
    MemoryDriver,
    LocalDriver,
    WebDriver,
    WebhookDriver,
]
