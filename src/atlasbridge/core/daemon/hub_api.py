"""What channels and commands can ask of the hub: implements `core.ports.HubApi` with the ledger, the hosts and the
event stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.audit.passkeys import Passkeys, signing_data
from atlasbridge.core.daemon.escalation import CHANNEL
from atlasbridge.core.daemon.parts import HubParts, HubSettings
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.daemon.remote_questions import RemoteQuestions
from atlasbridge.core.daemon.replies import is_still_allowed
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.fleet_wire import digest_open
from atlasbridge.core.home import Home
from atlasbridge.core.operations import Caller, HubAs, Perform
from atlasbridge.core.policy.approval import PROOF
from atlasbridge.core.prompt.codec import encode_keys
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import replace_private
from atlasbridge.core.values import replace

if TYPE_CHECKING:
    from atlasbridge.core.daemon.prompts import PromptLife
    from atlasbridge.core.daemon.scheduled_answers import InstructionQueue, ScheduledAnswers


ESC = b"\x1b"
Offer = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
SECRET_THERE = "A secret is asked for. It is answered at that machine, never here."


class LocalHubApi:
    perform: Perform  # the operations of the table; set by `service`, because they use this class

    def __init__(
        self,
        home: Home,
        hub: HubParts,
        settings: HubSettings,
        life: PromptLife,
        scheduled: ScheduledAnswers,
        queue: InstructionQueue,
        caller_check: CallerCheck,
        questions: RemoteQuestions,
        passkeys: Passkeys,
        read_rules: Callable[[], None],
    ) -> None:
        """`read_rules` reads the rules again from their files."""
        self._home = home
        self.hub = hub
        self.settings = settings
        self.life = life
        self._scheduled = scheduled
        self._queue = queue
        self.questions = questions
        self.passkeys = passkeys
        self._read_rules = read_rules
        self.offers: dict[str, Offer] = {}
        ledger = self.ledger = hub.ledger
        self.prompt, self.open_prompts, self.still_waiting = ledger.prompt, ledger.open_prompts, ledger.still_waiting
        self.deliveries, self.pending_updates = ledger.deliveries, ledger.pending_updates
        self.remember, self.recall = ledger.remember, ledger.recall
        self.history, self.agreed, self.note = ledger.history, ledger.voters, ledger.note
        self.tone, self.tell, self.events = hub.router.tone, hub.router.notify, hub.stream.listen
        self.session_of_peer, self.refuse_inside_session = caller_check.of_connection, caller_check.refuse
        self.mark_asker = caller_check.mark

    @property
    def home(self) -> Path:
        return self._home.root

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        opened = {record.session_id: record.prompt_id for record in self.ledger.open_prompts()}
        return [
            replace(self._with_live_state(session), open_prompt=opened.get(session.session_id, ""))
            for session in self.ledger.sessions(include_ended)
        ]

    def _with_live_state(self, session: SessionRecord) -> SessionRecord:
        link = self.hub.hosts.get(session.session_id)
        return session if link is None else replace(session, stopped=link.stopped, adapter=link.adapter)

    def session(self, session_id: str) -> SessionRecord | None:
        """Finds a session by its full or short id."""
        found = self.ledger.session(session_id)
        return found and self._with_live_state(found)

    def seen_by(self, identity: str, alone: bool = True) -> LocalHubApi:
        """On a single machine, everybody who is allowed to answer can see everything."""
        return self

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        return None

    def folder(self, session_id: str) -> str:
        session = self.ledger.session(session_id)
        return session.cwd if session else ""

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        return self.ledger.accept_update(channel, update_id, payload)

    async def settle_update(self, channel: str, update_id: str) -> None:
        self.ledger.settle_update(channel, update_id)

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        """Returns the current screen, or the last screen of a session that has ended."""
        link = self.hub.hosts.get(session_id)
        if link is not None:
            return await link.capture(styled, self.settings.capture_timeout_s, past)
        kept = self.ledger.last_output(session_id)
        return None if kept is None else _ended_screen(kept, styled, past)

    def by(self, caller: Caller) -> HubAs:
        return HubAs(self.perform, caller)

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        """Types keys outside any prompt. The audit log records the number of keys before they are sent, not the keys
        themselves."""
        link = self.hub.hosts.get(session_id)
        if link is None:
            return False
        if data != ESC and any(PROOF in record.prompt.constraints for record in self.ledger.open_prompts(session_id)):
            return False  # remote keys would approve without the signature that a rule requires
        self.ledger.note(AuditEvent.KEYS_TYPED, session_id=session_id, decided_by=identity, count=len(data))
        link.send("keys", data=data.decode("latin-1"))
        return True

    async def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        link = self.hub.hosts.get(session_id)
        first = None if link is None else await link.capture(True, self.settings.capture_timeout_s)
        if link is None or not first:
            return
        yield first
        queue = link.watch(fps)
        try:
            while (screen := await queue.get()) is not None:
                yield screen
        finally:
            link.unwatch(queue)

    def statistics(self) -> dict[str, Any]:
        return {**self.ledger.statistics(), **self.ledger.figures()}

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        return self.ledger.audit_entries(
            limit=limit, newest=True, before=before or 0, events=events, session_id=session_id, prompt_id=prompt_id
        )[::-1]

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        given = self.ledger.reply(prompt_id)
        if given is None:
            return None
        told = {"kind": given.kind.value, "value": given.value, "by": given.identity}
        return {**told, "at": given.received_at, "source": given.source}

    def offer(self, name: str, answer: Offer) -> None:
        self.offers[name] = answer

    # people: their names, and what they have scheduled

    def login_revoked(self, identity: str) -> None:
        """A login or a token was revoked: everything scheduled by it ends. Otherwise a stolen and revoked phone would
        continue to answer in its owner's name."""
        self._end_scheduled(lambda other: other == identity)

    def drop_work_of_removed_people(self) -> None:
        """Does the same for every identity that is no longer allowed."""
        self._end_scheduled(lambda other: not is_still_allowed(other, self.hub.router.policy))

    def _end_scheduled(self, gone: Callable[[str], bool]) -> None:
        self._scheduled.drop(gone)
        self._queue.drop(gone)
        for grant in [grant for grant in self.ledger.live_grants() if gone(grant.by)]:
            self.ledger.revoke_grants(grant.grant_id, "revoked")
        self.ledger.drop_votes(gone)

    def name_of(self, identity: str) -> str:
        """Returns the name of the person with this identity; "" if nobody has set one."""
        person = self.hub.router.policy.attention.people.find(identity)
        return person.name if person else ""

    def reads(self, identity: str) -> tuple[str, str]:
        person = self.hub.router.policy.attention.people.find(identity)
        return (person.language, person.zone) if person else ("", "")

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        return self.life.escalation.aside(prompt_id, identity)

    def server_contacted(self, carries: bool | None = None) -> None:
        """A message from the server arrived. `carries`: whether the server notifies people in chats."""
        if self.life.escalation.delegation.heard(carries):
            self.life.escalation.look_at_all()

    def server_notifies(self, prompt_ids: Iterable[str]) -> None:
        """The server notifies somebody in a chat about these prompts, so this hub does not have to."""
        self.life.escalation.delegation.asks(prompt_ids)

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return self._scheduled.of_prompt(prompt_id) if prompt_id else self._scheduled.list_all()

    # For the link to a fleet server: the changes to send, in a form that is allowed to leave the machine. A secret's
    # question is sent without its text; a session that excludes the server is not sent at all.

    def meeting(self) -> dict[str, Any]:
        """Returns the data by which the server detects that its store, or this one, was restored from a backup."""
        told_until, newest = self.ledger.membership.reach()
        sessions = [session for session in self.ledger.sessions() if _is_shared(session)]
        known = {session.session_id for session in sessions}
        prompts = [record.prompt_id for record in self.ledger.open_prompts() if record.session_id in known]
        digest = digest_open(prompts, known)
        token = self.ledger.membership.token()
        return {"token": token, "digest": digest, "told_until": told_until, "newest": newest}

    def changes_to_send(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Returns the items that the server has not acknowledged, oldest first, each in its current state."""
        items = []
        for seq, kind, name in self.ledger.membership.pending(after, limit):
            told = self._prompt_item(name) if kind == "prompt" else self._session_item(name)
            items.append({"seq": seq, "kind": kind, "id": name, **told})
        return items

    def can_share_prompt(self, prompt_id: str) -> bool:
        """Whether the server is allowed to know of this prompt and to decide it."""
        record = self.ledger.prompt(prompt_id)
        return record is not None and not record.prompt.secret and self.can_share_session(record.session_id)

    def can_share_session(self, session_id: str) -> bool:
        """Whether people at the server are allowed to watch this session."""
        session = self.ledger.session(session_id)
        return session is not None and _is_shared(session)

    def use_rules(self, path: Path, text: str, digest: str) -> None:
        """Records the server's rules, writes them to `path` and applies them from now on."""
        self.ledger.note(AuditEvent.POLICY_TRUSTED, path=path.name, rule_digest=digest, decided_by=CHANNEL)
        replace_private(path, text)
        self._read_rules()

    def _session_item(self, session_id: str) -> dict[str, Any]:
        session = self.ledger.session(session_id)
        return {"body": None} if session is None or not _is_shared(session) else {"body": session.to_json()}

    def _prompt_item(self, prompt_id: str) -> dict[str, Any]:
        record = self.ledger.prompt(prompt_id)
        session = self.ledger.session(record.session_id) if record else None
        if record is None or session is None or not _is_shared(session):
            return {"body": None}
        told = describe_raised(record, session)
        told = _without_words(told) if record.prompt.secret else {**told, "keys": encode_keys(record.prompt)}
        if "quorum" in record.prompt.constraints:
            told["agreed"] = self.ledger.voters(prompt_id)
        if PROOF in record.prompt.constraints and not record.prompt.secret:
            accepted = [key.key_id for key in self.passkeys.all() if key.person]
            told["signing"] = {**signing_data(record), "keys": accepted}
        at = self.life.escalation.last_key_at(session.session_id) if session.attached else None
        typed = {} if at is None else {"key_age_s": round(max(0.0, self.hub.clock.now() - at), 1)}
        return {"body": told, "ttl_s": self._left_s(record), **typed}

    def _left_s(self, record: PromptRecord) -> float:
        """The remaining time. A duration works even if the clocks of the two machines differ."""
        return round(max(0.0, record.deadline - self.hub.clock.now()), 1)


def _is_shared(session: SessionRecord) -> bool:
    return session.channels is None or CHANNEL in session.channels


def _without_words(told: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"excerpt": SECRET_THERE, "question": SECRET_THERE, "screen": "", "says": "", "choices": []}
    return {**told, **empty, "subject": None, "evidence": [], "decided_value": ""}


def _ended_screen(kept: dict[str, Any], styled: bool, past: bool) -> dict[str, Any]:
    """Converts the stored last output to the format of a host's screen; colours were not stored."""
    lines, above = list(kept["lines"]), list(kept["past"])
    screen: dict[str, Any] = {"rows": kept["rows"], "cols": kept["cols"], "ended": True, "title": "", "modes": []}
    screen |= {"cursor": [0, 0], "cursor_visible": False, "alternate": False}
    if past:
        return screen | {"past": [_unstyled(line) for line in above], "styled": [_unstyled(line) for line in lines]}
    return screen | ({"styled": [_unstyled(line) for line in lines]} if styled else {"lines": lines})


def _unstyled(line: str) -> list[list[str | int | None]]:
    return [[line, None, None, 0]] if line else []
