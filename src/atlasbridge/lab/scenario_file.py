"""Scenarios as JSON files: the bytes of a program, and the expected result of the detector (`null` for none).

The schema is the specification's, with optional facts (`probe`, `canonical`, `echo`, `rows`, `cols`) that bytes alone
do not contain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlasbridge.adapters.dialect_files import available, load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import OutputReceived, ProbeAnswer, ProbeState, RaisePrompt
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.system import replace_private
from atlasbridge.lab.replay import Player, simulated_probe
from atlasbridge.lab.scenario import ScenarioFailed, check

REQUIRED = ("tool", "scenario_id", "description", "pty_output", "expected_type")
OPTIONAL = (
    "expected_confidence_band",
    "expected_excerpt_contains",
    "expected_choices",
    "expected_secret",
    "expected_idle",
)
FACTS = ("probe", "canonical", "echo", "rows", "cols", "command")
WATCH_S = 15.0


@dataclass(frozen=True, slots=True)
class ScenarioFile:
    path: Path
    data: Mapping[str, Any]

    @property
    def scenario_id(self) -> str:
        return str(self.data["scenario_id"])

    @property
    def tool(self) -> str:
        return str(self.data["tool"])


def read_scenario(path: Path) -> ScenarioFile:
    """Read a scenario file; an error is described in one line."""
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AtlasBridgeError(f"{path}: cannot be read: {error}", "A scenario is one JSON object.") from None
    missing = [key for key in REQUIRED if key not in data] if isinstance(data, dict) else list(REQUIRED)
    if missing:
        raise AtlasBridgeError(f"{path}: lacks {', '.join(missing)}", "See docs/howto/add-a-scenario.md.")
    unknown = [key for key in data if key not in (*REQUIRED, *OPTIONAL, *FACTS)]
    if unknown:
        raise AtlasBridgeError(
            f"{path}: unknown {', '.join(unknown)}", f"Known: {', '.join((*REQUIRED, *OPTIONAL, *FACTS))}."
        )
    return ScenarioFile(path, data)


def detect(data: Mapping[str, Any]) -> tuple[Prompt | None, list[str]]:
    """Return the prompt that the detector raises for the bytes of a scenario, and the explanation."""
    name = str(data["tool"]) if str(data["tool"]) in available() else "generic"
    dialect = load_dialect(name)
    detector = Detector(dialect, int(data.get("rows", 24)), int(data.get("cols", 80)))
    player = Player(detector, _probe(data, name))
    output = str(data["pty_output"]).encode("utf-8", "surrogateescape")
    heard = [*player.tell(OutputReceived(output), 0.0), *player.pass_time(WATCH_S)]
    raised = [command.prompt for _, command in heard if isinstance(command, RaisePrompt)]
    return (raised[0] if raised else None), detector.explain()


def run_file(scenario: ScenarioFile) -> Prompt | None:
    """Raises `ScenarioFailed` if the detector's result differs from the file."""
    prompt, why = detect(scenario.data)
    expected = scenario.data["expected_type"]
    if expected is None:
        if prompt is not None:
            raise ScenarioFailed(f"nothing was to be raised, but {prompt.type.value} was: {prompt.excerpt!r}")
        return None
    if prompt is None:
        raise ScenarioFailed(f"{expected} was to be raised, but nothing was: {'; '.join(why)}")
    _compare(prompt, scenario.data)
    return prompt


def _compare(prompt: Prompt, data: Mapping[str, Any]) -> None:
    check(
        prompt.type.name == data["expected_type"],
        f"{data['expected_type']}, not {prompt.type.name}: {prompt.excerpt!r}",
    )
    band = data.get("expected_confidence_band")
    check(band in (None, prompt.confidence.name), f"confidence {band}, not {prompt.confidence.name}")
    part = data.get("expected_excerpt_contains", "")
    check(part in prompt.excerpt, f"{part!r} in the excerpt, which is {prompt.excerpt!r}")
    labels = [choice.label for choice in prompt.choices]
    for label in data.get("expected_choices", []):
        check(any(label in have for have in labels), f"the choice {label!r} among {labels}")
    for key in ("secret", "idle"):
        wanted = data.get(f"expected_{key}")
        check(wanted in (None, bool(prompt.constraints.get(key))), f"{key} is {wanted}")


def _probe(data: Mapping[str, Any], dialect: str) -> ProbeAnswer:
    if "probe" not in data:
        return simulated_probe(dialect)
    return ProbeAnswer(
        ProbeState(data["probe"]),
        "as in the scenario",
        echo=data.get("echo"),
        canonical=data.get("canonical"),
        command=str(data.get("command", "")),
    )


def write_scenario(folder: Path, data: Mapping[str, Any]) -> Path:
    """Write atomically, readable by the owner only."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / f"{data['scenario_id']}.json"
    replace_private(path, json.dumps(data, ensure_ascii=True, indent=2) + "\n")
    return path
