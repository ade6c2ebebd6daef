"""Scenario files of the specification's schema, what captures write, and how a wrong file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.events import OutputReceived
from atlasbridge.core.detection.verdict import DetectorSettings
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.lab.capture import CapturingDetector, reported
from atlasbridge.lab.replay import Player
from atlasbridge.lab.scenario import ScenarioFailed
from atlasbridge.lab.scenario_file import read_scenario, run_file, write_scenario
from tests.support.playbook import POLLING, READING

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_file(path: Path) -> None:
    run_file(read_scenario(path))


def test_there_are_scenarios_with_and_without_prompts() -> None:
    expected = [json.loads(path.read_text())["expected_type"] for path in FILES]
    assert None in expected
    assert len(set(expected)) >= 5


def test_a_file_that_expects_the_wrong_thing_fails(tmp_path: Path) -> None:
    data = json.loads(FILES[0].read_text())
    wrong = "TYPE_UNKNOWN" if data["expected_type"] is None else None
    path = write_scenario(tmp_path, {**data, "expected_type": wrong})
    with pytest.raises(ScenarioFailed):
        run_file(read_scenario(path))


@pytest.mark.parametrize(("text", "reason"), [("{", "cannot be read"), ("{}", "lacks tool"), ("[]", "lacks")])
def test_a_broken_file_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(AtlasBridgeError, match=reason):
        read_scenario(path)


DIALOG = (
    "\x1b[2J\x1b[H"
    + "─" * 60
    + "\r\n Bash command\r\n touch x\r\n Do you want to proceed?\r\n ❯ 1. Yes\r\n   2. No\r\n"
    "\r\n Esc to cancel · Tab to amend\x1b[?25l"
)


@pytest.mark.parametrize(
    ("tool", "probe", "output"),
    [
        ("generic", READING, "Remove it? [y/N] "),
        ("claude", POLLING, DIALOG),
        ("generic", READING, "x\r\n" * 900 + "Name: "),
    ],
)
def test_a_captured_prompt_is_replayable_at_once(tmp_path: Path, tool: str, probe: object, output: str) -> None:
    detector = CapturingDetector(load_dialect(tool), 24, 80, DetectorSettings(), tmp_path / "captured", tool)
    player = Player(detector, probe)  # type: ignore[arg-type]
    list(player.tell(OutputReceived(output.encode()), 10.0))
    list(player.pass_time(12.0))
    (path,) = (tmp_path / "captured").glob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    prompt = run_file(read_scenario(path))
    assert prompt is not None
    assert prompt.type is detector.open_prompt.type  # type: ignore[union-attr]


def test_a_reported_mistake_is_a_failing_scenario(tmp_path: Path) -> None:
    data = reported({"screen": "The installer asks: Overwrite? (y/n)"}, "generic", None)
    with pytest.raises(ScenarioFailed, match="nothing was to be raised"):
        run_file(read_scenario(write_scenario(tmp_path, data)))
