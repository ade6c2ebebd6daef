"""What a zygote does once before it forks, so that no host has to: compile, specialise, fill every cache.

A page that a host writes to is its own from then on.  An interpreter writes when code runs for the first few times;
here it runs, on a few small dialogs and a virtual clock.  Nothing outside of this process is touched.
"""

from __future__ import annotations

from atlasbridge.core import wire
from atlasbridge.core.detection.commands import RaisePrompt, RequestProbe, RequestWakeup
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    ChildExited,
    Event,
    KeysTyped,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    ReplyTyped,
    WakeupDue,
)
from atlasbridge.core.host.terminal.detach_key import DetachKey
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Answer, AnswerKind, Prompt
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.screen.redraw import render_screen
from atlasbridge.core.screen.style import render_sgr
from atlasbridge.core.values import compile_initialisers

_TIMES = 12  # an interpreter specialises code after eight runs
_DIALOGS = (
    b"step 1 is done\r\nContinue? (y/n) ",
    b"\x1b[1mWhat now?\x1b[0m\r\n\r\n\x1b[36m> 1. Yes\x1b[0m\r\n  2. Yes, always\r\n  3. No, and say why\r\n",
    b"$ make\r\nName of the release: ",
    b"Password: ",
    b"Press Enter to continue",
)
_READING = ProbeAnswer(ProbeState.READING, "rehearsed", echo=True, canonical=True)


def rehearse(dialect: Dialect, detach_key: str) -> None:
    compile_initialisers()
    DetachKey(detach_key)
    while compile_next():
        pass
    for _ in range(_TIMES):
        for dialog in _DIALOGS:
            _play(Detector(dialect, 24, 80), dialog)


def _play(detector: Detector, dialog: bytes) -> None:
    now = 1000.0
    for number in range(3):
        now = _tell(detector, OutputReceived(dialog), now)
        prompt = detector.open_prompt
        if prompt is not None:
            _answer(prompt)
            now = _tell(detector, ReplyTyped(prompt.digest), now)
        now = _tell(detector, KeysTyped(b"y\r"), now)
        now = _tell(detector, OutputReceived(b"y\r\nthat was number %d\r\n" % number), now)
    render_screen(detector.screen, render_sgr)
    _tell(detector, ChildExited(), now)


def _tell(detector: Detector, event: Event, now: float) -> float:
    """The event, and what follows of it within a second; returns when that is over."""
    until, wake_at = now + 1.0, now
    waiting: list[Event] = [event]
    while waiting:
        for command in detector.handle(waiting.pop(0), now):
            match command:
                case RequestProbe():
                    waiting.append(ProbeAnswered(_READING))
                case RequestWakeup(at):
                    wake_at = at
                case RaisePrompt():
                    pass
        if not waiting and now < wake_at <= until:
            now = wake_at
            waiting.append(WakeupDue())
    return until


def _answer(prompt: Prompt) -> None:
    wire.decode(wire.encode({"m": "raise", "prompt": encode_prompt(prompt)}))
    encode_answer(prompt, Answer(AnswerKind.TEXT, "yes"))
    if prompt.choices:
        encode_answer(prompt, Answer(AnswerKind.CHOICE, prompt.choices[0].value))
