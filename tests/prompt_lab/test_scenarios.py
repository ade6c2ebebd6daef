"""Every registered scenario on a real terminal: `pytest tests/prompt_lab -k QA-001`."""

from __future__ import annotations

import sys

import pytest

from atlasbridge.lab import elsewhere, scenarios  # noqa: F401 - importing them registers them
from atlasbridge.lab.scenario import (
    ELSEWHERE,
    BasePromptLabScenario,
    DetectorResult,
    ScenarioFailed,
    all_scenarios,
    find,
    register,
)

HERE = {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]


@pytest.mark.parametrize("scenario", list(all_scenarios()), ids=lambda item: f"{item.qa_id}-{item.name}")
async def test_scenario(scenario: type[BasePromptLabScenario]) -> None:
    assert HERE in scenario.platform
    await scenario().perform()


def test_the_register_holds_the_whole_gating_matrix() -> None:
    here = {item.qa_id for item in all_scenarios()}
    assert here >= {f"QA-00{number}" for number in range(1, 10)} | {"QA-018", "QA-019"}
    assert set(ELSEWHERE) == {"QA-010", "QA-013", "QA-014", "QA-015", "QA-020"}
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
            scenarios.check(result.raised[0].type.value == "yes_no", "a yes_no")

    with pytest.raises(ScenarioFailed, match="a yes_no"):
        await Wrong().perform()
