"""A disk that is full while a session lives: what is not recorded is not typed, keys work on, then all is well."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

from tests.support.arena import Arena, Fighter, recorder
from tests.support.small_disk import SmallDisk
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for


def fill_and_free(place: Arena, disk: SmallDisk, rounds: int) -> Counter[str]:
    """The tool writes what it reads to another disk, so that it shows what was typed."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as elsewhere:
        fighter = Fighter(place, "hub", Path(elsewhere) / "hub.got")
        with Terminal((*ATLASBRIDGE, "run", "--label", "hub", "--", *recorder(fighter)), place.home.root) as terminal:
            terminal.wait_for("Question 0 of")
            (session,) = wait_for(lambda: place.ask("sessions")["sessions"], "the session")
            fighter.session_id = session["session_id"]
            for _ in range(rounds):
                _one_round(place, disk, fighter, terminal, found)
            place.ask("kill", session_id=fighter.session_id, force=True)
    assert place.ask("audit.verify")["verdict"]["ok"] and place.ask("status")["alarm"] == ""
    return found


def _one_round(place: Arena, disk: SmallDisk, fighter: Fighter, terminal: Terminal, found: Counter[str]) -> None:
    number = len(fighter.received())
    terminal.wait_until(lambda: fighter.question(number), f"question {number}")
    prompt = fighter.question(number)
    assert prompt is not None
    recorded, alarms = len(place.entries(event="REPLY_RECEIVED")), place.events("store.alarm")
    disk.fill()
    answer = place.reply(prompt["prompt_id"], f"full {number}")
    assert answer is not None, "the hub died of a full disk"
    accepted = answer["ok"] or answer["message"].startswith("Accepted")  # the claim fitted, its receipt did not
    if accepted:  # what is left of the store's own pages was enough
        found["recorded in spite of it"] += 1
        terminal.wait_until(lambda: len(fighter.received()) > number, "the typed answer")
    else:
        found[f"refused: {answer['reason']}"] += 1
        assert "could not be recorded" in answer["message"], answer
        assert len(fighter.received()) == number, "typed, but not recorded"
        assert place.events("store.alarm")[-1:] != alarms[-1:], "nobody was told"
        found["told"] += 1
        terminal.type(f"by hand {number}\r")  # the keyboard needs no disk
        terminal.wait_until(lambda: len(fighter.received()) > number, "the line typed by hand")
    disk.free()
    count = len(fighter.received())
    place.answer(fighter, count, f"free {count}")
    terminal.wait_until(lambda: len(fighter.received()) > count, "an answer after the disk was freed")
    assert fighter.received()[count:] == [f"{count}\tfree {count}"]
    assert len(place.entries(event="REPLY_RECEIVED")) == recorded + 1 + accepted
