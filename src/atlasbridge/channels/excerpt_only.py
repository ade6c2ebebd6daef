"""Restricts a channel to excerpts (`show = "excerpt"`): at most 200 characters of a question, and no screen.

The channel is unaware of it: the prompts it receives and the hub it queries contain nothing more.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from typing import Any, TypeVar

from atlasbridge.core import operations
from atlasbridge.core.operations import Caller, HubAs, Operation, Refused
from atlasbridge.core.ports import Channel, HubApi
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, PromptRecord, Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

R = TypeVar("R")
LABEL_LIMIT = 60  # characters of a choice's label, as in the adapter interface
_WITH_OUTPUT = ("screen", "screen_stream", "why", "opt_in", "report_missed")
_REFUSED = Refused("not_here", "This channel carries excerpts only.", "Look at the terminal, or: atlasbridge attach")


def _less(excerpt: str, asked: str, whole: bool) -> dict[str, Any]:
    """What is left of a prompt besides its choices. It is whole only if `asked`, which is all of it, is the excerpt."""
    kept = excerpt[:EXCERPT_LIMIT]
    gone = {"subject": None, "screen": "", "says": "", "context_rows": 0}
    return {"excerpt": kept, "question": kept, "whole": whole and asked == kept, **gone}


def _short_choices(choices: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(replace(one, label=one.label[:LABEL_LIMIT], detail="") for one in choices)


def narrow_record(record: PromptRecord) -> PromptRecord:
    prompt = record.prompt
    less = _less(prompt.excerpt, prompt.asked, prompt.asked_whole)
    return replace(record, prompt=replace(prompt, **less, choices=_short_choices(prompt.choices), raw=b""))


def narrow_json(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same restriction for the JSON form of a prompt."""
    if "excerpt" not in told:
        return dict(told)
    choices = [
        {name: value[:LABEL_LIMIT] if name == "label" else value for name, value in one.items() if name != "detail"}
        for one in told.get("choices") or []
    ]
    less = _less(str(told["excerpt"]), str(told.get("question")), bool(told.get("whole")))
    return {**told, **less, "choices": choices}


def _narrow_result(found: Any) -> Any:
    match found:
        case operations.Prompt():
            less = _less(found.excerpt, found.question, found.whole)
            return replace(found, **less, choices=_short_choices(found.choices))
        case operations.Prompts():
            still = tuple(map(_narrow_result, found.still_waiting))
            return replace(found, prompts=tuple(map(_narrow_result, found.prompts)), still_waiting=still)
        case tuple():
            return tuple(map(_narrow_result, found))
        case operations.Event():
            prompt = _narrow_result(found.prompt) if found.prompt is not None else None
            return replace(found, prompt=prompt, fields=narrow_json(found.fields))
        case _:
            return _narrow_all(found) if hasattr(found, "__aiter__") else found


async def _narrow_all(found: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for one in found:
        yield _narrow_result(one)


class _NarrowHubAs(HubAs):
    def __init__(self, inner: HubAs) -> None:
        self._inner = inner

    async def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R | Refused:
        if operation.name in _WITH_OUTPUT:
            return _REFUSED
        found: R | Refused = _narrow_result(await self._inner.do(operation, given))
        return found


class ExcerptHubApi:
    """The hub as a restricted channel sees it. Everything not defined here is passed to the real hub."""

    def __init__(self, inner: HubApi) -> None:
        self._inner: Any = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def by(self, caller: Caller) -> HubAs:
        return _NarrowHubAs(self._inner.by(caller))

    def seen_by(self, identity: str, alone: bool = True) -> ExcerptHubApi:
        return ExcerptHubApi(self._inner.seen_by(identity, alone))

    def open_prompts(self) -> list[PromptRecord]:
        return [narrow_record(one) for one in self._inner.open_prompts()]

    def still_waiting(self) -> list[PromptRecord]:
        return [narrow_record(one) for one in self._inner.still_waiting()]

    def history(self, *given: Any, **named: Any) -> list[PromptRecord]:
        return [narrow_record(one) for one in self._inner.history(*given, **named)]

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        record = self._inner.prompt(prompt_id)
        return None if record is None else narrow_record(record)

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        return None

    def folder(self, session_id: str) -> str:
        return ""

    async def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        return
        yield {}

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        async for event in self._inner.events():
            yield narrow_json(event)

    def to_tell(self, after: int, limit: int) -> list[dict[str, Any]]:
        """For a machine that belongs to a fleet."""
        return [
            {**item, "body": narrow_json(item["body"])} if item["body"] else item
            for item in self._inner.to_tell(after, limit)
        ]

    def shows(self, session_id: str) -> bool:
        """No screen is sent to a fleet server."""
        return False


class ExcerptChannel:
    """The restricted channel as the router uses it."""

    def __init__(self, inner: Channel) -> None:
        self.inner: Any = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        return str(await self.inner.send_prompt(narrow_record(event), session))

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        await self.inner.update_prompt(message_id, narrow_record(event), receipt)
