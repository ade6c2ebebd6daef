"""What commands may ask: one method per `op`.  Answers are JSON objects, or a stream of events."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.daemon.alarm import describe
from atlasbridge.core.daemon.hub_api import LocalHubApi
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.daemon.rule_operations import LOOKING as LOOKING_AT_RULES
from atlasbridge.core.daemon.rule_operations import RuleOperations
from atlasbridge.core.daemon.session_processes import CallerCheck, identity_of
from atlasbridge.core.daemon.stream import EventStream
from atlasbridge.core.daemon.version_check import own_version
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.peer import Peer
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.routing.router import LOCAL, PromptRouter
from atlasbridge.core.session.model import LONGEST_NAME, SessionRecord
from atlasbridge.core.values import replace

# What commands ask about people and attention: who there is, who is away, what still waits, many answers at once.

LOOKING = frozenset({"people", "still_waiting", "later", "queue"})
MOST_AT_ONCE = 200

ReplyOne = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
Inbound = Callable[[dict[str, Any]], InboundReply]


class AttentionOperations:
    """`reply_one` answers a single prompt, exactly as the operation `reply` does; `inbound` reads what it would say."""

    def __init__(self, hub_api: LocalHubApi, reply_one: ReplyOne, inbound: Inbound) -> None:
        self._hub_api = hub_api
        self._reply_one = reply_one
        self._inbound = inbound

    async def operate(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """None: it is no operation of this kind."""
        match message.get("op"):
            case "people":
                return {"ok": True, "people": self._hub_api.people(), "away": self._hub_api.is_away}
            case "still_waiting":
                return {"ok": True, "prompts": self.still_waiting()}
            case "away":
                for_s = message.get("for_s")
                self._hub_api.go_away(None if for_s is None else max(0.0, float(for_s)))
                return {"ok": True, "away": self._hub_api.is_away}
            case "here":
                self._hub_api.come_back()
                return {"ok": True, "away": False}
            case "ask_again":
                return await self._ask_again(str(message["prompt_id"]))
            case "later":
                return {"ok": True, "later": self._hub_api.later()}
            case "reply_later":
                return _said(self._hub_api.postpone(self._inbound(message), str(message["when"])))
            case "snooze":
                return _said(self._hub_api.snooze(self._inbound(message), float(message["for_s"])))
            case "later.revoke":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._hub_api.revoke_later(reply, str(message["later_id"])))
            case "queue":
                return {"ok": True, "queue": self._hub_api.queued(str(message.get("session_id", "")))}
            case "queue.add":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._hub_api.enqueue(replace(reply, session_id=str(message["session_id"]))))
            case "queue.remove":
                reply = self._inbound({**message, "prompt_id": ""})
                return _said(self._hub_api.dequeue(reply, str(message["queue_id"])))
            case "reply_many":
                return await self._reply_many(message)
            case _:
                return None

    def still_waiting(self) -> list[dict[str, Any]]:
        return [self._describe(record) for record in self._hub_api.still_waiting()]

    def _describe(self, record: PromptRecord) -> dict[str, Any]:
        return {**describe_raised(record, self._hub_api.session(record.session_id)), "still_waiting": True}

    async def _ask_again(self, prompt_id: str) -> dict[str, Any]:
        outcome = await self._hub_api.raise_again(prompt_id)
        if isinstance(outcome, Reject):
            return {"ok": False, "reason": outcome.reason.value, "message": outcome.sentence, "hint": ""}
        return {"ok": True, "stage": outcome.stage, "message": outcome.sentence, "prompt_id": outcome.answer}

    async def _reply_many(self, message: dict[str, Any]) -> dict[str, Any]:
        """One after the other, each decided, recorded and told for itself; one that is refused stops no other."""
        ids = [str(one) for one in message["prompt_ids"]]
        if not 0 < len(ids) <= MOST_AT_ONCE or len(set(ids)) != len(ids):
            sentence = f"Name 1 to {MOST_AT_ONCE} prompts, each once."
            return {"ok": False, "reason": Refusal.BAD_VALUE.value, "message": sentence, "hint": ""}
        key = str(message.get("request_key", ""))
        results = []
        for prompt_id in ids:
            one: dict[str, Any] = {name: message[name] for name in ("value", "as_text", "place") if name in message}
            done = await self._reply_one(
                {**one, "prompt_id": prompt_id, "request_key": f"{key}/{prompt_id}" if key else ""}
            )
            results.append({"prompt_id": prompt_id, **done})
        return {"ok": True, "results": results, "answered": sum(1 for one in results if one["ok"])}


def _said(outcome: Receipt | Reject) -> dict[str, Any]:
    if isinstance(outcome, Reject):
        return {"ok": False, "reason": outcome.reason.value, "message": outcome.sentence, "hint": ""}
    return {"ok": True, "stage": outcome.stage, "message": outcome.sentence, "later_id": outcome.answer}


log = logging.getLogger(__name__)

MAX_NOTICE = 4000
PUBLIC_EVENTS = frozenset(
    {
        "prompt.raised",
        "prompt.routed",
        "prompt.injected",
        "prompt.resolved",
        "prompt.withdrawn",
        "prompt.expired",
        "prompt.canceled",
        "prompt.failed",
        "reply.received",
        "reply.refused",
        "reply.voted",
        "reply.postponed",
        "reply.revoked",
        "prompt.snoozed",
        "session.started",
        "session.ended",
        "store.alarm",
        "store.recovered",
        "self.refused",
        "typed.unasked",
    }
)
OPERATIONS_LOOKING = frozenset(
    {
        "ping",
        "status",
        "sessions",
        "health",
        "session.wait",
        "prompts",
        "history",
        "events",
        "screen",
        "audit",
        "audit.verify",
        "notify",  # a tool may speak to its person
    }
)  # everything else decides something, and is for people alone


class Operations:
    def __init__(
        self,
        hub_api: LocalHubApi,
        replies: ReplyService,
        router: PromptRouter,
        stream: EventStream,
        clock: Clock,
        caller_check: CallerCheck,
        reload: Callable[[], None],
        stop: Callable[[], None],
        rules: RuleOperations,
        unasked: Callable[[], list[dict[str, Any]]] = list,
    ) -> None:
        self._hub_api = hub_api
        self._replies = replies
        self._router = router
        self._stream = stream
        self._clock = clock
        self._started = clock.now()
        self._caller_check = caller_check
        self._reload = reload
        self._stop = stop
        self._attention = AttentionOperations(
            hub_api, lambda message: self._reply(message, "", None), lambda message: self._inbound(message, "")
        )
        self._rules = rules
        self._unasked = unasked

    async def operate(
        self, message: dict[str, Any], peer: Peer | None = None
    ) -> dict[str, Any] | AsyncIterator[dict[str, Any]]:
        """`peer`: who asks; without one nothing can be decided, only looked at."""
        op = str(message.get("op"))
        inside_session = "" if op in OPERATIONS_LOOKING | LOOKING_AT_RULES | LOOKING else self._caller_check.of(peer)
        if inside_session and op != "reply":
            return self._refuse_inside_session(inside_session, op, peer)
        match message.get("op"):
            case "ping":
                return {"ok": True, "pid": os.getpid(), **own_version()}
            case "status":
                return self.status()
            case "sessions":
                found = self._hub_api.sessions(bool(message.get("all")))
                return {"ok": True, "sessions": self._describe(_asked_for(message, found))}
            case "health":
                return {"ok": True, "sessions": await self._hub_api.health()}
            case "prompts":
                return {
                    "ok": True,
                    "prompts": [self._prompt(record) for record in self._hub_api.open_prompts()],
                    "still_waiting": self._attention.still_waiting(),
                }
            case "history":
                found_prompts = self._hub_api.ledger.history(
                    str(message.get("search", "")), int(message.get("limit", 50))
                )
                return {"ok": True, "prompts": [self._prompt(record) for record in found_prompts]}
            case "reply":
                return await self._reply(message, inside_session, peer)
            case "events":
                return self._events(message)
            case "kill":
                return await self._kill(message)
            case "resume":
                return await self._resume(message)
            case "rename":
                return self._rename(message)
            case "screen":
                return await self._screen(message)
            case "audit":
                return self._audit(message)
            case "audit.verify":
                return {"ok": True, "verdict": (await self._hub_api.verify_audit()).to_json()}
            case "notify":
                return self._notify(message, peer)
            case "session.wait":
                return await self._wait_session(message)
            case "reload":
                return self._reload_now()
            case "stop":
                return self._stop_soon()
            case "page":
                return await self._ask_page(message)
            case other:
                done = self._rules.operate(message) or await self._attention.operate(message)
                return done or _refuse("unknown_op", f"the hub does not know {other!r}", "are both the same version?")

    def _refuse_inside_session(
        self, inside_session: str, op: str, peer: Peer | None, prompt_id: str = ""
    ) -> dict[str, Any]:
        """A session's own program, or nobody knows who."""
        refusal = self._caller_check.refuse(inside_session, op, prompt_id, peer.pid if peer else 0)
        return _refuse(refusal.reason.value, refusal.sentence)

    async def _wait_session(self, message: dict[str, Any]) -> dict[str, Any]:
        """For a starter that wants to name a session only when it can be spoken of."""
        session_id = str(message["session_id"])
        await self._hub_api.wait_host(session_id, min(float(message.get("patience_s", 10.0)), 60.0))
        return {"ok": True, "known": self._hub_api.session(session_id) is not None}

    def _stop_soon(self) -> dict[str, Any]:
        """Not before the answer is on its way."""
        asyncio.get_running_loop().call_later(0.05, self._stop)
        return {"ok": True, "pid": os.getpid()}

    def status(self) -> dict[str, Any]:
        if self._hub_api.ledger.alarm:
            self._hub_api.ledger.flush()  # it may be over: a disk that was full has room again
        count, head = self._hub_api.ledger.audit_head()
        return {
            "ok": True,
            "pid": os.getpid(),
            **own_version(),
            "uptime_s": round(self._clock.now() - self._started, 1),
            "channels": self._router.health(),
            "sessions": len(self._hub_api.sessions()),
            "open_prompts": len(self._hub_api.open_prompts()),
            "still_waiting": len(self._hub_api.still_waiting()),
            "away": self._hub_api.is_away,
            "audit_head": {"count": count, "hash": head},
            "answered_ways": self._hub_api.ledger.ways(),
            "alarm": self._hub_api.ledger.alarm,
            "unasked": self._unasked(),
        }

    def _describe(self, found: list[SessionRecord]) -> list[dict[str, Any]]:
        oldest = iso(self._clock.wall() - self._hub_api.settings.retention.listed_s)
        waiting = {record.session_id: record.prompt_id for record in self._hub_api.still_waiting()}
        queued = [item["session_id"] for item in self._hub_api.queued()]
        return [
            {
                **session.to_json(),
                "still_waiting": waiting.get(session.session_id),
                "queued": queued.count(session.session_id),
            }
            for session in found
            if not session.ended_at or session.ended_at >= oldest
        ]

    def _prompt(self, record: Any) -> dict[str, Any]:
        described = describe_raised(record, self._hub_api.session(record.session_id))
        kept = self._hub_api.later(record.prompt_id)
        return {**described, "decided_name": self._hub_api.name_of(record.decided_by), "later": kept}

    async def _reply(self, message: dict[str, Any], inside_session: str, peer: Peer | None) -> dict[str, Any]:
        reply = self._inbound(message, inside_session)
        outcome = await self._replies.reply(reply)
        if isinstance(outcome, Reject) and outcome.reason in (Refusal.SELF, Refusal.NOT_ALLOWED) and inside_session:
            record = self._hub_api.prompt(reply.prompt_id)
            return self._refuse_inside_session(inside_session, "reply", peer, record.prompt_id if record else "")
        if isinstance(outcome, Reject):
            return _refuse(outcome.reason.value, outcome.sentence)
        return {
            "ok": True,
            "stage": outcome.stage,
            "message": outcome.sentence,
            "answer": outcome.answer,
            "by": outcome.by,
            "from": outcome.place,
            "at": outcome.at,
            "audit_head": outcome.audit_head,
        }

    def _inbound(self, message: dict[str, Any], inside_session: str) -> InboundReply:
        return InboundReply(
            channel=LOCAL,
            identity=identity_of(inside_session) if inside_session else "cli:local",
            inside_session=inside_session,
            prompt_id=str(message["prompt_id"]),
            value=str(message.get("value", "")),
            as_text=bool(message.get("as_text")),
            as_keys=bool(message.get("as_keys")),
            place=escape_controls(str(message.get("place") or "this machine")[:80], keep_lines=False),
            request_key=str(message.get("request_key", "")),
        )

    async def _events(self, message: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        wanted = self._session_filter(str(message.get("session") or ""))
        listener = self._stream.listen()
        try:
            for event in self._past(bool(message.get("follow")) and not message.get("recent")):
                if wanted(event):
                    yield event
            if message.get("follow"):
                async for event in listener:
                    if event["event"] in PUBLIC_EVENTS and wanted(event):
                        yield event
        finally:
            listener.close()

    def _past(self, only_open: bool) -> list[dict[str, Any]]:
        """Follow: what is open.  Otherwise: what this hub remembers, and what was open before it started."""
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
        alarm = self._hub_api.ledger.alarm
        return [{"event": "store.alarm", "at": iso(self._clock.wall()), **describe(alarm)}] if alarm else []

    def _session_filter(self, session_id: str) -> Callable[[dict[str, Any]], bool]:
        if not session_id:
            return lambda event: True
        return lambda event: str(event.get("session_id", "")).startswith(session_id)

    async def _kill(self, message: dict[str, Any]) -> dict[str, Any]:
        session = self._hub_api.session(str(message["session_id"]))
        if session is None:
            return _refuse("unknown_session", "there is no such session", "list them with: atlasbridge ps")
        if not await self._hub_api.kill(session.session_id, bool(message.get("force"))):
            return _refuse("unavailable", "the session is not connected to the hub", "try again in a moment")
        return {"ok": True, "session_id": session.session_id, "pid": session.pid}

    async def _resume(self, message: dict[str, Any]) -> dict[str, Any]:
        session = self._hub_api.session(str(message["session_id"]))
        if session is None:
            return _refuse("unknown_session", "there is no such session", "list them with: atlasbridge ps")
        if not await self._hub_api.resume(session.session_id):
            return _refuse("unavailable", "the session is not connected to the hub", "try again in a moment")
        return {"ok": True, "session_id": session.session_id}

    def _rename(self, message: dict[str, Any]) -> dict[str, Any]:
        session = self._hub_api.session(str(message["session_id"]))
        label = escape_controls(str(message.get("label", "")), keep_lines=False)
        if session is None:
            return _refuse("unknown_session", "there is no such session", "list them with: atlasbridge ps")
        if len(label) > LONGEST_NAME:
            return _refuse("bad_value", f"a name has at most {LONGEST_NAME} characters")
        self._hub_api.rename(session.session_id, label, "cli:local")
        return {"ok": True, "session_id": session.session_id, "label": label}

    async def _screen(self, message: dict[str, Any]) -> dict[str, Any]:
        session = self._hub_api.session(str(message["session_id"]))
        screen = await self._hub_api.screen(session.session_id, bool(message.get("styled"))) if session else None
        if not screen:
            return _refuse("unavailable", "the session does not show its screen", "list them with: atlasbridge ps")
        return {"ok": True, "screen": screen}

    async def _ask_page(self, message: dict[str, Any]) -> dict[str, Any]:
        """A link, a token, a password: the page itself answers, here where it is known who asks."""
        answer = self._hub_api.offers.get("web")
        if answer is None:
            return _refuse("unavailable", "the page is not on (yet)", "see: atlasbridge hub status")
        return await answer(message)

    def _audit(self, message: dict[str, Any]) -> dict[str, Any]:
        entries = self._hub_api.ledger.audit_entries(
            after=int(message.get("after", 0)),
            limit=min(int(message.get("limit", 1000)), 10_000),
            session_id=str(message.get("session_id", "")),
            prompt_id=str(message.get("prompt_id", "")),
            event=str(message.get("event", "")),
            newest=bool(message.get("newest")),
        )
        return {"ok": True, "entries": entries}

    def _notify(self, message: dict[str, Any], peer: Peer | None) -> dict[str, Any]:
        """Tell everybody something that asks nothing; what comes from inside a session says so, and is not our word."""
        text = redact(escape_controls(str(message["message"])[:MAX_NOTICE]))
        if not text.strip():
            return _refuse("bad_value", "there is nothing to tell")
        label = self._caller_check.mark(str(message.get("label", "")), self._caller_check.whence(peer) if peer else "")
        self._router.notify(f"{label}: {text}" if label else text, None)
        return {"ok": True, "channels": self._router.health()}

    def _reload_now(self) -> dict[str, Any]:
        try:
            self._reload()
        except AtlasBridgeError as error:
            return _refuse("bad_configuration", str(error), error.hint)
        return {"ok": True}


def _asked_for(message: dict[str, Any], found: list[SessionRecord]) -> list[SessionRecord]:
    """All, or those with a name or an id: who starts beside a thousand others wants to hear of one of them."""
    name, session_id = str(message.get("name") or "").lower(), message.get("session_id")
    if name:
        found = [session for session in found if (session.label or session.tool).lower() == name]
    return [session for session in found if not session_id or session.session_id == session_id]


def _refuse(reason: str, message: str, hint: str = "") -> dict[str, Any]:
    return {"ok": False, "reason": reason, "message": message, "hint": hint}
