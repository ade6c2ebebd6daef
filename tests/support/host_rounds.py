"""Kills session hosts at a chosen place of their life, beside a session that must not notice.

The tool dies with its host: its session ends, its prompt is closed, and what was meant for it is typed nowhere else.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.support.arena import Arena, Fighter
from tests.support.kill_rounds import ONLY_LOOKS
from tests.support.waiting import wait_for

QUESTIONS = 2  # of one life


class HostRounds:
    def __init__(self, place: Arena) -> None:
        self.place = place
        place.start_hub()
        self.bystander = place.start_session(name="bystander")
        self._undisturbed = wait_for(lambda: self.bystander.question(0), "the bystander's question")["prompt_id"]

    def record_life(self) -> list[str]:
        told = Path(self.place.home.root / "told")
        fighter = self.place.start_session(name="recorded", tell=str(told))
        self._live(fighter)
        self.place.ask("kill", session_id=fighter.session_id, force=True)
        wait_for(lambda: not fighter.tool_pids(), "the end of the recorded session")
        return [line for line in dict.fromkeys(told.read_text().splitlines()) if not ONLY_LOOKS.search(line)]

    def die_at(self, where: str, name: str) -> bool:
        """False: the place was not passed in a life of two questions."""
        return self._fight(self.place.start_session(name=name, die_at=where))

    def die_at_call(self, number: int, name: str) -> str:
        """The call it died at, "" when it did not come so far: by count, with `deadly_calls` preloaded."""
        witness = self.place.home.root / f"{name}.died"
        self._fight(self.place.start_session(name=name, place=number, witness=str(witness)))
        return witness.read_text().strip()

    def _fight(self, fighter: Fighter) -> bool:
        died = not self._live(fighter)
        if not died:
            self.place.ask("kill", session_id=fighter.session_id, force=True)
        self._judge(fighter)
        return died

    def _live(self, fighter: Fighter) -> bool:
        """Answer as long as there is somebody to answer; False when the session has died over it."""
        give_up_at = time.monotonic() + 60
        for number in range(QUESTIONS):
            while len(fighter.received()) <= number:
                assert time.monotonic() < give_up_at, f"neither dead nor answered: {fighter.received()}"
                if not fighter.tool_pids():
                    return False
                prompt = fighter.question(number)
                if prompt is not None:
                    self.place.reply(prompt["prompt_id"], f"answer {number}")
                time.sleep(0.005)
        wait_for(lambda: fighter.question(QUESTIONS) or not fighter.tool_pids(), "the next question")
        return bool(fighter.tool_pids())

    def _judge(self, fighter: Fighter) -> None:
        wait_for(lambda: not fighter.tool_pids(), "the tool to die with its host")
        wait_for(lambda: self._is_closed(fighter), "the session to be closed")
        told = fighter.received()
        assert told == [f"{number}\tanswer {number}" for number in range(len(told))], told
        for entry in self.place.entries(event="PROMPT_DETECTED", session_id=fighter.session_id or "none"):
            late = self.place.reply(entry["prompt_id"], "too late")
            assert late is not None and late["reason"] in ("not_open", "expired"), late
        assert self.place.ask("audit.verify")["verdict"]["ok"]
        same = self.bystander.question(0)
        assert self.bystander.received() == [] and same is not None and same["prompt_id"] == self._undisturbed

    def _is_closed(self, fighter: Fighter) -> bool:
        living = [session["session_id"] for session in self.place.ask("sessions")["sessions"]]
        return fighter.session_id not in living and fighter.open_prompt() is None
