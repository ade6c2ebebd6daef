"""Finds channels: the built-in ones, other packages in `channels/`, and entry points of other distributions.

A channel that was written from the specification alone runs inside `SpecifiedChannel`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from atlasbridge import channels
from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import Clock, parse_iso
from atlasbridge.core.constants import INJECT_BYTES
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.prompt.written_event import PromptEvent
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.session.written_session import Session

# The class of each channel, and the class that validates its table of the configuration; imported when they are needed.
BUILT_IN = {
    "web": ("web.channel:WebChannel", "web.settings:WebSettings"),
    "telegram": (
        "channels.telegram.channel:TelegramChannel",
        "channels.settings:TelegramSettings",
    ),
    "slack": ("channels.slack.channel:SlackChannel", "channels.settings:SlackSettings"),
    "discord": ("channels.discord.channel:DiscordChannel", "channels.settings:DiscordSettings"),
    "ntfy": ("channels.ntfy:NtfyChannel", "channels.settings:NtfySettings"),
    "matrix": ("channels.matrix:MatrixChannel", "channels.settings:MatrixSettings"),
    "tell": ("channels.tell:TellChannel", "channels.settings:TellSettings"),
    "desktop": ("channels.desktop:DesktopChannel", "channels.settings:DesktopSettings"),
    "local": ("channels.local:LocalChannel", ""),
}


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(f"atlasbridge.{module}"), name)


@contextmanager
def needs_extra(name: str) -> Iterator[None]:
    """Say which extra to install if a channel's package is missing."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the channel {name} needs {missing.name}", install_line(name)) from None


class ChannelRegistry:
    @staticmethod
    def names() -> list[str]:
        announced = (point.name for point in entry_points(group="atlasbridge.channels"))
        return sorted({*BUILT_IN, *_packages(), *announced})

    @staticmethod
    def get(name: str) -> type[BaseChannel]:
        """Return the channel's class. Only the requested channel is imported."""
        if name in BUILT_IN:
            with needs_extra(name):
                found = _load(BUILT_IN[name][0])
        elif name in _packages():
            found = _class_of(import_module(f"{channels.__name__}.{name}"))
        else:
            points = [point for point in entry_points(group="atlasbridge.channels") if point.name == name]
            if not points:
                raise ConfigError(
                    f"there is no channel named {name!r}", f"use one of: {', '.join(ChannelRegistry.names())}"
                )
            found = points[0].load()
        if not (isinstance(found, type) and issubclass(found, BaseChannel)):
            raise ConfigError(f"channel {name!r} has no class that derives from BaseChannel", "fix its package")
        return found


def _packages() -> list[str]:
    """Packages in `channels/` that are not built in; the specification adds channels this way."""
    found = (module.name for module in iter_modules(channels.__path__) if module.ispkg)
    return [name for name in found if name not in BUILT_IN]


def _class_of(module: ModuleType) -> type | None:
    """Return the last channel class of a package, from any of its modules."""
    inside = f"{module.__name__}."
    found = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, BaseChannel) and f"{item.__module__}.".startswith(inside)
    ]
    return found[-1] if found else None


def channel_settings(name: str) -> type | None:
    """Return the class that validates a channel's table. A channel of another package can define it as
    `settings_model`."""
    if name in BUILT_IN:
        place = BUILT_IN[name][1]
        return _load(place) if place else None
    return getattr(ChannelRegistry.get(name), "settings_model", None)


# Runs a channel that was written from the specification alone: four methods, the specification's event fields, and
# replies without a name.

QUIET_STAGES = ("received", "typed", "taken", "reminder")


def event_of(record: PromptRecord) -> PromptEvent:
    prompt = record.prompt
    bucket = record.created_at[:18]  # ten seconds
    key = hashlib.sha256(f"{record.session_id}{prompt.excerpt}{bucket}".encode()).hexdigest()
    default = prompt.safe_default
    return PromptEvent(
        record.prompt_id,
        record.session_id,
        prompt.type,
        prompt.confidence,
        prompt.excerpt,
        [(choice.value, choice.label) for choice in prompt.choices],
        dict(prompt.constraints),
        key,
        _moment(record.created_at),
        INJECT_BYTES.get(default, default.encode() + b"\r") if default else b"",
        _moment(record.expires_at),
        record.nonce,
    )


class SpecifiedChannel(BaseChannel):
    """Wraps a channel of the specification for the router. Its answers count as those of the one operator it serves."""

    def __init__(
        self, name: str, inner: type[BaseChannel], settings: Mapping[str, Any], hub_api: HubApi, clock: Clock
    ) -> None:
        super().__init__(settings, hub_api, clock)
        self.name = name  # type: ignore[misc]
        self.inner: Any = _built(inner, settings, hub_api, clock)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return str(await self.inner.send_prompt(event_of(event), Session.of(session)))

    async def receive_reply(self) -> InboundReply:
        prompt_id, value = await self.inner.receive_reply()
        known = self.hub_api.prompt(str(prompt_id))
        return InboundReply(
            channel=self.name,
            identity=f"{self.name}:operator",
            prompt_id=str(prompt_id),
            value=str(value),
            session_id=known.session_id if known else "",
        )

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        if isinstance(outcome, Reject):
            await self.inner.notify(outcome.sentence, None)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        if receipt.stage not in QUIET_STAGES:
            session = self.hub_api.session(event.session_id)
            await self.inner.notify(receipt.sentence, Session.of(session) if session else None)

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        await self.inner.notify(message, Session.of(session) if session else None)

    async def close(self) -> None:
        await self.inner.close()


def _built(inner: type[BaseChannel], settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> BaseChannel:
    """Create the channel with the usual arguments, or without any if its constructor accepts none."""
    if inner.__init__ is BaseChannel.__init__ or len(inspect.signature(inner).parameters) >= 3:
        return inner(settings, hub_api, clock)
    build: Any = inner
    built: BaseChannel = build(settings) if inspect.signature(inner).parameters else build()
    return built


def _moment(at: str) -> datetime:
    return datetime.fromtimestamp(parse_iso(at), UTC) if at else datetime.fromtimestamp(0, UTC)
