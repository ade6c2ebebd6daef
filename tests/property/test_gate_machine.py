"""People × sessions × clocks × restarts × duplicates × reordering against gate and ledger; see `gate_world`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.gate_world import GateWorld


class GateMachine(RuleBasedStateMachine):
    """Hypothesis chooses the order of events and shrinks what fails; the world chooses the details from a seed."""

    world: GateWorld

    @initialize(seed=st.integers(0, 2**32))
    def begin(self, seed: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.world = GateWorld(Path(self.folder.name), Random(seed))

    @rule()
    def raise_prompt(self) -> None:
        self.world.raise_prompt()

    @rule()
    def reply(self) -> None:
        self.world.reply()

    @rule()
    def claim_late(self) -> None:
        self.world.claim()

    @rule()
    def host_types(self) -> None:
        self.world.type_answers()

    @rule()
    def prompt_ends(self) -> None:
        self.world.end_prompt()

    @rule()
    def session_ends(self) -> None:
        self.world.end_session()

    @rule()
    def time_passes(self) -> None:
        self.world.pass_time()

    @rule()
    def wall_clock_jumps(self) -> None:
        self.world.jump_wall()

    @rule()
    def hub_restarts(self) -> None:
        self.world.restart()

    @rule()
    def machine_reboots(self) -> None:
        self.world.reboot()

    @invariant()
    def nothing_wrong_was_typed(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.check_records()
            self.world.close()
            self.folder.cleanup()


TestGateMachine = GateMachine.TestCase
TestGateMachine.settings = settings(
    max_examples=15, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2**32))
def test_a_long_random_life_never_types_a_wrong_byte(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = GateWorld(Path(folder), Random(seed))
        for _ in range(250):
            world.step()
            world.check()
        world.check_records()
        world.close()
        assert world.seen["accepted"] and sum(world.typed.values())
