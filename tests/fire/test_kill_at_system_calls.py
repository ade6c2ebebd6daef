"""kill -9 of the hub at single system calls, by strace's fault injection: also in the middle of SQLite's own writes."""

from __future__ import annotations

from random import Random

import pytest
from tests.support.arena import arena
from tests.support.traced_hub import available
from tests.support.traced_rounds import attack


@pytest.mark.heavy
@pytest.mark.skipif(not available(), reason="strace is not installed; `make test-all` installs it")
@pytest.mark.timeout(600)
def test_a_hub_killed_at_any_system_call_loses_nothing_and_types_nothing_twice():
    with arena() as place:
        places, deaths, _ = attack(place, 40, Random(13))
        assert places >= 200 and deaths >= 25
