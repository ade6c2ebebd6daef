"""`PromptDetector` as in the documents: text in, an event or None out.

Live sessions use `core.detection`, with the screen and the waiting probe; this class is for callers that only have
text.
"""

from __future__ import annotations

import re

from atlasbridge.adapters.base import PromptEvent
from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.adapters.event import event_of
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeAnswered, ProbeState, RaisePrompt
from atlasbridge.core.detection.verdict import DetectorSettings, Patience
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, Choice, Evidence, Prompt, PromptType

BUFFER_BYTES = 4096
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
    """`idempotency_key` identifies events. The session's id is the caller's, or a new one."""

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
        self._buffer = (self._buffer + chunk)[-BUFFER_BYTES:]
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
