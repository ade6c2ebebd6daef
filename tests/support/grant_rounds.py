"""Kills the hub once in every round in which a grant is used for the last time, then asks who was allowed what.

A round: a grant with one use left, a hub that will die at a chosen place, a session whose tool asks for what is
granted, a new hub, and the same question once more.  The session host is a fake that types an id only once, as a real
one does.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.arena import Arena
from tests.support.fake_host import FakeHost
from tests.support.waiting import wait_for

from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType, Subject, SubjectKind, SubjectSource

BEGINS = "ledger._live_grants"  # the question has come, and the hub looks what was granted
USES, ORDERS = (
    "executemany for ledger.Ledger.claim",
    "HostLink._send",
)  # it takes the use, and then has the host type the answer
TEXT = "cargo test --workspace"
ASKED = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.99,
    "Do you want to proceed?",
    choices=(Choice("1", "Yes", (Step(b"1"),), default=True), Choice("2", "No", (Step(b"2"),), refuses=True)),
    safe_default="2",
    digest="d",
    line_mode=False,
    subject=Subject(SubjectKind.COMMAND, TEXT, "/somewhere", SubjectSource.HOOK, True, TEXT),
)


class GrantRounds:
    def __init__(self, place: Arena) -> None:
        self.place = place
        self.deaths = 0

    def record_life(self) -> list[str]:
        """Every place at which the last use of a grant is decided, in order."""
        told = Path(self.place.home.root / "told")
        self._round(tell=told)
        places = list(dict.fromkeys(told.read_text().splitlines()))
        used = next(at for at, place in enumerate(places) if USES in place)
        ends = next(at for at, place in enumerate(places) if at > used and ORDERS in place)
        begins = next(at for at, place in enumerate(places) if BEGINS in place)
        return [place for place in places[begins : ends + 1] if "execute" in place or ORDERS in place]

    def die_at(self, where: str) -> None:
        self._round(where)

    def _round(self, where: str = "", tell: Path | None = None) -> None:
        self.place.start_hub()
        host = FakeHost(self.place.home)
        grant = self._grant_two(host)
        self.place.kill_hub()
        self.place.start_hub(die_at=where, tell=tell)
        first = self._ask_a_mortal(host)
        self.place.kill_hub()
        self.place.start_hub()
        host.reconnect()
        if host.open is not None and not self._type_what_was_decided(host, first):
            host.withdraw(first)
        second = host.raise_prompt(ASKED)
        wait_for(lambda: self.place.entries(event="PROMPT_DETECTED", prompt_id=second), "the second question")
        self._type_what_was_decided(host, second)
        self._judge(host, grant, first, second)
        host.end()
        host.close()
        self.place.kill_hub()

    def _grant_two(self, host: FakeHost) -> str:
        """Two uses, one of which answers the question that it was given for."""
        asked = host.raise_prompt(ASKED)
        wait_for(lambda: any(one["prompt_id"] == asked for one in self.place.ask("prompts")["prompts"]), "the question")
        made = self.place.ask("grant.add", prompt_id=asked, times=2)
        assert made["ok"], made
        host.answer_typing()
        (grant,) = self.place.ask("grants")["grants"]
        assert grant["uses_left"] == 1, grant
        return str(grant["grant_id"])

    def _ask_a_mortal(self, host: FakeHost) -> str:
        """Ask for what is granted, and type what the hub says, if it lives to say so."""
        host.reconnect()
        asked = host.raise_prompt(ASKED)
        try:
            host.answer_typing()
        except (ConnectionError, AssertionError):
            self.deaths += 1
        return asked

    def _type_what_was_decided(self, host: FakeHost, prompt_id: str) -> bool:
        """Also what a dead hub has left in the air; False: nobody decided it."""
        if not self.place.entries(event="REPLY_RECEIVED", prompt_id=prompt_id):
            return False
        host.answer_typing()
        return True

    def _judge(self, host: FakeHost, grant: str, first: str, second: str) -> None:
        typed = [prompt_id for prompt_id, _ in host.typed if prompt_id in (first, second)]
        assert len(typed) == len(set(typed)) == 1, f"typed {len(typed)} times with one use left"
        assert self.place.ask("grants")["grants"] == [], "it is used up"
        claimed = [
            entry["prompt_id"]
            for entry in self.place.entries(event="REPLY_RECEIVED", session_id=host.session_id)
            if entry["source"] == f"grant:{grant[:8]}" and entry["prompt_id"] in (first, second)
        ]
        assert claimed == typed, "recorded, and then typed"
        assert self.place.ask("audit.verify")["verdict"]["ok"]
