"""The channel `tell`: notifies through Apprise that a prompt waits, and where to answer it. It receives no replies."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels.base import OneWayChannel
from atlasbridge.channels.language import Reader, reading, say_digest, t
from atlasbridge.channels.settings import TellSettings
from atlasbridge.channels.templates import render_headline, render_notice, render_where, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord, Receipt
from atlasbridge.core.session.model import SessionRecord, session_name

LONGEST = 1000  # the smallest limit of many services
TOLD_ENDS = {
    "expired": "{name}: nobody answered in time",
    "default_typed": "{name}: nobody answered: a timer typed the safe default",
}


class TellChannel(OneWayChannel):
    name: ClassVar[str] = "tell"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        self._own = TellSettings.model_validate(dict(settings))
        self._host = platform.node() or "this machine"
        self._services = services_of([url.get_secret_value() for url in self._own.urls])
        self._failed = 0
        self._reader = Reader(self._own.language)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Skip a silent prompt: these services cannot send without sound."""
        if not self.hub_api.tone(event.prompt_id, self.name).loud:
            return f"silent-{short_id(event.prompt_id)}"
        with reading(self._reader):
            await self._say(self._title(event, session), self._where(event, session))
        return f"told-{short_id(event.prompt_id)}"

    def _title(self, event: PromptRecord, session: SessionRecord) -> str:
        if not self._own.show_text:
            return f"AtlasBridge: {t('{name} waits for you', name=tool_name(session))}"
        return render_headline(event.prompt, session)

    def _where(self, event: PromptRecord, session: SessionRecord) -> str:
        asked = f"{escape_controls(event.prompt.excerpt)}\n" if self._own.show_text and not event.prompt.secret else ""
        answer = self._own.page_url or f"atlasbridge reply {short_id(event.prompt_id)}"
        return f"{asked}{render_where(session, self._host)}\n{t('Answer')}: {answer}"

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        """Messages cannot be edited, so only a timer's decision and a reminder cause another message."""
        session = self.hub_api.session(event.session_id)
        if session is None:
            return
        with reading(self._reader):
            if receipt.stage == "reminder":
                await self._say(f"{t('Still waiting')}: {tool_name(session)}", self._where(event, session))
            elif receipt.stage in TOLD_ENDS:
                told = t(TOLD_ENDS[receipt.stage], name=session_name(session))
                await self._say(told, self._where(event, session))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            with reading(self._reader):
                await self._say("AtlasBridge", render_notice(message, session))

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        """Send a digest once; it cannot be edited later."""
        if loud:
            with reading(self._reader):
                told = say_digest(escape_controls(text)) if self._own.show_text else self._own.page_url
                await self._say(t("AtlasBridge: more questions for you"), told)

    async def _say(self, title: str, text: str) -> None:
        """Raise ChannelError if no service accepted the message; one of several is enough."""
        told: Any = False
        try:
            async with asyncio.timeout(self._own.request_timeout_s):
                told = await self._services.async_notify(body=text[:LONGEST] or title, title=title[:200])
        except TimeoutError:
            pass
        if not told:
            self._failed += 1
            raise ChannelError("no service of [channels.tell] took the message", "check its urls with: apprise -vv URL")

    def health(self) -> dict[str, Any]:
        return {"state": "ok", "services": len(self._services), "failed": self._failed}


def services_of(urls: list[str]) -> Any:
    try:
        import apprise
    except ModuleNotFoundError:
        raise ConfigError("the channel `tell` needs apprise", install_line("tell")) from None
    logging.getLogger("apprise").setLevel(logging.ERROR)  # it logs addresses, which contain keys
    services = apprise.Apprise()
    for number, url in enumerate(urls, 1):
        if not services.add(url):
            raise ConfigError(f"channels.tell.urls: Apprise does not know the address number {number}", "see its list")
    return services


# Tests an Apprise address for `atlasbridge setup`: is it supported, and is a message accepted.


async def try_address(url: str) -> None:
    """Raise ConfigError if Apprise does not know the address, and ChannelError if no service accepted the message."""
    told = t("AtlasBridge notifies you here when something waits for you.")
    if not await services_of([url]).async_notify(title="AtlasBridge", body=told):
        raise ChannelError("the service did not take a test message", "try the address with: apprise -vv URL")
