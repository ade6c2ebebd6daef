"""A few rounds of what `make torture` does for long: callers and hubs die, and no answer is lost or goes astray."""

from __future__ import annotations

from random import Random

from tests.integrations.conftest import HubApi
from tests.support.hubs import hub_process, with_page
from tests.support.integration_rounds import ask_many, kill_rounds
from tests.support.tier import times


def test_many_callers_at_once_get_their_own_answers(hub_api: HubApi) -> None:
    ask_many(hub_api.hub, 8)


def test_whoever_dies_no_answer_is_lost_or_given_to_another() -> None:
    with hub_process(with_page()) as hub:
        rounds = times(9, quickly=3)
        assert sum(kill_rounds(hub, rounds, Random(4)).values()) == rounds
