"""The hub's view of sessions: a host connects, reports changes, loses its connection, ends.

Also recovers the sessions and decisions that a previous hub left.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, Final

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.parts import REMOTE_HOST, HostLink, HubParts, HubSettings
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import own_tool, started_at
from atlasbridge.core.prompt.codec import decode_prompt
from atlasbridge.core.prompt.model import Answer, PromptRecord, PromptState
from atlasbridge.core.schema import read
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.system import lives
from atlasbridge.core.values import frozen

# Detects typing without an answer from this hub: compares what a host typed with the decisions of this home's hubs.
#
# A host reports to each hub what it typed and which process requested it. Keys requested by a process that was never a
# hub here, and answers to prompts that nobody decided, raise an alarm: it is audited, sent to every channel and shown
# by `status`.

_MOST_HUBS: Final = 1000
_MOST_KEPT: Final = 100
RECENT_S: Final = 86_400.0
_KINDS: Final = ("answer", "keys")


@frozen
class TypingReport:
    kind: str  # "answer" or "keys"
    prompt_id: str
    hub: tuple[int, int]  # pid and start time of the process that requested it
    age_s: float


def read_typing_reports(told: Any) -> list[TypingReport]:
    """Parses the report. Invalid items are ignored; hosts of an older version send none."""
    words = []
    for item in told if isinstance(told, list) else ():
        match item:
            case [str(kind), str(prompt_id), int(pid), int(started), int() | float() as age_s] if kind in _KINDS:
                words.append(TypingReport(kind, prompt_id, (pid, started), float(age_s)))
    return words


def find_unasked(
    words: list[TypingReport], hubs: Collection[tuple[int, int]], is_decided: Callable[[str], bool], kept_s: float
) -> list[TypingReport]:
    """Returns the items that nothing explains. If the system does not report start times, only decisions are compared.
    Items older than the store's retention are not checked."""

    def explained(word: TypingReport) -> bool:
        by_hub = 0 in word.hub or word.hub in hubs
        return by_hub and (word.kind == "keys" or word.age_s > kept_s or is_decided(word.prompt_id))

    return [word for word in words if not explained(word)]


class UnaskedTyping:
    def __init__(self, hub: HubParts, kept_s: Callable[[], float]) -> None:
        self._hub = hub
        self._kept_s = kept_s

    def compare(self, session_id: str, told: Any) -> None:
        words = read_typing_reports(told)
        if not words:
            return
        found = find_unasked(
            words, self._hubs, lambda prompt_id: self._is_decided(session_id, prompt_id), self._kept_s()
        )
        for word in found:
            if not any(entry.items() >= _described(session_id, word).items() for entry in self._found):
                self._alarm(session_id, word)

    def recent(self) -> list[dict[str, Any]]:
        """The alarms of the last day, for `status` and `doctor`."""
        oldest = iso(self._hub.clock.wall() - RECENT_S)
        return [entry for entry in self._found if str(entry.get("ts", "")) >= oldest]

    @cached_property
    def _found(self) -> list[dict[str, Any]]:
        return self._hub.ledger.audit_entries(event=AuditEvent.TYPED_UNASKED, newest=True, limit=_MOST_KEPT)

    @cached_property
    def _hubs(self) -> set[tuple[int, int]]:
        """All hubs of this home so far, including this one; while it runs, there is no other."""
        started = self._hub.ledger.audit_entries(event=AuditEvent.HUB_START, newest=True, limit=_MOST_HUBS)
        return {(int(entry.get("pid", 0)), int(entry.get("started", 0))) for entry in started}

    def _is_decided(self, session_id: str, prompt_id: str) -> bool:
        record = self._hub.ledger.prompt(prompt_id)
        if record is None or record.session_id != session_id:
            return False
        return bool(record.decided_by) or self._hub.ledger.reply(prompt_id) is not None

    def _alarm(self, session_id: str, word: TypingReport) -> None:
        described = _described(session_id, word)
        self._hub.ledger.note(AuditEvent.TYPED_UNASKED, **described)
        self._found.append({**described, "ts": iso(self._hub.clock.wall())})
        sentence = self._sentence(session_id, word)
        self._hub.stream.publish("typed.unasked", session_id=session_id, sentence=sentence)
        self._hub.router.notify(sentence)  # in every channel, whatever the session's own settings say

    def _sentence(self, session_id: str, word: TypingReport) -> str:
        session = self._hub.ledger.session(session_id)
        name = f"{session.label or session.tool} ({short_id(session_id)})" if session else short_id(session_id)
        what = "an answer" if word.kind == "answer" else "keys"
        return (
            f"ALARM: session {name} was sent {what} on the word of process {word.hub[0]}, and no decision of this hub "
            "explains it. Look at what the session did, and end it if you did not do that."
        )


def _described(session_id: str, word: TypingReport) -> dict[str, Any]:
    pid, started = word.hub
    return {"session_id": session_id, "kind": word.kind, "prompt": word.prompt_id, "pid": pid, "started": started}


log = logging.getLogger(__name__)

UNRECORDED = ("screen",)  # messages from a host that change nothing in the store
AWAITED = ("typed",)  # messages that a person who answered is waiting for
LOST_POLL_S = 1.0
_WISHES = ("SIGHUP", "SIGINT", "SIGTERM", "SIGKILL", "SIGQUIT")
_WISHED = {int(getattr(signal, name)) for name in _WISHES if hasattr(signal, name)}
REMOTE_LOST_S = 15.0  # an asker over the network has reconnected within this time, or is gone


class SessionLife:
    def __init__(self, hub: HubParts, life: PromptLife, settings: HubSettings) -> None:
        self._hub = hub
        self._life = life
        self.settings = settings
        self.unasked = UnaskedTyping(hub, lambda: self.settings.retention.prompts_s)
        self.on_end: Callable[[SessionRecord], None] = lambda session: None
        # questions without a terminal: people are not notified of their start and end
        self._integrations: set[str] = set()

    def hello(self, link: HostLink, message: dict[str, Any]) -> None:
        """A host connected or reconnected: synchronises the open prompts and the typed answers."""
        session: SessionRecord = read(SessionRecord, message["session"])
        link.stopped = bool(message.get("stopped"))
        link.adapter = _dict_of(message.get("adapter"))
        self._hub.hosts.add(link)
        self._hub.scheduler.cancel(f"lost:{session.session_id}")
        if message.get("integration"):
            self._integrations.add(session.session_id)
        self._record_session(session)
        self._life.use_ttl(session.session_id, message.get("ttl_s"))
        link.send("welcome")
        self._life.escalation.keys_reported(session.session_id, _age(message))
        self.unasked.compare(session.session_id, message.get("words"))
        outcomes = _outcomes(message)
        shown = message.get("open")
        shown_id = str(shown["prompt_id"]) if shown else ""
        for record, answer in self._hub.ledger.unsettled():
            if record.session_id == session.session_id:
                self._settle(link, record, answer, outcomes.get(record.prompt_id, ""), shown_id)
        for record in self._hub.ledger.open_prompts(session.session_id):
            if record.prompt_id == shown_id:
                self._life.watch_again(record, session)
            else:
                self._life.withdraw(record.prompt_id, "moved_on")
        if shown:
            self._ask_again(link, shown_id)
            self._life.raise_prompt(session, shown_id, decode_prompt(shown["prompt"]))

    def is_impostor(self, link: HostLink) -> bool:
        """Whether another process that is alive is this session's host."""
        known = self._hub.ledger.session(link.session_id)
        if known is None or known.state is not SessionState.ACTIVE or known.host_pid == link.host_pid:
            return False
        return _alive(known.host_pid)

    def _ask_again(self, link: HostLink, prompt_id: str) -> None:
        """The host still shows a prompt that ended here while it was disconnected: it gets a new id, unless the host
        typed it."""
        known = self._hub.ledger.prompt(prompt_id)
        if known is not None and known.state in (PromptState.WITHDRAWN, PromptState.FAILED):
            link.send("renew", prompt_id=prompt_id)
        elif known is not None and known.state in (PromptState.EXPIRED, PromptState.CANCELED):
            link.send("closed", prompt_id=prompt_id, outcome=known.state.value)

    def _record_session(self, session: SessionRecord) -> None:
        is_new = self._hub.ledger.session(session.session_id) is None
        self._hub.ledger.start_session(session)
        if is_new:
            self._hub.stream.publish("session.started", **session.to_json())
            if session.session_id not in self._integrations:
                self._hub.router.notify(f"Session started: {session.tool}", session)

    def _settle(self, link: HostLink, record: PromptRecord, answer: Answer | None, outcome: str, shown_id: str) -> None:
        """Finishes a decision that a previous hub, or a lost connection, left unfinished. The host types an id only
        once."""
        if outcome:
            self._life.typed(record.prompt_id, outcome)
        elif record.state is PromptState.INJECTED:
            if record.prompt_id != shown_id:
                self._life.take(record.prompt_id)
        elif answer is not None:
            who = record.decided_by
            link.send("type", prompt_id=record.prompt_id, answer=answer.to_json(), by=who, nonce=record.nonce)
        else:
            self._life.fail(record.prompt_id, "a secret is never stored, and the hub restarted before it was typed")
            link.send("renew", prompt_id=record.prompt_id)

    def handle(self, link: HostLink, message: dict[str, Any]) -> None:
        match message.get("m"):
            case "raise":
                session = self._hub.ledger.session(link.session_id)
                if session is not None:
                    self._life.escalation.keys_reported(link.session_id, _age(message))
                    prompt, detect_s = decode_prompt(message["prompt"]), float(message.get("detect_s") or 0.0)
                    self._life.raise_prompt(session, str(message["prompt_id"]), prompt, detect_s)
            case "withdraw":
                self._for_own_prompt(link, message, self._life.withdraw, "reason")
            case "typed":
                self._for_own_prompt(link, message, self._life.typed, "outcome", "detail")
            case "effect":
                self._for_own_prompt(link, message, self._life.effect, "outcome", "detail")
            case "state":
                self._changed(link, message)
            case "presence":
                self._life.escalation.presence_reported(link.session_id, _age(message))
            case "screen":
                link.screen_arrived(message)
            case "end":
                self.unasked.compare(link.session_id, message.get("words"))
                self._record_last_outcomes(link, _outcomes(message))
                status, last = int(message.get("status", 0)), _dict_of(message.get("last"))
                self.end(link.session_id, int(message["exit_code"]), _ending(status), last)
                link.send("over")
            case other:
                log.warning("a host said something unknown: %r", other)

    def _record_last_outcomes(self, link: HostLink, outcomes: dict[str, str]) -> None:
        """Processes answers that were typed just before the tool ended and not reported separately."""
        for record, _ in self._hub.ledger.unsettled():
            if record.session_id == link.session_id and record.prompt_id in outcomes:
                self._life.typed(record.prompt_id, outcomes[record.prompt_id])

    def _for_own_prompt(self, link: HostLink, message: dict[str, Any], action: Any, *names: str) -> None:
        """Ensures that a host reports only about its own prompts."""
        record = self._hub.ledger.prompt(str(message["prompt_id"]))
        if record is None or record.session_id != link.session_id:
            log.warning("session %s spoke of a prompt that is not its own", link.session_id)
            return
        action(record.prompt_id, *(str(message.get(name, "")) for name in names))

    def _changed(self, link: HostLink, message: dict[str, Any]) -> None:
        known = ("attached", "rows", "cols", "pid")
        fields: dict[str, Any] = {name: message[name] for name in known if name in message}
        if "pid" in fields:
            fields["pid"] = own_tool(int(fields["pid"]), link.host_pid)
            link.tool_started = started_at(fields["pid"])
        if fields:
            self._hub.ledger.update_session(link.session_id, **fields)
        if "stopped" in message:
            link.stopped = fields["stopped"] = bool(message["stopped"])
        if "adapter" in message:
            link.adapter = _dict_of(message["adapter"])
            return
        self._hub.stream.publish("session.changed", session_id=link.session_id, **fields)

    def end(
        self, session_id: str, exit_code: int | None, state: SessionState, output: dict[str, Any] | None = None
    ) -> None:
        session = self._hub.ledger.session(session_id)
        if session is None or session.state is not SessionState.ACTIVE:
            return
        reason = "exited" if state is not SessionState.CRASHED else "host_lost"
        for record in self._hub.ledger.end_session(session_id, exit_code, state, reason, output):
            self._life.close(record, reason)
        self._hub.scheduler.cancel(f"lost:{session_id}")
        self._life.use_ttl(session_id, None)
        self._life.escalation.forget_session(session_id)
        self._hub.stream.publish("session.ended", session_id=session_id, exit_code=exit_code, state=state.value)
        if session_id in self._integrations:
            self._integrations.discard(session_id)
        else:
            how = "without an exit status" if exit_code is None else f"exit {exit_code}"
            self._hub.router.notify(f"Session ended: {session.tool} ({how})", session)
        self.on_end(session)

    def lost(self, link: HostLink) -> None:
        """The connection is lost. Either the host is alive and will reconnect, or it is dead and its session has
        ended."""
        session = self._hub.ledger.session(link.session_id) if self._hub.hosts.remove(link) else None
        if session is not None and session.state is SessionState.ACTIVE:
            self.expect(link.session_id, link.host_pid, self._hub.clock.now() + self._patience_s(link.host_pid))

    def _patience_s(self, host_pid: int) -> float:
        return REMOTE_LOST_S if host_pid == REMOTE_HOST else self.settings.host_lost_s

    def expect(self, session_id: str, host_pid: int, until: float) -> None:
        """Waits for a host to (re)connect. Ends its session when its process is gone or the time is over."""

        def look() -> None:
            if self._hub.hosts.get(session_id) is not None:
                return
            if not _alive(host_pid) or self._hub.clock.now() >= until:
                self.end(session_id, None, SessionState.CRASHED)
            else:
                self.expect(session_id, host_pid, until)

        self._hub.scheduler.set(f"lost:{session_id}", self._hub.clock.now() + LOST_POLL_S, look)

    def recover(self) -> None:
        """After a start of the hub: sessions whose host is gone have crashed; the others are expected to reconnect.

        The ledger has already closed sessions from before a reboot.
        """
        for session in self._hub.ledger.sessions():
            if _alive(session.host_pid):
                until = self._hub.clock.now() + self._patience_s(session.host_pid)
                self.expect(session.session_id, session.host_pid, until)
            else:
                self.end(session.session_id, None, SessionState.CRASHED)


def _dict_of(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _age(message: dict[str, Any]) -> float | None:
    """How long ago a person typed at that session's terminal; None if unknown."""
    age_s = message.get("typed_age_s")
    return None if age_s is None else float(age_s)


def _outcomes(message: dict[str, Any]) -> dict[str, str]:
    return {str(prompt_id): str(outcome) for prompt_id, outcome in message.get("typed", [])}


def _ending(status: int) -> SessionState:
    """A negative status is the signal that ended the tool: requested by somebody, or caused by a crash."""
    if status >= 0:
        return SessionState.COMPLETED
    return SessionState.TERMINATED if -status in _WISHED else SessionState.CRASHED


def _alive(pid: int) -> bool:
    if pid == REMOTE_HOST:
        return True  # a remote process cannot be checked; the timeout decides
    return lives(pid)
