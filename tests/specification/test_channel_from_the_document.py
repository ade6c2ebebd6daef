"""A channel written from the specification (architecture, section 8.1), and from nothing else, is run unchanged."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.sample_prompt import YES_NO
from tests.support.waiting import until

from atlasbridge.bootstrap import build_channel, check_configuration
from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.registry import ChannelRegistry, SpecifiedChannel
from atlasbridge.config.hub import allowed_people
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt import Confidence, PromptEvent, PromptType
from atlasbridge.core.prompt.model import Choice, InboundReply, PromptRecord, PromptState, Receipt, Refusal, Reject
from atlasbridge.core.routing.router import ChannelWorker, Job, WorkerSettings
from atlasbridge.core.session import Session
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

CREATED, EXPIRES = "2026-02-21T14:22:10.451000+00:00", "2026-02-21T14:32:10.451000+00:00"
ASKED = replace(YES_NO, safe_default="n", choices=(Choice("y", "Yes"), Choice("n", "No", refuses=True)))
RECORD = PromptRecord("p" * 36, "s" * 36, ASKED, PromptState.ROUTED, "ab" * 16, CREATED, EXPIRES, 600.0)
SESSION = SessionRecord("s" * 36, "claude", ("claude",), "/src", 4711, 1, CREATED)


class PagerChannel(BaseChannel):
    """Every line of it stands on the document's interface, signatures and fields."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.notices: list[str] = []
        self.replies: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.closed = False

    async def send_prompt(self, event: PromptEvent, session: Session) -> str:  # type: ignore[override]
        assert event.type is PromptType.TYPE_YES_NO
        assert event.confidence is Confidence.HIGH
        assert isinstance(event.timestamp, datetime)
        assert event.expires_at > event.timestamp
        assert event.safe_default == b"n\r"
        assert len(event.nonce) == 32 and len(event.idempotency_key) == 64
        buttons = " ".join(f"[{number}: {label}]" for number, label in event.choices)
        self.sent.append(f"{session.tool} ({session.pid}): {event.excerpt} {buttons} {event.constraints}")
        self.prompt_id = event.prompt_id
        return f"page-{len(self.sent)}"

    async def receive_reply(self) -> tuple[str, str]:  # type: ignore[override]
        return await self.replies.get()

    async def notify(self, message: str, session: Session | None = None) -> None:  # type: ignore[override]
        self.notices.append(f"{session.id[:4]}: {message}" if session else message)

    async def close(self) -> None:
        self.closed = True


class OneRoomHubApi:
    """The little of a hub that such a channel needs."""

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        return RECORD if prompt_id == RECORD.prompt_id else None

    def session(self, session_id: str) -> SessionRecord | None:
        return SESSION


@pytest.fixture
def pager(monkeypatch: pytest.MonkeyPatch) -> SpecifiedChannel:
    monkeypatch.setattr(ChannelRegistry, "get", staticmethod(lambda name: PagerChannel))
    built = build_channel("pager", {}, cast(HubApi, OneRoomHubApi()))
    assert isinstance(built, SpecifiedChannel)
    return built


async def test_it_shows_prompts_carries_replies_and_is_told(pager: SpecifiedChannel) -> None:
    inner: PagerChannel = pager.inner
    taken: list[InboundReply] = []

    async def answer(reply: InboundReply) -> Receipt | Reject:
        taken.append(reply)
        return Receipt("typed", "done") if len(taken) == 1 else Reject(Refusal.NOT_OPEN, "It was answered before.")

    ids: list[str] = []

    async def show(channel: Any) -> None:
        ids.append(await channel.send_prompt(RECORD, SESSION))

    worker = ChannelWorker("pager", True, lambda: pager, answer, WorkerSettings())
    worker.start()
    worker.put(Job(show))
    await until(lambda: ids == ["page-1"])
    assert inner.sent[0].startswith("claude (4711): ")
    assert "[y: Yes]" in inner.sent[0]

    inner.replies.put_nowait((inner.prompt_id, "y"))
    await until(lambda: len(taken) == 1)
    assert (taken[0].value, taken[0].identity, taken[0].session_id) == ("y", "pager:operator", RECORD.session_id)

    inner.replies.put_nowait((inner.prompt_id, "n"))
    await until(lambda: "It was answered before." in inner.notices)

    worker.put(Job(lambda channel: channel.update_prompt("page-1", RECORD, Receipt("expired", "Time is over."))))
    worker.put(Job(lambda channel: channel.notify("The session has ended.", SESSION)))
    await until(lambda: len(inner.notices) == 3)
    assert inner.notices[1:] == ["ssss: Time is over.", "ssss: The session has ended."]
    await worker.stop(1)
    assert inner.closed


async def test_a_class_without_a_constructor_and_one_that_calls_its_bases_are_built_without_arguments() -> None:
    class Plain(BaseChannel):
        async def send_prompt(self, event: Any, session: Any) -> str:
            return "m1"

        async def receive_reply(self) -> Any:
            return "p", "y"

        async def notify(self, message: str, session: Any = None) -> None:
            return None

        async def close(self) -> None:
            return None

    class Calling(Plain):
        def __init__(self) -> None:
            super().__init__()

    assert [await made().send_prompt(None, None) for made in (Plain, Calling)] == ["m1", "m1"]
    for made in (Plain, Calling):
        wrapped = SpecifiedChannel("mine", made, {}, cast(HubApi, OneRoomHubApi()), SystemClock())
        assert (await wrapped.receive_reply()).identity == "mine:operator"
        await wrapped.close()


def test_a_channel_that_knows_its_name_is_built_as_ever() -> None:
    assert not isinstance(build_channel("local", {}, cast(HubApi, OneRoomHubApi())), SpecifiedChannel)


def test_its_operator_may_answer_though_no_person_is_named_in_the_configuration() -> None:
    assert allowed_people("pager", {}) == frozenset({"pager:operator"})
    assert allowed_people("pager", {"allowed_users": []}) == frozenset()
    assert allowed_people("telegram", {}) == frozenset(), "a chat names its people"


PACKAGE = """
from atlasbridge.channels.base import BaseChannel


class BellChannel(BaseChannel):
    async def send_prompt(self, event, session):
        return "1"

    async def receive_reply(self):
        raise NotImplementedError

    async def notify(self, message, session=None):
        pass

    async def close(self):
        pass
"""


def test_a_package_beside_the_others_is_a_channel_without_another_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Section 8.3: create the folder, implement the four methods; `[channels.bell]` is all that is configured."""
    from atlasbridge import channels

    (tmp_path / "bell").mkdir()
    (tmp_path / "bell" / "__init__.py").write_text(PACKAGE)
    monkeypatch.setattr(channels, "__path__", [*channels.__path__, str(tmp_path)])
    file = tmp_path / "config.toml"
    file.write_text("[channels.bell]\n")
    assert "bell" in check_configuration(file, {}).channels
    assert ChannelRegistry.get("bell").__name__ == "BellChannel"
    (tmp_path / "bell" / "__init__.py").write_text("x = 1\n")
    sys.modules.pop("atlasbridge.channels.bell")
    with pytest.raises(ConfigError, match="no class that derives from BaseChannel"):
        ChannelRegistry.get("bell")
    sys.modules.pop("atlasbridge.channels.bell", None)
