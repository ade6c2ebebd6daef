"""Many sessions ask at random moments: every one gets its own answers, in order, and nobody else's."""

from __future__ import annotations

import threading

import pytest
from tests.support.arena import arena
from tests.support.crowd import Directory

SESSIONS = 30


@pytest.mark.landing
def test_thirty_sessions_get_their_own_answers_and_no_other() -> None:
    with arena() as place:
        place.start_hub()
        directory = Directory(place, questions=2)

        def start() -> None:
            for number in range(SESSIONS):
                directory.add(number)

        directory.serve([threading.Thread(target=start)])
        assert len(directory.reply_s) == 2 * SESSIONS
        received = place.entries(event="REPLY_RECEIVED")
        injected = place.entries(event="REPLY_INJECTED")
        assert len(injected) == 2 * SESSIONS
        assert len(received) == 2 * SESSIONS
