"""A full disk under the running product: nothing is typed that is not recorded, it is told, and it heals by itself."""

from __future__ import annotations

import pytest
from tests.support.disk_rounds import fill_and_free
from tests.support.small_disk import arena_on_small_disk, may_mount


@pytest.mark.heavy
@pytest.mark.skipif(not may_mount(), reason="only root may mount the small disk this needs")
def test_a_full_disk_refuses_answers_and_leaves_the_keyboard_alone() -> None:
    with arena_on_small_disk() as (place, disk):
        place.start_hub()
        found = fill_and_free(place, disk, 6)
        assert found["refused: unavailable"] >= 1, found
        assert found["told"] == found["refused: unavailable"]
