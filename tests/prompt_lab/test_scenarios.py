"""Every registered scenario on a real terminal: `pytest tests/prompt_lab -k QA-001`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from atlasbridge.lab import scenarios
from atlasbridge.lab.live_terminal import LiveTerminal
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
from tests.support.tier import first_of
from tests.support.waiting import stays, until

HERE = {"linux": "linux", "darwin": "macos", "win32": "windows"}[sys.platform]
NOT_ON_A_CONSOLE = {"QA-018": "a console sends pictures of its screen, and not every byte of a flood"}
unix_pair = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pair of a master and a slave")


@pytest.mark.parametrize("scenario", list(all_scenarios()), ids=lambda item: f"{item.qa_id}-{item.name}")
async def test_scenario(scenario: type[BasePromptLabScenario]) -> None:
    """On Windows each runs on the console, where nobody can tell who reads."""
    if HERE == "windows" and scenario.qa_id in NOT_ON_A_CONSOLE:
        pytest.skip(NOT_ON_A_CONSOLE[scenario.qa_id])
    assert HERE in (*scenario.platform, "windows")
    await scenario().perform()


@pytest.mark.skipif(sys.platform == "win32", reason="plays pywinpty on Unix; test_scenario has the real one")
@pytest.mark.parametrize(
    "scenario",
    first_of((one for one in all_scenarios() if one.qa_id not in NOT_ON_A_CONSOLE), quickly=3),
    ids=lambda item: f"{item.qa_id}-console-{item.name}",
)
async def test_scenario_on_a_console(scenario: type[BasePromptLabScenario], monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import fake_winpty

    monkeypatch.setitem(sys.modules, "winpty", fake_winpty)
    played = scenario()
    played.terminal = LiveTerminal(console=True)
    await played.perform()


@pytest.mark.landing
@pytest.mark.parametrize("scenario", list(all_scenarios()), ids=lambda item: f"{item.qa_id}-blind-{item.name}")
async def test_scenario_where_nobody_can_tell_who_reads(scenario: type[BasePromptLabScenario]) -> None:
    """Never a silent hang: what the probe would have told is told by silence, with its own evidence."""
    result = await scenario(blind=True).perform()
    assert not [item for prompt in result.raised for item in prompt.evidence if item.signal == "probe"]


@pytest.mark.parametrize("qa_id", sorted(ELSEWHERE))
def test_an_id_that_no_terminal_acts_out_says_what_it_is(qa_id: str) -> None:
    entry = ELSEWHERE[qa_id]
    source = Path(__file__).parents[2] / entry.test
    assert f'"{qa_id}' in source.read_text("utf-8") and entry.description


async def test_a_scenario_that_is_raised_too_late_fails() -> None:
    class Hasty(scenarios.SilentBlockScenario):
        within_s = -0.001  # none is: where the program came to rest during the look, it is raised in that moment

    with pytest.raises(ScenarioFailed, match="virtual clock"):
        await Hasty().perform()


def test_the_register_holds_the_whole_gating_matrix() -> None:
    here = {item.qa_id for item in all_scenarios()}
    assert here | set(ELSEWHERE) == {f"QA-{number:03}" for number in range(1, 21)}
    assert all(entry.test for entry in ELSEWHERE.values())
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


@unix_pair
async def test_a_scenario_that_writes_to_the_master_of_a_pair_is_judged_by_what_its_slave_reads() -> None:
    class Written(BasePromptLabScenario):
        qa_id = "QA-900"
        name = "WrittenScenario"
        description = "Written from the reliability document alone"

        async def setup(self) -> None:
            self.master, self.slave = os.openpty()

        async def run(self) -> None:
            os.write(self.master, b"Do you want to con")
            await asyncio.sleep(0.05)
            os.write(self.master, b"tinue? (y/n) ")

        async def assert_behavior(self, result: DetectorResult) -> None:
            assert [prompt.type.value for prompt in result.raised] == ["yes_no"]
            assert result.last.excerpt == "Do you want to continue? (y/n)"

    await Written().perform()


@unix_pair
async def test_output_that_asks_nothing_raises_nothing_when_it_is_written_to_the_pair_of_the_scenario() -> None:
    class Working(BasePromptLabScenario):
        qa_id = "QA-901"

        async def run(self) -> None:
            os.write(self.master_fd, b"compiling module 3 of 7\r\n")

        async def assert_behavior(self, result: DetectorResult) -> None:
            assert result.raised == []

    await Working().perform()


@unix_pair
async def test_nothing_is_raised_while_output_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a crowded machine the program may wait for its answer before its question was read."""
    from atlasbridge.os.tty.posix import PosixPTY

    read, go_on = PosixPTY.read, threading.Event()
    chunks: list[bytes] = []

    def slowly(pty: PosixPTY) -> bytes:
        chunks.append(read(pty))
        if b"tinue" in chunks[-1]:
            go_on.wait()
        return chunks[-1]

    monkeypatch.setattr(PosixPTY, "read", slowly)
    terminal = LiveTerminal(console=False)
    terminal.start(scenarios.program("say('Do you want to con'); time.sleep(0.2); say('tinue? [Y/n] '); ask()"))
    await until(lambda: b"tinue" in b"".join(chunks), "the rest of the question")
    await stays(lambda: not terminal.raised, "the silence", for_s=0.5)
    go_on.set()
    assert "Do you want to continue?" in (await terminal.until_raised()).excerpt
    await terminal.close()
