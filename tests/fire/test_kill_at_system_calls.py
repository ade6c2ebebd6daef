"""kill -9 of the hub at single system calls, by strace and by counting: also in the middle of SQLite's own writes."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from tests.support import deadly_calls
from tests.support.arena import arena
from tests.support.chain_rounds import chain
from tests.support.traced_hub import available
from tests.support.traced_rounds import attack


@pytest.mark.heavy
@pytest.mark.skipif(not available(), reason="strace is not installed; `make test-landing` installs it")
@pytest.mark.timeout(600)
def test_a_hub_killed_at_any_system_call_loses_nothing_and_types_nothing_twice() -> None:
    with arena() as place:
        places, deaths, _ = attack(place, 30, Random(13))
        assert places >= 200 and deaths >= 20


@pytest.mark.heavy
@pytest.mark.skipif(not deadly_calls.available(), reason="a C compiler is needed (Linux)")
@pytest.mark.timeout(600)
def test_hubs_that_die_one_after_the_other_lose_nothing_and_type_nothing_twice(tmp_path: Path) -> None:
    with arena(preload=deadly_calls.build(tmp_path)) as place:
        died, questions = chain(place, 60, seed=7)
        assert died.total() == 60 and questions >= 10
