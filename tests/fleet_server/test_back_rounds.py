"""A round of each kind of the long attack `fleet_faults --back`, so that it runs whenever somebody wants it."""

from __future__ import annotations

import pytest
from tests.support import back_rounds, waiting

from atlasbridge.fleet.member import channel

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize("kind", ["point in time", "failover", "home", "clone", "clock"])
async def test_stores_go_back_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((channel, "HELD_S"), (channel, "FIRST_RETRY_S"), (waiting, "LOOK_EVERY_S")):
        monkeypatch.setattr(module, name, getattr(module, name))  # the attack shortens them
    monkeypatch.setattr(back_rounds, "KINDS", {kind: back_rounds.KINDS[kind]})
    found = await back_rounds.back_rounds(1, fleets=1, count=1, sessions=2, seed=7)
    assert found[kind] == 1
