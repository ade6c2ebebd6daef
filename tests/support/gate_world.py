"""A small world that attacks the reply gate: people, sessions, clocks, restarts, duplicates, forgeries.

It keeps its own, much simpler idea of what must happen and compares after every step.  The host is played by `typed`:
what the world lets it type is counted, because in the end only that matters.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.support.ledgers import NO, SECRET, UNKNOWN, YES_NO, answer_to, make_session

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.gate import UNTRACED, Cancel, decide_reply
from atlasbridge.core.prompt.model import Answer, InboundReply, Prompt, PromptRecord, PromptState, PromptType, Reject
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.values import replace

ALLOWED = ("telegram:1", "slack:T/U1", "cli:local")
STRANGERS = ("telegram:666", "slack:T/U9", "web:nobody")
CHANNEL_OF = {"telegram": "telegram", "slack": "slack", "cli": "local", "web": "web"}


def _is_answer(prompt: Prompt, value: str) -> bool:
    """Of the words that are sent here: a question takes two of them, a line any that is one, an unknown none."""
    if prompt.type is PromptType.TYPE_YES_NO:
        return value in ("y", "n")
    return prompt.type is PromptType.TYPE_FREE_TEXT and "\n" not in value


@dataclass
class Fate:
    """What the world knows of one prompt."""

    record: PromptRecord
    winner: str = ""


class GateWorld:
    def __init__(self, home: Path, random: Random) -> None:
        self.home = home
        self.random = random
        self.clock = ManualClock()
        self.boot = 1
        self.deadlines: dict[str, float] = {}
        self.ledger = self._open()
        self.sessions: list[str] = []
        self.fates: dict[str, Fate] = {}
        self.live: dict[str, Fate] = {}  # those that are open
        self.mail: list[InboundReply] = []
        self.pending: list[tuple[InboundReply, Answer]] = []  # through the gate, not yet claimed
        self.typed: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        for _ in range(3):
            self.start_session()

    def _open(self) -> Ledger:
        return Ledger.open(self.home, self.clock, f"boot-{self.boot}")

    # what happens

    def start_session(self) -> None:
        session = make_session()
        self.ledger.start_session(session)
        self.sessions.append(session.session_id)

    def raise_prompt(self) -> None:
        session_id = self.random.choice(self.sessions)
        prompt: Prompt = self.random.choice((YES_NO, YES_NO, SECRET, UNKNOWN))
        record = self.ledger.raise_prompt(session_id, new_id(), prompt, self.random.choice((5.0, 60.0, 600.0)))
        self._close_session(session_id)
        self.fates[record.prompt_id] = self.live[record.prompt_id] = Fate(record)
        self.deadlines[record.prompt_id] = record.deadline
        if self.random.random() < 0.9:
            self.ledger.tell(record.prompt_id, ())
            self.ledger.deliver_prompt(record.prompt_id, "memory", record.prompt_id[:8])
        for identity in (*self.random.sample(ALLOWED, 2), self.random.choice(STRANGERS)):
            self.mail.append(self._reply(record, identity))
        del self.mail[:-60]

    def _reply(self, record: PromptRecord, identity: str) -> InboundReply:
        channel = CHANNEL_OF[identity.partition(":")[0]]
        value = self.random.choice(("y", "n", "y", "n", "y", "n", "perhaps", "y\nrm -rf", "cancel"))
        reply = answer_to(record, value, channel=channel, identity=identity)
        if self.random.random() < 0.3:  # the short forms that a button carries
            reply = replace(
                reply, prompt_id=record.prompt_id[:8], session_id=record.session_id[:8], nonce=record.nonce[:16]
            )
        return replace(reply, nonce="", session_id="") if self.random.random() < 0.2 else reply

    def reply(self) -> None:
        """Any mail, again and again, in any order, now and then forged."""
        if self.mail:
            reply = self.random.choice(self.mail[-6:] if self.random.random() < 0.6 else self.mail)
            self._through_gate(self._forge(reply) if self.random.random() < 0.3 else reply)

    def _forge(self, reply: InboundReply) -> InboundReply:
        other = self.random.choice(self.mail)
        changes: dict[str, str] = self.random.choice(
            (
                {"session_id": other.session_id},
                {"nonce": other.nonce},
                {"prompt_id": other.prompt_id},
                {"nonce": reply.nonce[:8] or "0"},
                {"nonce": "0" * 32},
                {"session_id": new_id()},
                {"identity": self.random.choice(STRANGERS)},
                {"prompt_id": new_id()},
                {"inside_session": reply.session_id or new_id()},
                {"inside_session": UNTRACED},
            )
        )
        return replace(reply, **changes)

    def _through_gate(self, reply: InboundReply) -> None:
        record = self.ledger.prompt(reply.prompt_id)
        allowed = reply.identity in ALLOWED
        decision = decide_reply(
            record, reply, allowed=allowed, now=self.clock.now(), private=reply.channel in ("local", "web", "memory")
        )
        if isinstance(decision, Reject):
            self.seen[f"refused: {decision.reason.value}"] += 1
            assert not self._must_accept(reply, record), (decision, reply)
            return
        assert self._must_accept(reply, record), reply
        if isinstance(decision, Cancel):
            self._cancel(record)
            return
        self.pending.append((reply, decision))
        if self.random.random() < 0.6:
            self.claim()

    def _cancel(self, record: PromptRecord | None) -> None:
        assert record is not None and self.ledger.cancel(record.prompt_id, "telegram:1") is not None
        self.seen["canceled"] += 1
        del self.live[record.prompt_id]

    def _must_accept(self, reply: InboundReply, record: PromptRecord | None) -> bool:
        fate = self.fates.get(record.prompt_id) if record else None
        if fate is None or not self._alive(fate) or reply.identity not in ALLOWED or reply.inside_session:
            return False
        own = fate.record
        names_match = len(reply.prompt_id) >= 8 and own.prompt_id.startswith(reply.prompt_id)
        session_matches = not reply.session_id or own.session_id.startswith(reply.session_id)
        nonce_fits = not reply.nonce or (len(reply.nonce) >= 16 and own.nonce.startswith(reply.nonce))
        chat = reply.channel in ("telegram", "slack")
        value_fits = reply.value == "cancel" or _is_answer(own.prompt, reply.value)
        return names_match and session_matches and nonce_fits and value_fits and not (own.prompt.secret and chat)

    def _alive(self, fate: Fate) -> bool:
        return fate.record.prompt_id in self.live and self.clock.now() < fate.record.deadline

    def _close_session(self, session_id: str) -> None:
        self.live = {key: fate for key, fate in self.live.items() if fate.record.session_id != session_id}

    def claim(self) -> None:
        """The gate has let it through; by now much may have happened."""
        if not self.pending:
            return
        reply, answer = self.pending.pop(self.random.randrange(len(self.pending)))
        record = self.ledger.prompt(reply.prompt_id)
        assert record is not None
        fate = self.fates[record.prompt_id]
        alive = self._alive(fate)
        won = self.ledger.claim(record.prompt_id, record.session_id, reply.nonce or None, answer, reply.identity)
        assert isinstance(won, PromptRecord) == alive, (won, fate)
        if isinstance(won, PromptRecord):
            self.seen["accepted"] += 1
            fate.winner = reply.identity
            del self.live[record.prompt_id]
        else:
            self.seen[f"lost the race: {won.reason.value}"] += 1

    def type_answers(self) -> None:
        """The host: whatever the store says is to be typed, once."""
        for record, answer in self.ledger.unsettled():
            fate = self.fates[record.prompt_id]
            assert fate.winner and record.prompt_id not in self.live
            if record.state is PromptState.INJECTED:
                self.ledger.resolve(record.prompt_id)
            elif answer is None and self.random.random() < 0.5:
                self.ledger.fail(record.prompt_id, "the secret was lost with the hub")
            elif self.ledger.inject(record.prompt_id) is not None:
                self.typed[record.prompt_id] += 1
                self.seen["typed"] += 1

    def end_prompt(self) -> None:
        if self.live:
            prompt_id = self.random.choice(list(self.live))
            ending = self.random.choice((self.ledger.withdraw, self.ledger.cancel, self.ledger.fail))
            assert ending(prompt_id, "why") is not None
            del self.live[prompt_id]

    def end_session(self) -> None:
        session_id = self.random.choice(self.sessions)
        self.ledger.end_session(session_id, 0, SessionState.COMPLETED)
        self.sessions.remove(session_id)
        self._close_session(session_id)
        self.start_session()

    def pass_time(self) -> None:
        self.clock.advance(self.random.choice((0.5, 0.5, 5.0, 30.0, 400.0)))
        now = self.clock.now()
        for prompt_id in [known for known, at in self.deadlines.items() if at <= now]:
            del self.deadlines[prompt_id]
            expired = self.ledger.expire(prompt_id, NO)
            assert (expired is not None) == (prompt_id in self.live)
            if expired is not None:
                self.seen["expired"] += 1
                fate = self.live.pop(prompt_id)
                fate.winner = "auto:timeout" if fate.record.prompt is YES_NO else ""

    def jump_wall(self) -> None:
        self.clock.jump_wall(self.random.choice((-86_400.0, -1.0, 86_400.0)))

    def restart(self) -> None:
        """Half the time without a word, as after kill -9."""
        if self.random.random() < 0.5:
            self.ledger.close()
        else:
            self.ledger.abandon()
        self.ledger = self._open()
        self.pending.clear()

    def reboot(self) -> None:
        """The steady clock starts again, so an old deadline may lie in the future."""
        self.ledger.close()
        self.boot += 1
        self.clock = ManualClock(now=1.0, wall=self.clock.wall())
        self.deadlines = {}
        self.ledger = self._open()
        self.pending.clear()
        self.sessions.clear()
        self.live.clear()
        for _ in range(3):
            self.start_session()

    # what must hold

    def check(self) -> None:
        open_now = self.ledger.open_prompts()
        assert {record.prompt_id for record in open_now} == self.live.keys()
        assert len({record.session_id for record in open_now}) == len(open_now)

    def check_records(self) -> None:
        """The long look at the end: what was typed, and what store and audit log say of it."""
        assert all(count == 1 for count in self.typed.values())
        assert all(self.fates[prompt_id].winner for prompt_id in self.typed)
        verdict = self.ledger.prepare_verify()()
        assert verdict.ok, verdict.sentence
        assert self.ledger.check() == []
        injected = self.ledger.audit_entries(event="REPLY_INJECTED", limit=10**9)
        assert Counter(entry["prompt_id"] for entry in injected) == self.typed

    def close(self) -> None:
        self.ledger.close()

    STEPS = (
        ("raise_prompt", 12),
        ("reply", 30),
        ("claim", 6),
        ("type_answers", 8),
        ("end_prompt", 3),
        ("end_session", 1),
        ("pass_time", 6),
        ("jump_wall", 1),
        ("restart", 1),
        ("reboot", 0.3),
    )

    def step(self) -> str:
        names, weights = zip(*self.STEPS, strict=True)
        (name,) = self.random.choices(names, weights)
        getattr(self, name)()
        return str(name)
