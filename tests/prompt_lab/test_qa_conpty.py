"""QA-020: a prompt on the Windows console is recognised on its screen and answered.  The gate of the conpty backend."""

from __future__ import annotations

import os
import sys
import time

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeAnswered, ProbeState, RaisePrompt
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer
from atlasbridge.core.tty import Size

ASK = "a = input('Continue? (y/n) '); print('got=' + a)"


@pytest.mark.skipif(sys.platform != "win32", reason="ConPTY is there on Windows only; the Windows job runs this")
@pytest.mark.parametrize("scenario", ["QA-020-ConPTYBaselineScenario"])
def test_a_prompt_on_the_windows_console_is_answered(scenario: str) -> None:
    from atlasbridge.os.tty.windows import WindowsPTY

    pty = WindowsPTY.spawn([sys.executable, "-c", ASK], dict(os.environ), None, Size(24, 80))
    detector = Detector(load_dialect("generic"), 24, 80)
    started = time.monotonic()
    prompt = None
    while prompt is None:
        detector.handle(OutputReceived(pty.read()), time.monotonic() - started)
        for later in (0.1, 1.0, 3.0):
            probe = ProbeAnswered(ProbeAnswer(ProbeState.UNKNOWN, canonical=True, echo=True))
            commands = detector.handle(probe, time.monotonic() - started + later)
            prompt = next((c.prompt for c in commands if isinstance(c, RaisePrompt)), prompt)
    answer = decide_answer(prompt, "y")
    assert isinstance(answer, Answer)
    for step in encode_answer(prompt, answer):
        pty.write(step.keys)
    shown = b""
    while chunk := pty.read():
        shown += chunk
    assert b"got=y" in shown
    assert pty.poll() == 0
