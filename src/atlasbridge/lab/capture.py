"""Turns real prompts into scenario files: every raised prompt (`ATLASBRIDGE_CAPTURE_PROMPTS=1`), or one that a person
reports as wrong. A captured file is tested at once, so that it can be replayed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import Command, Event, ProbeAnswer, ProbeAnswered, RaisePrompt
from atlasbridge.core.detection.verdict import DetectorSettings
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.redact import redact, redact_outgoing
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.lab.scenario_file import detect, write_scenario

FOLDER = "captured_scenarios"


class CapturingDetector(Detector):
    """A detector that saves every prompt it raises as a scenario file."""

    def __init__(
        self, dialect: Dialect, rows: int, cols: int, settings: DetectorSettings, folder: Path, tool: str
    ) -> None:
        super().__init__(dialect, rows, cols, settings)
        self._folder = folder
        self._tool = tool
        self._looked: ProbeAnswer | None = None

    def handle(self, event: Event, now: float) -> list[Command]:
        if isinstance(event, ProbeAnswered):
            self._looked = event.answer
        commands = super().handle(event, now)
        for command in commands:
            if isinstance(command, RaisePrompt):
                write_scenario(self._folder, self._scenario(command.prompt))
        return commands

    def _scenario(self, prompt: Prompt) -> dict[str, Any]:
        size = {"rows": self.screen.rows, "cols": self.screen.cols}
        return scenario_of(prompt, self._tool, {**size, **_facts(self._looked)}, self.secrets)


def _facts(looked: ProbeAnswer | None) -> dict[str, Any]:
    if looked is None:
        return {}
    facts: dict[str, Any] = {"probe": looked.state.value, "canonical": looked.canonical, "echo": looked.echo}
    return {**facts, "command": looked.command} if looked.command else facts


def scenario_of(prompt: Prompt, tool: str, facts: dict[str, Any], secrets: tuple[str, ...] = ()) -> dict[str, Any]:
    """A scenario that expects exactly this prompt. It uses the recorded bytes if they reproduce it, otherwise the
    screen."""
    expected = {
        "expected_type": prompt.type.name,
        "expected_confidence_band": prompt.confidence.name,
        "expected_excerpt_contains": prompt.excerpt.split("\n")[-1],
        "expected_choices": [choice.label for choice in prompt.choices],
        "expected_secret": prompt.secret,
        "expected_idle": prompt.idle,
    }
    base = {"tool": tool, "scenario_id": f"{tool}_{prompt.type.value}_{short_id(new_id())}", "description": "captured"}
    bytes_drawn = redact(prompt.raw.decode("utf-8", "replace"), secrets)
    for output in (bytes_drawn, on_screen(prompt.screen)):
        data = {**base, "pty_output": output, **expected, **facts}
        found, _ = detect(data)
        if found is not None and found.type is prompt.type:
            return data
    return data


def on_screen(text: str) -> str:
    """Output that draws this text, with the cursor after its last character."""
    return "\x1b[H\x1b[2J" + text.rstrip("\n").replace("\n", "\r\n") + " "


def reported(public: dict[str, Any], tool: str, expected_type: str | None) -> dict[str, Any]:
    """A scenario from a prompt (or a screen) that a person reports as wrong; it fails until the detector is fixed."""
    what = "not a prompt" if expected_type is None else f"should be {expected_type}"
    return {
        "tool": tool,
        "scenario_id": f"{tool}_reported_{short_id(new_id())}",
        "description": f"reported: {what}",
        "pty_output": on_screen(redact_outgoing(str(public.get("screen", "")))),
        "expected_type": expected_type,
        "rows": 40,
        "cols": 120,
    }
