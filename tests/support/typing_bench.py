"""The host's real detector, watchdog, typist and gate over a scripted tool, with a hand between any two of its moves.

Every look at the world that the typist takes (probe, terminal flags, encoding, pausing, entering the gate) is a seam:
at the chosen one something happens first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.support.session_fakes import Bench

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import ChildExited, ProbeAnswer, ProbeState
from atlasbridge.core.host.typed import Outcome
from atlasbridge.core.host.typist import Typist, Walk
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.tty import LineFlags

QUESTION = b"Remove the old build? (y/n) "


class TypingBench(Bench):
    def __init__(self, question: bytes = QUESTION, echo: bool = True, canonical: bool = True) -> None:
        self.seams: list[str] = []
        self.act: Callable[[], None] = lambda: None
        self.act_at = 0
        self.acted_before_typing = False
        self.before_seam: Callable[[str], None] = lambda name: None  # what the tool does by itself
        self.on_seam: Callable[[int], None] = lambda number: None
        super().__init__(
            detector=Detector(load_dialect("generic"), 24, 80),  # type: ignore[arg-type]
        )
        self.pty.line = LineFlags(canonical=canonical, echo=echo)
        self.probe.answer = ProbeAnswer(ProbeState.READING, "reads", echo=echo, canonical=canonical)
        self.probe.before_look = lambda: self._seam("probe")
        self.written = b""
        self.show(question)
        self.run_until_raised()
        self.seams.clear()

    def _seam(self, name: str) -> None:
        self.before_seam(name)
        self.seams.append(name)
        self.on_seam(len(self.seams))
        if len(self.seams) == self.act_at:
            self.acted_before_typing = self.pty_typed() == b""
            self.act()

    def pty_typed(self) -> bytes:
        self.written += self.pty.typed()
        return self.written

    def run_until_raised(self, turns: int = 100, after: str = "") -> str:
        """The open prompt's id; "" when nothing but `after` is raised in that many turns."""
        for _ in range(turns):
            self.clock.advance(0.02)
            self.watch.absorb()
            self.watch.step(self.clock.now())
            opened = self.watch.opened
            if opened is not None and opened.prompt_id != after:
                return opened.prompt_id
        return ""

    def typist(self) -> Typist:
        def pause(seconds: float) -> None:
            self.clock.advance(seconds)
            self._seam("pause")

        def encode(prompt: Prompt, answer: Answer) -> tuple[Step, ...]:
            self._seam("encode")
            return encode_answer(prompt, answer)

        flags = self.pty.flags
        self.pty.flags = lambda: (self._seam("flags"), flags())[1]  # type: ignore[method-assign]
        enter = self.input_writer.injection

        def injection(timeout_s: float) -> AbstractContextManager[None]:
            self._seam("gate")
            return enter(timeout_s)

        self.input_writer.injection = injection  # type: ignore[method-assign, assignment]
        return Typist(Walk(self.watch, self.input_writer, self.pty, self.clock, self.settings, pause), encode)

    def type(self, answer: Answer) -> Outcome:
        return self.typist().type(self.open_id, answer)

    @property
    def open_id(self) -> str:
        assert self.watch.opened is not None
        return self.watch.opened.prompt_id

    # what can happen in between

    def tool_writes(self, data: bytes) -> None:
        self.clock.advance(0.001)
        self.show(data)

    def person_types(self, keys: bytes, echo: bytes = b"") -> None:
        self.clock.advance(0.001)
        self.input_writer.type(keys)
        self.watch.keys_typed(keys)
        if echo:
            self.tool_writes(echo)

    def tool_ends(self) -> None:
        self.watch.handle(ChildExited())
