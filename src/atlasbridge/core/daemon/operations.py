"""Implements the operations of the table: one method each, called by the socket, by HTTP and by chats.

A method receives the caller and the declared parameters, and returns its result or a refusal.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from atlasbridge.core import operations as table
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.daemon.hub_api import LocalHubApi
from atlasbridge.core.daemon.parts import describe_alarm
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.daemon.remote_launch import Launcher
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.daemon.request import own_version
from atlasbridge.core.daemon.rules import RuleOperations
from atlasbridge.core.daemon.scheduled_answers import InstructionQueue, ScheduledAnswers
from atlasbridge.core.daemon.session_processes import CallerCheck, identity_of
from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.operations import BY_NAME, Caller, Operation, Refused
from atlasbridge.core.peer import Peer
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.prompt.redact import redact, redact_rows
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.schema import BadValue, read
from atlasbridge.core.session.model import LONGEST_NAME, SessionRecord, SessionState
from atlasbridge.core.system import lives

log = logging.getLogger(__name__)

LEAST_SIZE = (8, 20)
CHANGES_S = 10.0  # for a look through a session's folder
CHANGES = Path(__file__).parents[1] / "session" / "changes.py"

PUBLIC_EVENTS = frozenset(
    (
        *("prompt.raised", "prompt.routed", "prompt.injected", "prompt.resolved", "prompt.withdrawn", "prompt.expired"),
        *("prompt.canceled", "prompt.failed", "prompt.snoozed", "session.started", "session.ended", "store.alarm"),
        *("reply.received", "reply.refused", "reply.voted", "reply.postponed", "reply.revoked", "store.recovered"),
        *("self.refused", "typed.unasked"),
    )
)
REPORTS_WITHIN = 50  # tenths of a second to wait for a session that was just started
NO_SESSION = Refused("unknown_session", "there is no such session", "list them with: atlasbridge ps")
AWAY = "the session is not connected to the hub"
AGAIN = "try again in a moment"
Answer = dict[str, Any] | AsyncIterator[dict[str, Any]]


class Operations:
    def __init__(
        self,
        hub_api: LocalHubApi,
        caller_check: CallerCheck,
        launchers: Iterable[Launcher],
        replies: ReplyService,
        reload: Callable[[], None],
        stop: Callable[[], None],
        rules: RuleOperations,
        later: ScheduledAnswers,
        queue: InstructionQueue,
        unasked: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        self._hub_api = hub_api
        self._replies = replies
        self._hub, self._ledger, self._escalation = hub_api.hub, hub_api.ledger, hub_api.life.escalation
        self._router, self._stream, self._clock = self._hub.router, self._hub.stream, self._hub.clock
        self._started = self._clock.now()
        self._caller_check = caller_check
        self.use_launchers(launchers)
        self._reload = reload
        self._stop = stop
        self._rules = rules
        self._later = later
        self._queue = queue
        self._unasked = unasked
        self._looking = asyncio.Semaphore(1)

    def use_launchers(self, launchers: Iterable[Launcher]) -> None:
        self._launchers = {launcher.name: launcher for launcher in launchers}

    async def operate(self, message: dict[str, Any], peer: Peer | None = None) -> Answer:
        """Handles one request of the socket. `peer` is the caller's process; without one, only read operations are
        allowed."""
        name = str(message.get("op"))
        operation = BY_NAME.get(name)
        place = escape_controls(str(message.get("place") or "this machine")[:80], keep_lines=False)
        inside_session = "" if operation is not None and operation.inside else self._caller_check.of(peer)
        who = Caller(
            identity_of(inside_session) if inside_session else "cli:local",
            LOCAL,
            place,
            inside_session,
            peer.pid if peer else 0,
        )
        if inside_session and operation is not table.HubOperations.reply:
            # refused before anything about the request is revealed
            return self._refuse_inside_session(who, name).to_json()
        if operation is None or self._method(operation) is None:
            return Refused("unknown_op", f"the hub does not know {name!r}", "are both the same version?").to_json()
        if operation is table.HubOperations.notify and peer is not None:
            who = Caller("cli:local", LOCAL, place, self._caller_check.session_of_asker(peer), peer.pid)
        try:
            given = operation.read(message)
        except BadValue as error:
            return (
                self._refuse_inside_session(who, name) if inside_session else Refused("bad_value", str(error))
            ).to_json()
        if operation is table.HubOperations.reply:
            given["as_keys"] = bool(message.get("as_keys"))  # only available on this machine
        if operation is table.HubOperations.events:
            return self.events(who, **given)
        found = await self.perform(operation, who, given)
        return found.to_json() if isinstance(found, Refused) else {"ok": True, **operation.write(found, "socket")}

    def _method(self, operation: Operation[..., Any]) -> Any:
        return getattr(self, operation.key, None) or getattr(self._rules, operation.key, None)

    async def perform(self, operation: Operation[..., Any], caller: Caller, given: Mapping[str, Any]) -> Any:
        """Returns the result or a refusal. Neither the asker of a question nor a program inside a session can
        decide."""
        if caller.inside_session and not operation.inside and operation is not table.HubOperations.reply:
            return self._refuse_inside_session(caller, operation.name)
        checked = dict(given)
        if "prompt_id" in given and operation.changes and operation is not table.HubOperations.reply:
            record = self._hub_api.prompt(given["prompt_id"])
            if record is None:
                return table.NO_PROMPT
            if self._hub_api.questions.owner(record.session_id) == caller.identity:
                refusal = self._hub_api.refuse_inside_session(record.session_id, operation.name, record.prompt_id)
                return Refused(refusal.reason.value, "The program that asked cannot answer: only a person can decide.")
            checked["prompt_id"] = record.prompt_id
        function = self._method(operation)
        if function is None:
            return Refused("not_here", f"{operation.name} is asked over HTTP only")
        return await function(caller, **checked)

    # prompts and answers

    async def prompts(self, caller: Caller) -> dict[str, Any]:
        opened = [self._prompt(record) for record in self._hub_api.open_prompts()]
        return {"prompts": opened, "still_waiting": self._still_waiting()}

    async def still_waiting(self, caller: Caller) -> dict[str, Any]:
        return {"prompts": self._still_waiting()}

    async def reply(
        self,
        caller: Caller,
        prompt_id: str,
        value: str,
        as_text: bool = False,
        session_id: str = "",
        request_key: str = "",
        passkey: table.PasskeyProof | None = None,  # only the page sets it, because it knows its own addresses
        as_keys: bool = False,
    ) -> dict[str, Any] | Refused:
        how: dict[str, Any] = {"as_text": as_text, "as_keys": as_keys, "request_key": request_key}
        reply = _inbound(caller, prompt_id, value, session_id=session_id, **how)
        outcome = await self._replies.reply(reply)
        if (
            isinstance(outcome, Reject)
            and outcome.reason in (Refusal.SELF, Refusal.NOT_ALLOWED)
            and caller.inside_session
        ):
            record = self._hub_api.prompt(reply.prompt_id)
            return self._refuse_inside_session(caller, "reply", record.prompt_id if record else "")
        if isinstance(outcome, Reject):
            return _refused(outcome)
        said = {"stage": outcome.stage, "message": outcome.sentence, "answer": outcome.answer, "by": outcome.by}
        return {**said, "from": outcome.place, "at": outcome.at, "audit_head": outcome.audit_head}

    async def reply_many(
        self, caller: Caller, prompt_ids: tuple[str, ...], value: str, as_text: bool = False, request_key: str = ""
    ) -> dict[str, Any] | Refused:
        """Answers the prompts one after the other. Each is decided, recorded and reported separately; a refusal does
        not stop the others."""
        if len(set(prompt_ids)) != len(prompt_ids):
            return Refused("bad_value", "Name each prompt once.")
        results = []
        for prompt_id in prompt_ids:
            key = f"{request_key}/{prompt_id}" if request_key else ""
            done = await self.reply(caller, prompt_id, value, as_text, request_key=key)
            said = done.to_json() if isinstance(done, Refused) else {"ok": True, **done}
            results.append({"prompt_id": prompt_id, **said})
        return {"results": results, "answered": sum(1 for result in results if result["ok"])}

    async def again(self, caller: Caller, prompt_id: str) -> table.AskedAgain | Refused:
        outcome = await self._hub_api.life.ask_again(prompt_id)
        if isinstance(outcome, Reject):
            return _refused(outcome)
        return table.AskedAgain(True, outcome.stage, outcome.sentence, outcome.answer)

    async def postpone(
        self, caller: Caller, prompt_id: str, value: str = "", when: str = "", as_text: bool = False
    ) -> table.Kept | Refused:
        return _kept(self._later.postpone(_inbound(caller, prompt_id, value, as_text=as_text), when))

    async def snooze(self, caller: Caller, prompt_id: str, for_s: float) -> table.Kept | Refused:
        return _kept(self._later.snooze(_inbound(caller, prompt_id), for_s))

    async def later(self, caller: Caller) -> dict[str, Any]:
        return {"later": self._later.list_all()}

    async def revoke_later(self, caller: Caller, later_id: str) -> table.Kept | Refused:
        return _kept(self._later.revoke(_inbound(caller), later_id))

    async def queue(self, caller: Caller, session_id: str = "") -> dict[str, Any]:
        return {"queue": self._queue.list_all(session_id)}

    async def enqueue(self, caller: Caller, session_id: str, text: str) -> table.Queued | Refused:
        return _queued(self._queue.add(_inbound(caller, value=text, as_text=True, session_id=session_id)))

    async def dequeue(self, caller: Caller, queue_id: str) -> table.Queued | Refused:
        return _queued(self._queue.remove(_inbound(caller), queue_id))

    # sessions

    async def sessions(self, caller: Caller, all: bool = False, name: str = "", session_id: str = "") -> dict[str, Any]:
        return {"sessions": self._described(_asked_for(name, session_id, self._hub_api.sessions(all)))}

    async def wait_session(self, caller: Caller, session_id: str, patience_s: float = 10.0) -> dict[str, Any]:
        """For a starter that prints the name of a session only once the hub knows it."""

        def is_known() -> bool:  # a session that has already ended is
            return self._ledger.session(session_id) is not None

        await self._hub.hosts.wait(session_id, min(patience_s, 60.0), is_known)
        return {"known": is_known()}

    async def rename(self, caller: Caller, session_id: str, name: str) -> table.Renamed | Refused:
        session = self._hub_api.session(session_id)
        label = escape_controls(name.strip(), keep_lines=False)
        if session is None:
            return NO_SESSION
        if len(label) > LONGEST_NAME:
            return Refused("bad_value", f"a name has at most {LONGEST_NAME} characters")
        if self._ledger.rename_session(session.session_id, label, caller.identity):
            self._send(session, "rename", label=label)  # its host passes the name on to the next hub
            self._stream.publish("session.changed", session_id=session.session_id, label=label)
        return table.Renamed(session.session_id, label, label)

    async def resume(self, caller: Caller, session_id: str) -> table.Resumed | Refused:
        session = self._running(session_id)
        if isinstance(session, Refused):
            return session
        if not self._send(session, "continue"):
            return Refused("not_resumed", AWAY, AGAIN)
        return table.Resumed(session.session_id, True)

    async def lend_size(self, caller: Caller, session_id: str, rows: int = 0, cols: int = 0) -> table.Sized | Refused:
        session = self._running(session_id)
        if isinstance(session, Refused):
            return session
        if session.attached and rows:
            return Refused("attached", "A terminal shows this session: it keeps that terminal's size.")
        if rows and cols and (rows < LEAST_SIZE[0] or cols < LEAST_SIZE[1]):
            return Refused("bad_value", f"A session has at least {LEAST_SIZE[0]} rows of {LEAST_SIZE[1]} letters.")
        if not self._send(session, "size", rows=rows, cols=cols):
            return Refused("unavailable", AWAY, AGAIN)
        return table.Sized(session.session_id, rows, cols)

    async def end(self, caller: Caller, session_id: str, force: bool = False) -> table.Ending | Refused:
        session = self._running(session_id)
        if isinstance(session, Refused):
            return session
        if not self._send(session, "kill", force=force):
            return Refused("not_ended", AWAY, AGAIN)
        return table.Ending(session.session_id, session.pid, True)

    async def screen(
        self, caller: Caller, session_id: str, styled: bool = False, past: bool = False
    ) -> dict[str, Any] | Refused:
        session = self._hub_api.session(session_id)
        screen = await self._hub_api.screen(session.session_id, styled, past) if session else None
        if not screen:
            return Refused("unavailable", "the session does not show its screen", "list them with: atlasbridge ps")
        return {"screen": screen}

    async def changes(self, caller: Caller, session_id: str) -> table.Changes | Refused:
        session = self._hub_api.session(session_id)
        if session is None:
            return NO_SESSION
        async with self._looking:  # one at a time: each reads a whole folder
            found = await read_changes(session.cwd, parse_iso(session.started_at))
        if "files" not in found:
            return Refused("no_folder", str(found.get("error") or "the session's folder cannot be read"))
        files = await asyncio.to_thread(lambda: tuple(_changed_file(file) for file in found["files"]))
        told = {name: found[name] for name in ("count", "added", "removed", "whole", "repository", "commit")}
        return table.Changes(files, **told)

    async def launchers(self, caller: Caller) -> dict[str, Any]:
        known = [session.cwd for session in self._ledger.sessions(True)][::-1] if self._launchers else []
        return {"launchers": [launcher.described(known) for launcher in self._launchers.values()]}

    async def launch(
        self,
        caller: Caller,
        launcher: str,
        folder: str = "",
        arguments: tuple[str, ...] = (),
        name: str = "",
        instruction: str = "",
    ) -> table.Launched | Refused:
        wanted = self._launchers.get(launcher)
        if wanted is None:
            hint = "add it under [[launchers]] in config.toml"
            return Refused("unknown_launcher", f"there is no launcher named {launcher!r}", hint)
        try:
            session_id = await wanted.launch(folder, arguments, name.strip())
        except AtlasBridgeError as error:
            reason = "not_allowed" if isinstance(error, ConfigError) else "unavailable"
            return Refused(reason, str(error), error.hint)
        about = {"session_id": session_id, "decided_by": caller.identity, "launcher": launcher}
        self._ledger.note(AuditEvent.SESSION_LAUNCHED, **about)
        return table.Launched(session_id, await self._instruct(caller, session_id, instruction.strip()))

    async def _instruct(self, caller: Caller, session_id: str, instruction: str) -> str:
        """Queues the first instruction once the session has reported. Returns a sentence about the outcome."""
        if not instruction:
            return ""
        for _ in range(REPORTS_WITHIN):
            if self._hub_api.session(session_id) is not None:
                break
            await asyncio.sleep(0.1)
        return (await self.enqueue(caller, session_id, instruction)).message

    # people

    async def people(self, caller: Caller) -> dict[str, Any]:
        """Everybody who is allowed to answer somewhere: first people with a name, then identities without one."""
        book, allowed = self._router.policy.attention.people, self._router.policy.allowed
        quiet = book.quiet_now(self._clock.wall(), minute_of_day)
        named = [
            {
                "name": person.name,
                "identities": list(person.identities),
                "zone": person.zone,
                "quiet_now": person.name in quiet,
            }
            for person in book.people
        ]
        loose = sorted({one for group in allowed.values() for one in group or () if book.find(one) is None})
        others = [{"name": self._learnt(one), "identities": [one], "zone": "", "quiet_now": False} for one in loose]
        return {"people": named + others, "away": self._is_away}

    def _learnt(self, identity: str) -> str:
        channel, _, person_id = identity.partition(":")
        return self._ledger.recall(f"{channel}.name.{person_id}") or identity

    @property
    def _is_away(self) -> bool:
        return self._escalation.away_until is not None

    async def away(self, caller: Caller, for_s: float | None = None) -> dict[str, Any]:
        self._escalation.go_away(None if for_s is None else self._clock.wall() + for_s)
        return {"away": self._is_away}

    async def here(self, caller: Caller) -> dict[str, Any]:
        self._escalation.come_back()
        return {"away": False}

    async def notify(self, caller: Caller, message: str, label: str = "") -> table.Told | Refused:
        """Sends everybody a message that asks nothing. A message from inside a session is marked as such."""
        text = redact(escape_controls(message))
        if not text.strip():
            return Refused("bad_value", "there is nothing to report")
        who = self._caller_check.mark(label, caller.inside_session)
        self._router.notify(f"{who}: {text}" if who else text, None)
        return table.Told(True, tuple(read(table.ChannelHealth, one) for one in self._router.health()))

    # records

    async def history(
        self, caller: Caller, search: str = "", limit: int = 50, before: str = "", session: str = "", state: str = ""
    ) -> dict[str, Any]:
        found = self._hub_api.history(search, limit, before, session, state)
        return {"prompts": [self._prompt(record) for record in found]}

    async def events(
        self, caller: Caller, follow: bool = False, session: str = "", recent: bool = False
    ) -> AsyncIterator[dict[str, Any]]:
        listener = self._stream.listen()
        try:
            for event in self._past(follow and not recent):
                if str(event.get("session_id", "")).startswith(session):
                    yield event
            if follow:
                async for event in listener:
                    if event["event"] in PUBLIC_EVENTS and str(event.get("session_id", "")).startswith(session):
                        yield event
        finally:
            listener.close()

    async def audit(
        self,
        caller: Caller,
        after: int = 0,
        limit: int = 1000,
        session_id: str = "",
        prompt_id: str = "",
        event: str = "",
        newest: bool = False,
    ) -> dict[str, Any]:
        found = self._ledger.audit_entries(
            after, min(limit, 10_000), session_id=session_id, prompt_id=prompt_id, event=event, newest=newest
        )
        return {"entries": found}

    async def verify_audit(self, caller: Caller, seen: tuple[table.SeenHead, ...] = ()) -> dict[str, Any]:
        return {"verdict": await self._verify(seen)}

    async def _verify(self, seen: tuple[table.SeenHead, ...] = ()) -> table.AuditVerdict:
        """In another thread, because a long log takes time. `seen`: heads that others have kept."""
        return await asyncio.to_thread(self._ledger.prepare_verify(seen))

    async def audit_state(self, caller: Caller) -> table.AuditState:
        verdict = await self._verify()
        return table.AuditState(verdict.count, verdict.head, verdict.ok, verdict.sentence)

    # the hub itself

    async def ping(self, caller: Caller) -> dict[str, Any]:
        return {"pid": os.getpid(), **own_version()}

    async def status(self, caller: Caller) -> dict[str, Any]:
        if self._ledger.alarm:
            self._ledger.flush()  # the alarm can be over, for example when a full disk has space again
        count, head = self._ledger.audit_head()
        return {
            "pid": os.getpid(),
            **own_version(),
            "uptime_s": round(self._clock.now() - self._started, 1),
            "channels": self._router.health(),
            "sessions": len(self._hub_api.sessions()),
            "open_prompts": len(self._hub_api.open_prompts()),
            "at_prompt": sum(record.prompt.idle for record in self._hub_api.open_prompts()),
            "still_waiting": len(self._hub_api.still_waiting()),
            "away": self._is_away,
            "audit_head": {"count": count, "hash": head},
            "answered_ways": self._ledger.ways(),
            "alarm": self._ledger.alarm,
            "unasked": self._unasked(),
        }

    async def session_health(self, caller: Caller) -> dict[str, Any]:
        """All hosts are asked at once, so one that hangs delays no other."""
        sessions = self._hub_api.sessions()
        found = await asyncio.gather(*map(self._look_at, sessions))
        return {"sessions": {one.session_id: health for one, health in zip(sessions, found, strict=True)}}

    async def _look_at(self, session: SessionRecord) -> str:
        link = self._hub.hosts.get(session.session_id)
        if link is None:
            return "its host is not connected to the hub"
        if session.pid > 0 and not lives(session.pid):
            return "its program has ended"
        # a question from a script has no screen
        if link.tty and await link.capture(False, self._hub_api.settings.capture_timeout_s) is None:
            return "its host does not answer"
        return "ok"

    async def reload(self, caller: Caller) -> table.Done | Refused:
        try:
            self._reload()
        except AtlasBridgeError as error:
            return Refused("bad_configuration", str(error), error.hint)
        return table.Done()

    async def stop(self, caller: Caller) -> dict[str, Any]:
        asyncio.get_running_loop().call_later(0.05, self._stop)
        return {"pid": os.getpid()}

    async def page_command(self, caller: Caller, do: str, fields: Mapping[str, Any] | None = None) -> Any:
        """Creates a link, a token or a password. The page handles it; the caller has been identified here."""
        answer = self._hub_api.offers.get("web")
        if answer is None:
            return Refused("unavailable", "the page is not on (yet)", "see: atlasbridge hub status")
        return await answer(do, fields or {})

    def _refuse_inside_session(self, caller: Caller, op: str, prompt_id: str = "") -> Refused:
        """Refuses a program inside a session, or a caller that cannot be identified."""
        return _refused(self._caller_check.refuse(caller.inside_session, op, prompt_id, caller.pid))

    def _send(self, session: SessionRecord, message: str, **fields: Any) -> bool:
        link = self._hub.hosts.get(session.session_id)
        if link is not None:
            link.send(message, **fields)
        return link is not None

    def _running(self, session_id: str) -> SessionRecord | Refused:
        session = self._hub_api.session(session_id)
        if session is not None and session.state is not SessionState.ACTIVE:
            return Refused("unknown_session", "that session has ended", "list them with: atlasbridge ps")
        return session or NO_SESSION

    def _described(self, found: list[SessionRecord]) -> list[dict[str, Any]]:
        oldest = iso(self._clock.wall() - self._hub_api.settings.retention.listed_s)
        waiting = {record.session_id: record.prompt_id for record in self._hub_api.still_waiting()}
        queued = [item["session_id"] for item in self._queue.list_all()]
        return [
            {
                **session.to_json(),
                "still_waiting": waiting.get(session.session_id),
                "queued": queued.count(session.session_id),
            }
            for session in found
            if not session.ended_at or session.ended_at >= oldest
        ]

    def _still_waiting(self) -> list[dict[str, Any]]:
        found = self._hub_api.still_waiting()
        return [
            {**describe_raised(record, self._hub_api.session(record.session_id)), "still_waiting": True}
            for record in found
        ]

    def _prompt(self, record: PromptRecord) -> dict[str, Any]:
        described = describe_raised(record, self._hub_api.session(record.session_id))
        kept = self._hub_api.later(record.prompt_id)
        return {**described, "decided_name": self._hub_api.name_of(record.decided_by), "later": kept}

    def _past(self, only_open: bool) -> list[dict[str, Any]]:
        """With follow, only open prompts. Otherwise the recent events, and the prompts that were open before this hub
        started."""
        opened = [
            {"event": "prompt.raised", "at": record.created_at, **self._prompt(record)}
            for record in self._hub_api.open_prompts()
        ]
        if only_open:
            return self._alarms() + opened
        recent = [event for event in self._stream.recent() if event["event"] in PUBLIC_EVENTS]
        told = {event["prompt_id"] for event in recent if event["event"] == "prompt.raised"}
        return [event for event in opened if event["prompt_id"] not in told] + recent

    def _alarms(self) -> list[dict[str, Any]]:
        alarm = self._ledger.alarm
        return [{"event": "store.alarm", "at": iso(self._clock.wall()), **describe_alarm(alarm)}] if alarm else []


def _inbound(caller: Caller, prompt_id: str = "", value: str = "", **fields: Any) -> InboundReply:
    known: dict[str, Any] = {"inside_session": caller.inside_session, "place": caller.place}
    return InboundReply(caller.channel, caller.identity, prompt_id, value, **known, **fields)


def _refused(outcome: Reject) -> Refused:
    return Refused(outcome.reason.value, outcome.sentence)


def _kept(outcome: Receipt | Reject) -> table.Kept | Refused:
    if isinstance(outcome, Reject):
        return _refused(outcome)
    return table.Kept(outcome.stage, outcome.sentence, outcome.answer)


def _queued(outcome: Receipt | Reject) -> table.Queued | Refused:
    if isinstance(outcome, Reject):
        gone = outcome.reason is Refusal.WRONG_SESSION
        return Refused("unknown_session", outcome.sentence) if gone else _refused(outcome)
    return table.Queued(outcome.stage, outcome.sentence, outcome.answer)


def _asked_for(name: str, session_id: str, found: list[SessionRecord]) -> list[SessionRecord]:
    """All sessions, or those with this name or id, so that a starter does not receive a thousand others."""
    if name:
        found = [session for session in found if (session.label or session.tool).lower() == name.lower()]
    return [session for session in found if not session_id or session.session_id == session_id]


async def read_changes(folder: str, since: float) -> dict[str, Any]:
    """A child of its own reads the folder: it may be large, and a repository may hold anything."""
    words = (sys.executable, "-I", "-S", str(CHANGES), folder, str(since))
    quiet, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    env = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows starts nothing without
    child = await asyncio.create_subprocess_exec(*words, stdin=quiet, stdout=pipe, stderr=quiet, cwd=os.sep, env=env)
    try:
        async with asyncio.timeout(CHANGES_S):
            told, _ = await child.communicate()
        found = json.loads(told)
    except (TimeoutError, ValueError):
        return {}
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    return found if isinstance(found, dict) else {}


def _changed_file(found: dict[str, Any]) -> table.ChangedFile:
    """What leaves the hub is without secrets and without what a terminal or a browser would take for more than text."""
    shown = {**found, "path": escape_controls(redact(str(found["path"])), keep_lines=False)}
    return table.ChangedFile(**{**shown, "diff": escape_controls(redact_rows(str(found.get("diff", "")), ()))})
