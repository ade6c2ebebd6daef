"""The contract of every adapter, as checks that the author of an adapter can run.

    from atlasbridge.adapters.contract import check_adapter
    failures = asyncio.run(check_adapter(MyAdapter))

Each check creates a new adapter and runs a small program on a real terminal. It uses only the frozen interface.
"""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from atlasbridge.adapters.base import (
    AdapterError,
    AdapterStartError,
    BaseAdapter,
    PromptEvent,
    PromptType,
    ReplayAttackError,
    Reply,
    validate_event,
)
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.values import replace

ASKING = (
    sys.executable,
    "-c",
    "answer = input('Overwrite the file? [y/N] '); print('got', repr(answer), flush=True); input('again? ')",
)
DEADLINE_S = 15.0
CONTEXT_KEYS = (
    "session_id", "tool", "pid", "state", "uptime_seconds", "prompt_count", "last_output_ago_seconds", "pty_alive",
)  # fmt: skip
_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
Make = Callable[[], BaseAdapter]


@dataclass(slots=True)
class Run:
    """A started session whose output is read continuously, as a supervisor does."""

    adapter: BaseAdapter
    session_id: str
    reader: asyncio.Task[None]
    output: bytearray

    @classmethod
    async def start(cls, make: Make, command: tuple[str, ...] = ASKING) -> Run:
        adapter = make()
        session_id = await adapter.start_session(list(command), {"ATLASBRIDGE_SECRET": "x", "LC_ALL": "C.UTF-8"})
        output = bytearray()

        async def read() -> None:
            async for chunk in adapter.read_stream():
                output.extend(chunk)

        return cls(adapter, session_id, asyncio.create_task(read()), output)

    async def shows(self, text: bytes) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while text not in self.output:
                await asyncio.sleep(0.01)

    async def prompt(self) -> PromptEvent:
        await self.shows(b"[y/N]")
        async with asyncio.timeout(DEADLINE_S):
            while (event := await self.adapter.detect_prompt(bytes(self.output[-4096:]))) is None:
                await asyncio.sleep(0.05)
        return event

    def reply(self, event: PromptEvent, value: str = "y") -> Reply:
        nonce = str(event.constraints.get("nonce") or "0123456789abcdef" * 2)
        at = iso(SystemClock().wall())
        return Reply(event.prompt_id, self.session_id, value, nonce, "cli:contract", at, "append")

    async def end(self) -> None:
        await self.adapter.terminate_session(self.session_id)
        self.reader.cancel()
        await asyncio.gather(self.reader, return_exceptions=True)


async def check_adapter(make: Make) -> list[str]:
    """Return the failed checks with their reasons; an empty list means that the adapter fulfils the contract."""
    failures = []
    for check in CHECKS:
        wrong = await run_check(check, make)
        if wrong:
            failures.append(f"{check.__name__.removeprefix('check_')}: {wrong}")
    return failures


async def run_check(check: Callable[[Make], Awaitable[None]], make: Make) -> str:
    try:
        await check(make)
    except AssertionError as error:
        return str(error) or "did not hold"
    except TimeoutError:
        return f"nothing came of it within {DEADLINE_S:.0f} seconds"
    except Exception as error:  # the boundary to a foreign adapter: its exception is the failure
        return f"{type(error).__name__}: {error}"
    return ""


async def check_methods(make: Make) -> None:
    """All eight methods exist and are async as specified."""
    adapter = make()
    for name in ("start_session", "detect_prompt", "await_input_state", "inject_reply", "terminate_session"):
        assert inspect.iscoroutinefunction(getattr(adapter, name)), f"{name} must be async"
    for name in ("snapshot_context", "healthcheck"):
        assert inspect.iscoroutinefunction(getattr(adapter, name)), f"{name} must be async"
    assert callable(adapter.read_stream)


async def check_missing_program(make: Make) -> None:
    try:
        await make().start_session(["there-is-no-such-program-anywhere"])
    except AdapterStartError:
        return
    raise AssertionError("a program that does not exist must raise AdapterStartError")


async def check_session_id(make: Make) -> None:
    run = await Run.start(make)
    try:
        assert _UUID4.fullmatch(run.session_id), f"the session id must be a UUID v4, not {run.session_id!r}"
        assert await run.adapter.healthcheck() is True, "a running session must be healthy"
    finally:
        await run.end()
    assert await run.adapter.healthcheck() is False, "an ended session must not be healthy"


async def check_secrets_stay_out(make: Make) -> None:
    show = (sys.executable, "-c", "import os; print('there', 'ATLASBRIDGE_SECRET' in os.environ, flush=True); input()")
    run = await Run.start(make, show)
    try:
        await run.shows(b"there ")
        await run.shows(b"\n")
        assert b"there False" in run.output, "ATLASBRIDGE_* must not reach the tool"
    finally:
        await run.end()


async def check_detection(make: Make) -> None:
    run = await Run.start(make)
    try:
        event = await run.prompt()
        wrong = validate_event(event)
        assert not wrong, "; ".join(wrong)
        assert event.prompt_type is PromptType.TYPE_YES_NO, f"[y/N] is a yes/no prompt, not {event.prompt_type}"
        again = await run.adapter.detect_prompt(bytes(run.output[-4096:]))
        assert again is None, "the same prompt must not be detected twice"
    finally:
        await run.end()


async def check_ordinary_output(make: Make) -> None:
    run = await Run.start(make)
    try:
        event = await run.adapter.detect_prompt(b"Compiling 12 files\r\nDone in 3 seconds.\r\n")
        assert event is None, "ordinary output must not be detected as a prompt"
    finally:
        await run.end()


async def check_reply(make: Make) -> None:
    run = await Run.start(make)
    try:
        await run.adapter.inject_reply(run.reply(await run.prompt(), "y"))
        await run.shows(b"got 'y'")
    finally:
        await run.end()


async def check_replay(make: Make) -> None:
    run = await Run.start(make)
    try:
        reply = run.reply(await run.prompt(), "y")
        await run.adapter.inject_reply(reply)
        await run.shows(b"got 'y'")
        try:
            await run.adapter.inject_reply(reply)
        except (ReplayAttackError, AdapterError):
            return
        raise AssertionError("the same reply twice must be refused")
    finally:
        await run.end()


async def check_foreign_session(make: Make) -> None:
    run = await Run.start(make)
    try:
        reply = replace(run.reply(await run.prompt()), session_id="00000000-0000-4000-8000-000000000000")
        try:
            await run.adapter.inject_reply(reply)
        except AdapterError:
            return
        raise AssertionError("a reply for another session must be refused")
    finally:
        await run.end()


async def check_context(make: Make) -> None:
    run = await Run.start(make)
    try:
        context = await run.adapter.snapshot_context()
        missing = [key for key in CONTEXT_KEYS if key not in context]
        assert not missing, f"snapshot_context lacks {', '.join(missing)}"
        assert context["state"] in ("running", "awaiting_response", "injecting"), f"state {context['state']!r}"
    finally:
        await run.end()


async def check_hooks(make: Make) -> None:
    adapter = make()
    for name in ("on_start", "on_stop", "on_crash"):
        assert inspect.iscoroutinefunction(getattr(adapter, name)), f"{name} must be async"


CHECKS: tuple[Callable[[Make], Awaitable[None]], ...] = (
    check_methods,
    check_missing_program,
    check_session_id,
    check_secrets_stay_out,
    check_detection,
    check_ordinary_output,
    check_reply,
    check_replay,
    check_foreign_session,
    check_context,
    check_hooks,
)
