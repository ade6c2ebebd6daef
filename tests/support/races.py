"""Races on the live product: a person at the keyboard against a remote answer, and two remote answers.

Each remote answer names the question it is meant for: typed into any other, or mixed with other keys, it shows.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from functools import partial
from random import Random
from typing import Any

from tests.support.arena import Arena, Fighter, recorder
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for


def race_keyboard(place: Arena, rounds: int, random: Random, name: str = "hub") -> Counter[str]:
    """Somebody types at the terminal while somebody else answers remotely."""
    fighter = Fighter(place, name, place.home.root / f"{name}.got")
    outcomes: Counter[str] = Counter()
    with Terminal((*ATLASBRIDGE, "run", "--label", name, "--", *recorder(fighter)), place.home.root) as terminal:
        terminal.wait_for("Question 0 of")
        fighter.session_id = wait_for(lambda: _known_as(place, name), "the session")
        for _ in range(rounds):
            outcomes[_one_race(place, fighter, terminal, random)] += 1
        _judge(fighter, outcomes)
        place.ask("kill", session_id=fighter.session_id, force=True)
    return outcomes


def _one_race(place: Arena, fighter: Fighter, terminal: Terminal, random: Random) -> str:
    number = len(fighter.received())
    terminal.wait_until(lambda: fighter.question(number), f"question {number}")
    prompt = fighter.question(number)
    assert prompt is not None
    said: list[dict[str, Any] | None] = []
    afar = threading.Thread(target=lambda: said.append(place.reply(prompt["prompt_id"], f"for {number}")))
    first, second, third = (random.choice((0.0, 0.001, 0.003, 0.01, 0.03)) for _ in range(3))
    time.sleep(first)
    if random.random() < 0.5:
        afar.start()
        time.sleep(second)
        _type_slowly(terminal, "hub", third)
    else:
        _type_slowly(terminal, "hub", third)
        time.sleep(second)
        afar.start()
    while afar.is_alive():
        terminal.pump(0.01)
    afar.join()
    wanted = number + 1 + bool(said[0] and said[0]["ok"])
    terminal.wait_until(lambda: len(fighter.received()) >= wanted, f"{wanted} lines after {said}")
    return "typed" if said[0] and said[0]["ok"] else f"refused: {said[0]['reason'] if said[0] else 'no hub'}"


def _type_slowly(terminal: Terminal, text: str, pause_s: float) -> None:
    for key in text + "\r":
        terminal.type(key)
        time.sleep(pause_s)


def _judge(fighter: Fighter, outcomes: Counter[str]) -> None:
    lines = [line.split("\t", 1)[1] for line in fighter.received()]
    for number, line in enumerate(lines):
        assert line in ("hub", f"for {number}"), f"question {number} got {line!r}: {lines}"
    assert sum(line != "hub" for line in lines) == outcomes["typed"], (outcomes, lines)
    assert lines.count("hub") == outcomes.total(), "a line of the person at the keyboard was lost or doubled"


def race_two_people(place: Arena, fighter: Fighter, rounds: int) -> Counter[str]:
    """Two answer at the same moment: one wins, the other is told who."""
    outcomes: Counter[str] = Counter()
    for _ in range(rounds):
        number = len(fighter.received())
        prompt = wait_for(partial(fighter.question, number), f"question {number}")
        said: dict[str, dict[str, Any] | None] = {}
        together = threading.Barrier(2)

        def answer(value: str, prompt: dict[str, Any] = prompt, said: Any = said, together: Any = together) -> None:
            together.wait(60)
            said[value] = place.reply(prompt["prompt_id"], value)

        people = [threading.Thread(target=answer, args=(value,)) for value in ("left", "right")]
        for person in people:
            person.start()
        for person in people:
            person.join()
        won = [value for value, answer in said.items() if answer and answer["ok"]]
        lost = [answer for answer in said.values() if answer and not answer["ok"]]
        assert len(won) == len(lost) == 1, said
        told = lost[0]["message"]
        assert "It was already answered with" in told and "by a person at this machine" in told, lost
        wait_for(partial(fighter.has_received, number + 1), "the answer")
        assert fighter.received()[number:] == [f"{number}\t{won[0]}"]
        outcomes[won[0]] += 1
    return outcomes


def _known_as(place: Arena, name: str) -> str:
    found = [item["session_id"] for item in place.ask("sessions")["sessions"] if item["label"] == name]
    return found[0] if found else ""
