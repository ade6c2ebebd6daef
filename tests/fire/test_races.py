"""Who answers at the same moment as somebody else: one answer counts, and no keys are ever mixed."""

from __future__ import annotations

from random import Random

from tests.support.arena import arena
from tests.support.races import race_keyboard, race_two_people


def test_an_answer_from_afar_is_typed_whole_into_its_own_question_or_not_at_all() -> None:
    with arena() as place:
        place.start_hub()
        outcomes = race_keyboard(place, 12, Random(3))
        assert outcomes.total() == 12


def test_of_two_who_answer_at_once_one_wins_and_the_other_is_told_who() -> None:
    with arena() as place:
        place.start_hub()
        assert race_two_people(place, place.start_session(), 8).total() == 8
