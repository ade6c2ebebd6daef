"""Kills the hub once in every round of a prompt's life, then asks the tool, the store and the audit log what happened.

A round: a hub that will die at a chosen place starts, the session's question is answered, the next question comes up.
Anyone who finds the hub dead starts a new one, as `run` and the person's next command do.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Self

from tests.support.arena import Arena, Fighter, exists
from tests.support.waiting import wait_for

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.store.ledger import Ledger

ONLY_LOOKS = re.compile(r"(before|after) (stat|fstat|umask|\w*\.?read|fetch\w+) |registry\.")
_BY_CHANCE = re.compile(r"socket\.\w+ for (bootstrap|server\._pour|peer\.read_peer|server\.HubServer\._serve_command)")

_DECIDES = re.compile(r"replies\.|HubSide\._type|Typist\.")  # from the claim to the record that it was typed


@dataclass
class Rounds:
    place: Arena
    fighter: Fighter
    number: int = 0  # the question that is open now
    died_at: Counter[str] = field(default_factory=Counter)
    not_reached: int = 0
    slowest_s: float = 0.0

    @classmethod
    def begin(cls, place: Arena) -> Self:
        place.start_hub()
        fighter = place.start_session()
        wait_for(lambda: fighter.question(0), "the first question")
        place.kill_hub()
        return cls(place, fighter)

    def record_life(self) -> list[str]:
        """Every place of one life, in order; what depends on chance is left out."""
        told = Path(self.place.home.root / "told")
        self.place.start_hub(tell=told)
        self._live()
        self.place.kill_hub()
        places = [line for line in told.read_text().splitlines() if not ONLY_LOOKS.search(line)]
        told.unlink()
        return list(dict.fromkeys(line for line in places if not _BY_CHANCE.search(line)))

    def die_at(self, where: str) -> bool:
        """One round with a death at this place.  False: the hub got through without passing it."""
        victim = self.place.start_hub(die_at=where)
        self._live()
        died = not exists(victim)
        self.died_at[where] += died
        self.not_reached += not died
        self._take_over(died)
        self._judge()
        self.place.kill_hub()
        return died

    def _take_over(self, died: bool) -> None:
        """Who judges must not die over it: a mortal hub that is still there is replaced."""
        if not died:
            self.place.kill_hub()
        if not self.place.listens():
            self.place.start_hub()

    def _live(self) -> None:
        """The open question is answered and the next one is asked, whatever dies meanwhile."""
        began = time.monotonic()
        self.place.answer(self.fighter, self.number, f"answer {self.number}")
        self.number += 1
        self.settle()
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def settle(self) -> None:
        wait_for(self._is_asked, f"question {self.number}")

    def _is_asked(self) -> bool:
        """The next question is open and the last one is settled; the hub is started again should it be dead."""
        if not self.place.listens():
            self.place.start_hub()
        try:
            entries = self.place.entries(event="PROMPT_RESOLVED", newest=True)
            return len(entries) >= min(self.number, 1) and self.fighter.question(self.number) is not None
        except HubUnavailable:
            return False

    def _judge(self) -> None:
        """Tool, store and audit log tell the same story: every question answered once, in order, and recorded first."""
        wanted = [f"{number}\tanswer {number}" for number in range(self.number)]
        assert self.fighter.received() == wanted, f"the tool received {self.fighter.received()[-3:]}"
        verdict = self.place.ask("audit.verify")["verdict"]
        assert verdict["ok"], verdict
        newest = self.place.entries(newest=True, session_id=self.fighter.session_id)[-400:]
        last = f"answer {self.number - 1}"
        story = [entry for entry in newest if entry.get("value") == last]
        assert [entry["event"] for entry in story] == ["REPLY_RECEIVED", "REPLY_INJECTED"], story
        assert len({entry["prompt_id"] for entry in story}) == 1
        fate = [entry["event"] for entry in self.place.entries(prompt_id=story[0]["prompt_id"])]
        fate = [event for event in fate if event != "REPLY_REFUSED"]  # a patient person may ask once too often
        assert fate.count("PROMPT_DETECTED") == 1 and fate[-1] == "PROMPT_RESOLVED", fate

    def judge_all(self) -> dict[str, Any]:
        """The whole history once more, from the files of a home in which nothing runs any more."""
        self.place.kill_hub()
        ledger = Ledger.open(self.place.home.root, SystemClock(), _boot_id())
        try:
            assert ledger.check() == []
            verdict = ledger.prepare_verify()()
            assert verdict.ok, verdict
            typed = [entry["value"] for entry in ledger.audit_entries(event="REPLY_INJECTED", limit=10**6)]
            accepted = [entry["value"] for entry in ledger.audit_entries(event="REPLY_RECEIVED", limit=10**6)]
        finally:
            ledger.close()
        tool = [line.split("\t")[1] for line in self.fighter.received()]
        assert tool == typed == accepted == [f"answer {number}" for number in range(self.number)]
        return {"questions": self.number, "deaths": self.died_at.total(), "places": len(self.died_at)}


def choose(places: list[str], wanted: int, random: Random) -> list[str]:
    """So many places in the order of the life: most of them where an answer is decided and typed, the rest anywhere."""
    heart = [number for number, place in enumerate(places) if _DECIDES.search(place)]
    critical = places[min(heart) : max(heart) + 1] if heart else []
    chosen = set(random.sample(critical, min(len(critical), wanted * 5 // 8)))
    firsts = [place for place in places if place.endswith("#1") and place not in chosen]
    others = [place for place in places if not place.endswith("#1") and place not in chosen]
    random.shuffle(firsts)
    random.shuffle(others)
    chosen.update([*firsts, *others][: wanted - len(chosen)])
    return [place for place in places if place in chosen]


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
