"""The names of the specifications that no other module has, and the others in one place.

`PTYSupervisor` is one asyncio loop, four tasks, one tool in a terminal, and no hub, for programs that handle prompts
and responses themselves; `atlasbridge run` has the same four tasks in its session host. `PromptDetector` is for callers
that only have text; live sessions use `core.detection`, with the screen and the waiting probe.

`PromptEvent` and `Confidence` are those of the adapter interface; `atlasbridge.core.prompt` has the architecture's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from atlasbridge.adapters.base import (
    INJECT_BYTES,
    AdapterInjectionError,
    AdapterStartError,
    BaseAdapter,
    Confidence,
    PromptEvent,
    ReplayAttackError,
    Reply,
    make_idempotency_key,
)
from atlasbridge.adapters.claude_code import ClaudeAdapter, ClaudeCodeAdapter
from atlasbridge.adapters.dialect_files import dialect_for, load_dialect
from atlasbridge.adapters.event import event_of
from atlasbridge.adapters.openai_cli import OpenAIAdapter
from atlasbridge.adapters.pty import BUFFER_BYTES, PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry
from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.local import LocalChannel, NullChannel
from atlasbridge.channels.registry import ChannelRegistry, channel_settings
from atlasbridge.config.load import Configuration
from atlasbridge.config.load import load_config as load_config_of
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.core.audit import AuditWriter, verify_chain
from atlasbridge.core.clock import Clock, SystemClock, iso
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeAnswered, ProbeState, RaisePrompt
from atlasbridge.core.detection.verdict import DetectorSettings, Patience
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Choice, Evidence, Prompt, PromptRecord, PromptType
from atlasbridge.core.routing import PromptRouter
from atlasbridge.core.session import Session
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.lab.scenario import BasePromptLabScenario, DetectorResult
from atlasbridge.lab.scenarios import (
    ANSIRedrawScenario,
    ConPTYBaselineScenario,
    EchoLoopScenario,
    FreeTextConstraintScenario,
    MultipleChoiceScenario,
    NestedPromptsScenario,
    OutputFloodScenario,
    OverwrittenPromptScenario,
    PartialLinePromptScenario,
    PressEnterScenario,
    SilentBlockScenario,
    YesNoVariantsScenario,
)
from atlasbridge.os.tty.base import BasePTY
from atlasbridge.os.tty.posix import PosixPTY as PosixPTYBackend
from atlasbridge.os.tty.windows import WindowsPTY as ConPTYBackend

__all__ = [
    "INJECT_BYTES",
    "ANSIRedrawScenario",
    "AdapterInjectionError",
    "AdapterRegistry",
    "AdapterStartError",
    "AtlasBridgeConfig",
    "AuditWriter",
    "BaseAdapter",
    "BaseChannel",
    "BasePTY",
    "BasePromptLabScenario",
    "ClaudeAdapter",
    "ClaudeCodeAdapter",
    "ConPTYBackend",
    "ConPTYBaselineScenario",
    "Confidence",
    "ConfigError",
    "DetectorResult",
    "EchoLoopScenario",
    "FreeTextConstraintScenario",
    "GenericPTYAdapter",
    "LocalChannel",
    "MultipleChoiceScenario",
    "NestedPromptsScenario",
    "NullChannel",
    "OpenAIAdapter",
    "OutputFloodScenario",
    "OverwrittenPromptScenario",
    "PTYSupervisor",
    "PartialLinePromptScenario",
    "PosixPTYBackend",
    "PressEnterScenario",
    "PromptDetector",
    "PromptEvent",
    "PromptRecord",
    "PromptRouter",
    "PromptType",
    "ReplayAttackError",
    "Reply",
    "Session",
    "SilentBlockScenario",
    "SupervisorState",
    "YesNoVariantsScenario",
    "decide_prompt",
    "load_config",
    "make_idempotency_key",
    "verify_chain",
]

GenericPTYAdapter = PtyAdapter
decide_prompt = Ledger.decide_prompt


def load_config(path: str | os.PathLike[str] | None = None) -> Configuration:
    """Load the configuration from this file, or from this user's home folder. Raises ConfigError."""
    place = Path(path) if path is not None else Home.find(os.environ).config
    return load_config_of(place, os.environ, channel_settings, ChannelRegistry.names())


MOST_KEYS = 4096


class SupervisorState(StrEnum):
    RUNNING = "running"
    AWAITING_RESPONSE = "awaiting_response"
    INJECTING = "injecting"
    DONE = "done"


class PTYSupervisor:
    """Put `(prompt_id, value)` into `responses`, and read prompts from `prompts`. `run` ends with the tool.

    `terminal` gets every byte of the tool's output; bytes from the descriptor `keyboard` are typed into the tool.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: dict[str, str] | None = None,
        terminal: BinaryIO | None = None,
        keyboard: int | None = None,
        audit: AuditWriter | None = None,
        stuck_timeout_seconds: float = 2.0,
        stuck_poll_interval_seconds: float = 0.5,
        injection_timeout_seconds: float = 5.0,
    ) -> None:
        self.command = list(command)
        adapter = AdapterRegistry.of_dialect(dialect_for(os.path.basename(self.command[0])))
        self.adapter: PtyAdapter = adapter(stuck_timeout_seconds=stuck_timeout_seconds)
        self.prompts: asyncio.Queue[PromptEvent] = asyncio.Queue()
        self.responses: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.refused: list[tuple[str, str]] = []  # (prompt_id, why nothing was typed)
        self.session_id = ""
        self._env, self._terminal, self._keyboard, self._audit = env, terminal, keyboard, audit
        self._poll_s, self._injection_s = stuck_poll_interval_seconds, injection_timeout_seconds
        self._state = SupervisorState.RUNNING
        self._injection_gate = asyncio.Lock()
        self._output_buffer = bytearray()
        self._asked: dict[str, PromptEvent] = {}

    @property
    def state(self) -> SupervisorState:
        return self._state

    async def run(self) -> int:
        """Start the tool, run the four tasks, and return its exit status."""
        self.session_id = await self.adapter.start_session(self.command, self._env)
        self._note("SESSION_START", tool=self.adapter.tool_name)
        others = [asyncio.create_task(task()) for task in (self.stall_watchdog, self.response_consumer)]
        if self._keyboard is not None:
            others.append(asyncio.create_task(self.stdin_relay()))
        try:
            await self.pty_reader()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._injection_s), self._injection_gate:
                    pass  # a response that ended the tool is recorded first
        finally:
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self.adapter.terminate_session(self.session_id)
        self._state = SupervisorState.DONE
        status = await self.adapter.wait()
        self._note("SESSION_END", exit_code=status)
        return status

    # the four tasks

    async def pty_reader(self) -> None:
        async for chunk in self.adapter.read_stream():
            if self._terminal is not None:
                self._terminal.write(chunk)
                self._terminal.flush()
            self._output_buffer += chunk
            del self._output_buffer[:-BUFFER_BYTES]
            await self._look()

    async def stdin_relay(self) -> None:
        """Keys wait while the injection gate is closed."""
        assert self._keyboard is not None
        while keys := await asyncio.to_thread(os.read, self._keyboard, MOST_KEYS):
            async with self._injection_gate:
                await self.adapter.type_keys(keys)

    async def stall_watchdog(self) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            if self._state is SupervisorState.RUNNING and await self.adapter.await_input_state():
                await self._look()

    async def response_consumer(self) -> None:
        while True:
            await self._inject_response(*await self.responses.get())

    async def _look(self) -> None:
        event = await self.adapter.detect_prompt(bytes(self._output_buffer))
        if event is not None:
            self._asked[event.prompt_id] = event
            self._state = SupervisorState.AWAITING_RESPONSE
            self._note("PROMPT_DETECTED", prompt_id=event.prompt_id)
            await self.prompts.put(event)

    async def _inject_response(self, prompt_id: str, value: str) -> bool:
        """Type one response at a time. A response to a prompt that does not wait, or a second one, types nothing and is
        recorded in `refused`."""
        event = self._asked.pop(prompt_id, None)
        if event is None:
            self.refused.append((prompt_id, "no such prompt waits"))
            return False
        clock = SystemClock()
        nonce = event.constraints["nonce"]
        reply = Reply(prompt_id, event.session_id, value, nonce, "cli:local", iso(clock.wall()), "append")
        try:
            async with asyncio.timeout(self._injection_s):
                await self._injection_gate.acquire()
        except TimeoutError:
            self._asked[prompt_id] = event
            self.refused.append((prompt_id, "another response is still being typed"))
            return False
        try:
            self._state = SupervisorState.INJECTING
            await self.adapter.inject_reply(reply)
        except (AdapterInjectionError, ReplayAttackError) as error:
            self.refused.append((prompt_id, str(error)))
            return False
        finally:
            self._state = SupervisorState.RUNNING
            self._injection_gate.release()
        self._output_buffer.clear()
        said = {"secret": True} if event.constraints.get("secret") else {"value": value}
        self._note("REPLY_INJECTED", prompt_id=prompt_id, decided_by=reply.channel_identity, **said)
        return True

    def _note(self, event: str, **fields: object) -> None:
        if self._audit is not None:
            self._audit.write(event, session_id=self.session_id, **fields)


DETECTOR_BYTES = 4096
ROWS, COLS = 50, 200
BLIND = ProbeAnswer(ProbeState.UNKNOWN, "text only", echo=True, canonical=True)


# The last line of a complete prompt, as in the documents.
_COMPLETE = re.compile(
    r"""(?:
        [(\[] \s* y(?:es)? \s* / \s* n(?:o)? \s* [)\]]
      | \b (?:y|yes) \s or \s (?:n|no) \b
      | press \s '?y'? \s to \s (?:continue|confirm|proceed|accept|start) \b
      | \[ \s* press \s (?:enter|return) \s* \]
      | (?:press|hit) \s (?:enter|return|any\skey) \s to \s (?:continue|start|proceed|begin|finish|exit|quit|close) \b
      | -- \s* more \s* --
      | [(\[] \d+ \s* (?: - | / (?:\d+/)* ) \s* \d+ [)\]]
      | \b which \b [^\n]* \b want\?
      | (?:^|\n) (?: (?! \b(?:select|choose|pick|following|options?)\b ) [^\n] )+ :  # those head a list
      | (?:^|\n) \s* [>❯›]
    ) [\s.…:>❯›]* \Z""",
    re.IGNORECASE | re.VERBOSE,
)
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z^_])")
_TRAILING = " \t\r\n.…:>❯›"


class PromptDetector:
    """Text in, an event or None out. The session's id is the caller's, or a new one."""

    def __init__(
        self, threshold: float = 0.65, session_id: str = "", tool: str = "generic", clock: Clock | None = None
    ) -> None:
        self.threshold = threshold
        self.session_id = session_id or new_id()
        self._dialect = load_dialect(tool)
        self._clock = clock or SystemClock()
        self._buffer, self._returned = b"", ""

    def feed(self, chunk: bytes) -> PromptEvent | None:
        """Add output to the rolling buffer and check all of it. A prompt is returned once, and only if it is complete:
        a question that could still get its `(y/n)` is left to `detect_blocking`, after the silence."""
        self._buffer = (self._buffer + chunk)[-DETECTOR_BYTES:]
        text = _ESCAPES.sub("", self._buffer.decode("utf-8", "replace"))
        shown = text.rstrip(_TRAILING)
        if shown == self._returned or not _COMPLETE.search(text):
            return None
        event = self._event(self._judge(self._buffer), believed=True)
        if event is not None:
            self._returned = shown
        return event

    def clear(self) -> None:
        self._buffer, self._returned = b"", ""

    def detect(self, text: str) -> PromptEvent | None:
        """The prompt at the end of this text, if a pattern is certain enough."""
        return self._event(self._judge(text.replace("\r\n", "\n").replace("\n", "\r\n").encode()), believed=True)

    def detect_structured(self, prompt_type: PromptType, excerpt: str, choices: tuple[str, ...] = ()) -> PromptEvent:
        """The tool reported the prompt itself: confidence 1.0."""
        evidence = (Evidence("structured", 1.0, "the tool says so"),)
        offered = tuple(Choice(str(number), label) for number, label in enumerate(choices, 1))
        prompt = Prompt(prompt_type, 1.0, excerpt[:EXCERPT_LIMIT], choices=offered, evidence=evidence)
        return event_of(prompt, self.session_id, self._clock)

    def detect_blocking(self) -> PromptEvent | None:
        """The prompt in the buffer after `stuck_timeout_seconds` of silence, also if no pattern matches."""
        return self._event(self._judge(self._buffer), believed=False)

    def _judge(self, data: bytes) -> Prompt | None:
        patience = Patience(threshold=self.threshold)
        detector = Detector(self._dialect, ROWS, COLS, DetectorSettings(patience=patience))
        detector.handle(OutputReceived(data), 0.0)
        for now in (0.1, patience.silence_s + 0.1, patience.wordless_s + 0.1):
            for command in detector.handle(ProbeAnswered(BLIND), now):
                if isinstance(command, RaisePrompt):
                    return command.prompt
        return None

    def _event(self, prompt: Prompt | None, believed: bool) -> PromptEvent | None:
        if prompt is None or (believed and prompt.type is PromptType.TYPE_UNKNOWN):
            return None
        return event_of(prompt, self.session_id, self._clock)
