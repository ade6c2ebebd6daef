"""Every registered scenario on a real terminal: `pytest tests/prompt_lab -k QA-001`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from atlasbridge.lab import accuracy, scenarios  # noqa: F401 - importing them registers them
from atlasbridge.lab.scenario import (
    ELSEWHERE,
    BasePromptLabScenario,
    DetectorResult,
    ScenarioFailed,
    all_scenarios,
    check,
    find,
    register,
)

HERE = {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]


@pytest.mark.parametrize("scenario", list(all_scenarios()), ids=lambda item: f"{item.qa_id}-{item.name}")
async def test_scenario(scenario: type[BasePromptLabScenario]) -> None:
    assert HERE in scenario.platform
    await scenario().perform()


@pytest.mark.landing
@pytest.mark.parametrize("scenario", list(all_scenarios()), ids=lambda item: f"{item.qa_id}-blind-{item.name}")
async def test_scenario_where_nobody_can_tell_who_reads(scenario: type[BasePromptLabScenario]) -> None:
    """Never a silent hang: what the probe would have told is told by silence, with its own evidence."""
    result = await scenario(blind=True).perform()
    assert not [item for prompt in result.raised for item in prompt.evidence if item.signal == "probe"]


@pytest.mark.parametrize("qa_id", sorted(ELSEWHERE))
def test_an_id_that_no_terminal_acts_out_says_what_it_is(qa_id: str) -> None:
    entry = ELSEWHERE[qa_id]
    if qa_id in ("QA-011", "QA-012", "QA-016", "QA-017"):
        assert not entry.test
        assert "do not say what this one is" in entry.description
    else:
        source = Path(__file__).parents[2] / entry.test
        assert f'"{qa_id}' in source.read_text("utf-8")


async def test_a_scenario_that_is_raised_too_late_fails() -> None:
    class Hasty(scenarios.SilentBlockScenario):
        within_s = 0.01

    with pytest.raises(ScenarioFailed, match="virtual clock"):
        await Hasty().perform()


def test_the_register_holds_the_whole_gating_matrix() -> None:
    here = {item.qa_id for item in all_scenarios()}
    assert here | set(ELSEWHERE) == {f"QA-{number:03}" for number in range(1, 21)}
    assert {qa_id for qa_id, entry in ELSEWHERE.items() if entry.test} == {"QA-010", "QA-013", "QA-014", "QA-015"}
    assert all(entry.where for entry in ELSEWHERE.values())


def test_a_scenario_is_found_by_id_and_by_name() -> None:
    assert find("qa-006") == find("MultipleChoiceScenario")
    assert find("QA-999") == []


def test_an_id_is_given_once() -> None:
    class Twin(BasePromptLabScenario):
        qa_id = "QA-001"
        description = "taken"

    with pytest.raises(ValueError, match="QA-001 is taken"):
        register(Twin)


async def test_a_scenario_that_expects_the_wrong_thing_fails() -> None:
    class Wrong(scenarios.MultipleChoiceScenario):
        async def assert_behavior(self, result: DetectorResult) -> None:
            check(result.raised[0].type.value == "yes_no", "a yes_no")

    with pytest.raises(ScenarioFailed, match="a yes_no"):
        await Wrong().perform()
