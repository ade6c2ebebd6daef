"""Where nobody can tell who reads: never a silent hang, and no alarm for what only works in silence."""

from __future__ import annotations

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeAnswered, ProbeState, RaisePrompt
from atlasbridge.core.detection.verdict import DetectorSettings, Patience
from atlasbridge.core.prompt.model import Confidence, Prompt, PromptType

BLIND = ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell", echo=True, canonical=True)


def raised_at(
    *chunks: tuple[float, bytes], until_s: float = 60.0, settings: DetectorSettings | None = None
) -> tuple[float, Prompt] | None:
    """When a prompt is raised, looked at every tenth of a second; None when it never is."""
    detector = Detector(load_dialect("generic"), 24, 80, settings)
    detector.handle(OutputReceived(b""), 0.0)
    waiting = list(chunks)
    for tenth in range(int(until_s * 10) + 1):
        now = tenth / 10
        while waiting and waiting[0][0] <= now:
            detector.handle(OutputReceived(waiting.pop(0)[1]), now)
        for command in detector.handle(ProbeAnswered(BLIND), now):
            if isinstance(command, RaisePrompt):
                return now, command.prompt
    return None


def the_raised(*chunks: tuple[float, bytes]) -> tuple[float, Prompt]:
    raised = raised_at(*chunks)
    assert raised is not None
    return raised


def test_a_program_that_never_wrote_anything_is_raised_as_a_guess() -> None:
    at, prompt = the_raised()
    assert 2.0 <= at <= 5.0
    assert (prompt.type, prompt.confidence) == (PromptType.TYPE_UNKNOWN, Confidence.LOW)
    assert "may wait" in prompt.excerpt
    assert "silence" in {item.signal for item in prompt.evidence}


@pytest.mark.parametrize("line", ["Ihr Name bitte", "speak, friend", "42", "名前"])
def test_a_line_that_nobody_recognises_is_raised_after_the_silence(line: str) -> None:
    at, prompt = the_raised((1.0, line.encode()))
    assert 3.0 <= at <= 3.3
    assert (prompt.type, prompt.confidence) == (PromptType.TYPE_UNKNOWN, Confidence.LOW)
    assert prompt.excerpt == line


def test_a_question_is_raised_as_what_it_is() -> None:
    at, prompt = the_raised((1.0, b"Go on? [y/N] "))
    assert 3.0 <= at <= 3.3
    assert prompt.type is PromptType.TYPE_YES_NO


def test_a_program_that_works_in_silence_behind_an_ended_line_has_half_a_minute() -> None:
    assert raised_at((1.0, b"Compiling the kernel\r\n"), until_s=29.0) is None
    at, prompt = the_raised((1.0, b"Compiling the kernel\r\n"))
    assert 30.0 <= at <= 33.0
    assert prompt.confidence is Confidence.LOW


def test_lines_that_come_now_and_then_raise_nothing() -> None:
    lines = [(float(second), f"step {second}\r\n".encode()) for second in range(1, 90, 9)]
    assert raised_at(*lines, until_s=90.0) is None


def test_a_line_that_is_drawn_again_and_again_shows_how_far_it_is() -> None:
    turns = [(second / 2 if second < 8 else second * 3.0, b"\rInstalling packages " + bytes([b"|/-\\"[second % 4]]))
             for second in range(1, 12)]  # fmt: skip
    assert raised_at(*turns, until_s=30.0) is None


def test_the_silence_is_the_configured_one() -> None:
    slow = DetectorSettings(patience=Patience(silence_s=8.0))
    raised = raised_at((1.0, b"speak, friend"), settings=slow)
    assert raised is not None
    assert 9.0 <= raised[0] <= 9.3
    silent = raised_at(settings=slow)
    assert silent is not None
    assert silent[0] >= 8.0


@pytest.mark.parametrize(("threshold", "kind"), [(0.3, "free_text"), (0.65, "free_text"), (0.8, "unknown")])
def test_the_threshold_says_which_pattern_is_believed(threshold: float, kind: str) -> None:
    """A line that ends as questions do scores 0.72: believed below that, else a guess."""
    settings = DetectorSettings(patience=Patience(threshold=threshold))
    raised = raised_at((1.0, b"The word of the day:"), settings=settings)
    assert raised is not None
    assert raised[1].type.value == kind
