"""One hub after the other, each killed at a random call on a file, a lock or a socket, while one tool goes on asking.

Anyone who takes over finds what the one before left behind, and dies in turn: perhaps over the very recovery.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.arena import DEADLINE_S, Arena, Fighter
from tests.support.kill_rounds import Rounds, kill
from tests.support.waiting import wait_for

from atlasbridge.core import wire
from atlasbridge.core.daemon.request import connect
from atlasbridge.core.errors import HubUnavailable

LONGEST_LIFE = 2_000  # places; a prompt's life, from the hub's start to the next question, has about half of them
_QUESTION = re.compile(r"Question (\d+) of")
_PAUSE_S = 0.04  # before a refused answer is sent again: the session is about to report to its new hub


@dataclass
class Chain:
    place: Arena
    fighter: Fighter
    random: Random
    deaths: Counter[str] = field(default_factory=Counter)

    @classmethod
    def begin(cls, place: Arena, random: Random) -> Chain:
        place.start_hub()
        fighter = place.start_session()
        wait_for(lambda: fighter.question(0), "the first question")
        place.kill_hub()
        return cls(place, fighter, random)

    def die(self) -> None:
        """The next hub lives, serves, and dies."""
        if self.random.random() < 0.1:
            hub = self.place.start_hub()
            killer = threading.Timer(self.random.uniform(0, 0.5), kill, (hub,))
            killer.start()
            self._serve()
            killer.join()
            self.place.kill_hub()
            self.deaths["from outside"] += 1
        else:
            number = self.random.randrange(1, LONGEST_LIFE)
            self.place.start_hub(place=number)
            self._serve()
            self.deaths[self.place.witness.read_text().splitlines()[-1]] += 1
        self.check()

    def check(self) -> None:
        """What the tool has read so far."""
        told = self.fighter.received()
        assert told == [f"{number}\tanswer {number}" for number in range(len(told))], told[-3:]

    def _serve(self) -> None:
        """Answer what is asked until the hub is dead."""
        try:
            with connect(self.place.home, DEADLINE_S) as ear:
                ear.sendall(wire.encode({"op": "events", "follow": True}))
                for event in _listen(ear):
                    if event["event"] == "prompt.raised":
                        self._answer(event)
        except (HubUnavailable, ConnectionError, BrokenPipeError):
            return

    def _answer(self, event: dict[str, Any]) -> None:
        number = int(_QUESTION.findall(event["excerpt"])[-1])
        give_up_at = time.monotonic() + DEADLINE_S
        while len(self.fighter.received()) <= number:
            answer = self.place.reply(event["prompt_id"], f"answer {number}")
            if answer is None or answer["ok"] or answer["reason"] != "unavailable":
                return
            assert time.monotonic() < give_up_at, f"question {number} was never answered: {answer}"
            time.sleep(_PAUSE_S)

    def judge(self) -> dict[str, Any]:
        """A hub that lives settles everything; then tool, store and audit log must tell the same story."""
        self.place.start_hub()
        count = len(self.fighter.received())
        self.place.answer(self.fighter, count, f"answer {count}")
        rounds = Rounds(self.place, self.fighter, number=count + 1)
        rounds.settle()
        return rounds.judge_all()


def _listen(ear: socket.socket) -> Iterator[dict[str, Any]]:
    buffer = wire.LineBuffer()
    while True:
        try:
            data = ear.recv(65536)
        except TimeoutError:
            raise AssertionError("a hub lives, and asks nothing") from None
        if not data:
            return
        yield from buffer.feed(data)


def chain(place: Arena, deaths: int, seed: int) -> tuple[Counter[str], int]:
    """So many deaths in one home; returns at which calls, and how many questions were answered."""
    fight = Chain.begin(place, Random(seed))
    for _ in range(deaths):
        try:
            fight.die()
        except AssertionError as error:
            last = place.witness.read_text().splitlines()[-5:]
            raise AssertionError(f"seed {seed}, process {os.getpid()}, after deaths {last}: {error}") from error
    return fight.deaths, fight.judge()["questions"]
