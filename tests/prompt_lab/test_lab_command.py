"""`atlasbridge lab` as people and other programs use it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from atlasbridge.cli.lab import command

CORPUS = Path(__file__).parents[1] / "corpus"
SCENARIOS = Path(__file__).parent / "scenarios"
DIALOG = next(CORPUS.glob("claude/*/bash/session.cast"))


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "home"))
    return CliRunner()


def invoke(lab: CliRunner, *words: str) -> Result:
    return lab.invoke(command, list(words), standalone_mode=False)


def test_the_list_looks_as_specified(lab: CliRunner) -> None:
    lines = invoke(lab, "list").output.splitlines()
    assert lines[0] == "AtlasBridge Prompt Lab — Registered Scenarios"
    assert lines[2].split() == ["QA", "ID", "Name", "Platform", "Status"]
    assert lines[3].split() == ["QA-001", "PartialLinePromptScenario", "macos,", "linux", "registered"]
    assert lines[-1] == "12 scenarios registered. Run with: atlasbridge lab run --all"


def test_a_scenario_is_run_by_its_id(lab: CliRunner) -> None:
    result = invoke(lab, "run", "qa-006", "--json")
    assert result.return_value == 0
    assert json.loads(result.output)["passed"] is True


def test_a_scenario_of_another_suite_is_run_there(lab: CliRunner) -> None:
    result = invoke(lab, "run", "QA-010", "--json")
    assert result.return_value == 0, result.output
    assert "1 passed" in json.loads(result.output)["detail"]


def test_where_the_source_is_not_the_command_fails_and_says_so(
    lab: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atlasbridge.cli.lab._SOURCES", ())
    monkeypatch.chdir(tmp_path)
    result = invoke(lab, "run", "QA-013")
    assert result.return_value == 1
    assert "come with the source only" in result.output


def test_every_id_that_is_listed_can_be_run_by_a_command_of_its_own() -> None:
    """In a fresh process: what another command has imported must not help."""
    words = [sys.executable, "-m", "atlasbridge", "lab", "run", "QA-011"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert "QA-011  TelegramMessageFormatScenario" in done.stdout, done.stderr
    assert done.returncode == 0, done.stdout


def test_the_lab_can_be_run_as_where_nobody_can_tell_who_reads(lab: CliRunner) -> None:
    result = invoke(lab, "run", "QA-004", "--blind")
    assert result.return_value == 0, result.output
    assert "raised after 4" in result.output


def test_a_failing_scenario_file_makes_the_command_fail(lab: CliRunner, tmp_path: Path) -> None:
    good = SCENARIOS / "generic_yes_no_file_overwrite.json"
    assert invoke(lab, "run", str(good)).return_value == 0
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({**json.loads(good.read_text()), "expected_type": None}))
    result = invoke(lab, "run", str(bad))
    assert result.return_value == 1
    assert "FAILED" in result.output


def test_an_unknown_scenario_is_an_error_with_a_hint(lab: CliRunner) -> None:
    result = invoke(lab, "run", "QA-777")
    assert "no scenario called 'QA-777'" in str(result.exception)


def test_a_recording_is_replayed_as_json_lines(lab: CliRunner) -> None:
    lines = [
        json.loads(line)
        for line in invoke(lab, "replay", str(DIALOG), "--tool", "claude", "--json").output.splitlines()
    ]
    dialogs = [line for line in lines if line["event"] == "prompt.raised" and line["type"] == "multiple_choice"]
    assert dialogs[0]["choices"][0]["label"] == "Yes"
    assert 4 < dialogs[0]["at_s"] < 9
    assert dialogs[0]["safe_default"] == "4"


def test_replaying_twice_gives_the_same(lab: CliRunner) -> None:
    first = invoke(lab, "replay", str(DIALOG), "--json").output
    assert first
    assert invoke(lab, "replay", str(DIALOG), "--json").output == first


def test_a_recording_is_explained_moment_by_moment(lab: CliRunner) -> None:
    output = invoke(lab, "explain", str(DIALOG), "--tool", "claude").output
    assert "RAISED multiple_choice" in output
    assert "the tool says that it works" in output


def test_a_broken_recording_is_refused_with_its_line(lab: CliRunner, tmp_path: Path) -> None:
    broken = tmp_path / "x.cast"
    broken.write_text('{"version": 2, "width": 80, "height": 24}\n[0.1, "o", "a"]\n[nonsense\n')
    assert "line 3" in str(invoke(lab, "replay", str(broken)).exception)


def test_a_program_is_recorded_and_the_recording_replays(lab: CliRunner, tmp_path: Path) -> None:
    path = tmp_path / "asks.cast"
    asks = f"{shlex.quote(sys.executable)} -c \"input('Delete it? [y/N] ')\""
    record = [
        sys.executable,
        "-m",
        "atlasbridge",
        "lab",
        "record",
        "-o",
        str(path),
        "--",
        "sh",
        "-c",
        asks + "; exit 7",
    ]
    done = subprocess.run(record, input=b"n\n", capture_output=True, env=os.environ)
    assert done.returncode == 7, done.stderr
    assert b"Delete it? [y/N]" in done.stdout
    events = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert "Delete it? [y/N] " in "".join(data for _, kind, data in events if kind == "o")
    assert "".join(data for _, kind, data in events if kind == "i") == "n\n"
    assert invoke(lab, "replay", str(path)).exception is None
