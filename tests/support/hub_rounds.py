"""Kills and restarts the hub over and over while sessions live, and answers something after every restart."""

from __future__ import annotations

import time
from functools import partial

from tests.support.arena import Arena
from tests.support.waiting import wait_for


def kill_and_restart(place: Arena, sessions: int, rounds: int) -> list[float]:
    """How long after each hub's start all sessions' prompts were there again, in seconds."""
    fighters = [place.start_session() for _ in range(sessions)]
    counts = [0] * sessions
    back_s = []
    for turn in range(rounds):
        place.kill_hub()
        place.start_hub()
        began = time.monotonic()
        for fighter, count in zip(fighters, counts, strict=True):
            wait_for(partial(fighter.question, count), f"question {count} after {turn}")
        back_s.append(time.monotonic() - began)
        chosen = turn % sessions
        place.answer(fighters[chosen], counts[chosen], f"round {turn}")
        counts[chosen] += 1
    for number, fighter in enumerate(fighters):
        wanted = [f"round {turn}" for turn in range(rounds) if turn % sessions == number]
        assert fighter.received() == [f"{index}\t{text}" for index, text in enumerate(wanted)], fighter.received()
    assert place.ask("audit.verify")["verdict"]["ok"]
    assert place.ask("status")["sessions"] == sessions
    return back_s
