"""Every built-in adapter, and the example that was written from the document alone, keep the frozen contract."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from atlasbridge.adapters.base import (
    AdapterInjectionError,
    BaseAdapter,
    PromptType,
    ReplayAttackError,
    Reply,
    validate_event,
)
from atlasbridge.adapters.contract import CHECKS, Make, Run, check_adapter, run_check
from atlasbridge.adapters.dialect_files import available
from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.pty import PtyAdapter as GenericAdapter
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.core.values import replace

EXAMPLE = Path(__file__).parents[2] / "examples" / "echo_adapter" / "echo_adapter.py"
CLAUDE_SCREEN = (
    "─" * 60 + "\r\n Bash command\r\n touch x\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n"
    "   2. Yes, and always allow access to this folder\r\n   3. No\r\n\r\n Esc to cancel · Tab to amend\r\n"
).encode()


def example() -> type[BaseAdapter]:
    spec = importlib.util.spec_from_file_location("echo_adapter", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: type[BaseAdapter] = module.EchoAdapter
    return found


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_generic_adapter_keeps_the_contract(check: Callable[[Make], Awaitable[None]]) -> None:
    assert await run_check(check, GenericAdapter) == ""


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_an_adapter_written_from_the_document_alone_keeps_the_contract(
    check: Callable[[Make], Awaitable[None]],
) -> None:
    assert await run_check(check, example()) == ""


@pytest.mark.parametrize("name", [*available(), "claude-code"])
async def test_every_built_in_adapter_is_registered_and_has_its_dialect(name: str) -> None:
    found = AdapterRegistry.get(name)
    assert issubclass(found, PtyAdapter)
    adapter = found()
    assert adapter.dialect.name == found.DIALECT
    assert name in AdapterRegistry.list_supported()
    assert bool(adapter.SUPPORTED_VERSIONS) == (found.DIALECT not in ("generic", "openai"))


async def test_a_broken_adapter_fails_the_suite() -> None:
    class Deaf(GenericAdapter):
        async def detect_prompt(self, buffer: bytes) -> None:
            return None

    class Careless(GenericAdapter):
        async def inject_reply(self, reply: Reply) -> None:
            await self.type_keys(reply.value.encode() + b"\r")

    assert [line.partition(":")[0] for line in await check_adapter(Careless)] == ["replay", "foreign_session"]
    import atlasbridge.adapters.contract as contract

    before, contract.DEADLINE_S = contract.DEADLINE_S, 1.0
    try:
        assert "nothing came of it" in await run_check(contract.check_detection, Deaf)
    finally:
        contract.DEADLINE_S = before


async def test_an_adapter_that_fails_in_its_own_way_is_reported_not_raised() -> None:
    class Broken(GenericAdapter):
        async def start_session(self, command: list[str], env: dict[str, str] | None = None) -> str:
            raise KeyError("no such table")

    assert await run_check(CHECKS[2], Broken) == "KeyError: 'no such table'"


def test_a_tool_nobody_knows_gets_the_generic_adapter_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert AdapterRegistry.get("no-such-tool") is GenericAdapter
    assert "no-such-tool" in caplog.text


async def test_detection_works_on_bytes_alone() -> None:
    adapter = AdapterRegistry.get("claude")()
    event = await adapter.detect_prompt(CLAUDE_SCREEN)
    assert event is not None
    assert validate_event(event) == []
    assert event.prompt_type is PromptType.TYPE_MULTIPLE_CHOICE
    assert event.choices == ["Yes", "Yes, and always allow access to this folder", "No"]
    assert await adapter.detect_prompt(CLAUDE_SCREEN) is None
    assert await adapter.detect_prompt(b"Reading 3 files\r\n") is None


async def test_a_wrong_nonce_types_nothing_and_the_right_one_still_works() -> None:
    run = await Run.start(GenericAdapter)
    try:
        event = await run.prompt()
        right = run.reply(event, "n")
        with pytest.raises(ReplayAttackError):
            await run.adapter.inject_reply(replace(right, nonce="f" * 32))
        with pytest.raises(AdapterInjectionError):
            await run.adapter.inject_reply(replace(right, value="perhaps"))
        await run.adapter.inject_reply(right)
        await run.shows(b"got 'n'")
    finally:
        await run.end()


@pytest.mark.parametrize(("policy", "value", "got"), [("none", "a\r", b"got 'a'"), ("replace", "b\\x0d", b"got 'b'")])
async def test_the_other_newline_policies_type_what_they_say(policy: str, value: str, got: bytes) -> None:
    run = await Run.start(GenericAdapter)
    try:
        event = await run.prompt()
        await run.adapter.inject_reply(replace(run.reply(event), value=value, newline_policy=policy))
        await run.shows(got)
    finally:
        await run.end()


async def test_hooks_are_called_at_the_start_and_at_both_kinds_of_end() -> None:
    class Noting(GenericAdapter):
        def __init__(self) -> None:
            super().__init__()
            self.noted: list[object] = []

        async def on_start(self) -> None:
            self.noted.append("start")

        async def on_stop(self, exit_code: int) -> None:
            self.noted.append(("stop", exit_code))

        async def on_crash(self, exit_code: int) -> None:
            self.noted.append(("crash", exit_code))

    for command, ending in ((("true",), ("stop", 0)), (("sh", "-c", "exit 3"), ("crash", 3))):
        run = await Run.start(Noting, command)
        await run.reader
        assert isinstance(run.adapter, Noting) and run.adapter.noted == ["start", ending]
        await run.end()
