"""The operations on rules and grants: past questions to test rules, grants, and the file of a project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.daemon.rules import RuleService
from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import Granted, Refused
from atlasbridge.core.policy.rule import LONGEST_S, Grant, GrantShape, PolicyRule
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.prompts import ReplyRecord
from atlasbridge.core.values import replace

# How rules are listed for people, and which decisions rules and grants made according to the audit log.

MOST = 50
LOOKED_THROUGH = 2000  # replies to search for those given by a rule or a grant
AUTOMATIC = ("rule:", "grant:")


def describe_rule(rule: PolicyRule) -> dict[str, Any]:
    about = [str(rule.command or ""), rule.path, rule.host, rule.kind.value if rule.kind else ""]
    return {
        "name": rule.name,
        "verdict": rule.verdict.value,
        "command": str(rule.command or ""),
        "about": next((text for text in about if text), "everything"),
        "only": [text for text in (rule.tool, rule.folder, rule.label) if text],
        "approvals": rule.approvals,
        "person": list(rule.person),
        "reason": rule.reason,
        "origin": rule.origin,
        "digest": rule.digest,
    }


def list_decisions(ledger: Ledger) -> list[dict[str, Any]]:
    """Returns the decisions, newest first."""
    entries = ledger.audit_entries(limit=LOOKED_THROUGH, event=AuditEvent.REPLY_RECEIVED.value, newest=True)
    own = [entry for entry in entries if str(entry.get("source", "")).startswith(AUTOMATIC)]
    return [_decision(ledger, entry) for entry in reversed(own[-MOST:])]


def _decision(ledger: Ledger, entry: dict[str, Any]) -> dict[str, Any]:
    record = ledger.prompt(str(entry.get("prompt_id", "")))
    session = ledger.session(record.session_id) if record else None
    reply = ledger.reply(record.prompt_id) if record else None
    subject = record.prompt.subject if record else None
    excerpt = record.prompt.excerpt if record else ""
    return {
        "at": entry["ts"],
        "prompt_id": entry.get("prompt_id", ""),
        "source": entry["source"],
        "digest": entry.get("rule_digest", ""),
        "reason": entry.get("reason", ""),
        "allowed": bool(record and reply and agreed(record, reply)),
        "what": (subject.shown if subject else "") or excerpt,
        "tool": session.tool if session else "",
        "folder": session.cwd if session else "",
    }


def agreed(record: PromptRecord, reply: ReplyRecord) -> bool:
    from atlasbridge.core.policy.choice import agrees

    return reply.answer is not None and agrees(record.prompt, reply.answer)


MOST_CASES = 2000


class RuleOperations:
    """`try_again(record, session)` checks whether a prompt that is still open is allowed by a new grant."""

    def __init__(
        self,
        ledger: Ledger,
        hub_api: RuleService,
        now: Callable[[], float],
        try_again: Callable[[PromptRecord, SessionRecord], bool],
    ) -> None:
        self._ledger = ledger
        self._hub_api = hub_api
        self._now = now
        self._try_again = try_again

    def cases(self, prompt_id: str = "", since: str = "") -> list[dict[str, Any]]:
        """Returns past questions, newest first, with the data that a rule can use."""
        if prompt_id:
            record = self._ledger.prompt(prompt_id)
            found = [record] if record else []
        else:
            found = [item for item in self._ledger.history("", MOST_CASES) if item.created_at >= since]
        return [self._case(record) for record in found]

    def _case(self, record: PromptRecord) -> dict[str, Any]:
        session = self._ledger.session(record.session_id)
        subject = record.prompt.subject
        case = self._hub_api.case_of(record.prompt, session) if session else None
        certain = bool(case and case.subject and case.subject.certain)
        return {
            "prompt_id": record.prompt_id,
            "created_at": record.created_at,
            "state": record.state.value,
            "excerpt": record.prompt.excerpt,
            "secret": record.prompt.secret,
            "idle": record.prompt.idle,
            "subject": None if subject is None else {**subject.to_json(), "certain": certain},
            "real_target": case.real_target if case else "",
            "tool": session.tool if session else "",
            "label": session.label if session else "",
            "folder": session.cwd if session else "",
            "decided_by": record.decided_by,
            "answer": record.decided_value,
            "agreed": self._agreed(record),
        }

    def _agreed(self, record: PromptRecord) -> bool | None:
        """Whether a person approved; None if nobody answered, or a rule or the timer did."""
        reply = self._ledger.reply(record.prompt_id)
        if reply is None or reply.answer is None or reply.source != "operator":
            return None
        return agreed(record, reply)

    def in_force(self) -> dict[str, Any]:
        rules = [describe_rule(rule) for rule in self._hub_api.rules.policy.rules]
        return {"rules": rules, "old_grants": self._hub_api.rules.old_grants}

    def overview(self) -> dict[str, Any]:
        """Returns rules, grants and their decisions, newest first, for display."""
        held = [*self._hub_api.rules.policy.rules, *self._hub_api.project_rules()]
        return {
            "rules": [describe_rule(rule) for rule in held],
            "grants": self.grants(),
            "decisions": list_decisions(self._ledger),
            "tell": self._hub_api.rules.tell,
        }

    def grants(self) -> list[dict[str, Any]]:
        """Returns the grants that can still allow something: a session's grant ends with the session."""
        living = {session.session_id for session in self._ledger.sessions()}
        return [self._describe(one) for one in self._ledger.live_grants() if one.session_id in ("", *living)]

    def revoke(self, beginning: str, by: str) -> list[str]:
        return self._ledger.revoke_grants(beginning, by)

    def trust(self, folder: Path, by: str) -> list[str]:
        """Trusts a project's file. Returns the names of its rules, which apply from now on."""
        return [rule.name for rule in self._hub_api.trust(folder, by).rules]

    def distrust(self, folder: Path, by: str) -> bool:
        return self._hub_api.distrust(folder, by)

    def add(
        self, prompt_id: str, by: str, for_s: float | None, times: int | None, folder: bool, preview: bool
    ) -> Granted | Refused:
        record = self._ledger.prompt(prompt_id)
        session = self._ledger.session(record.session_id) if record else None
        if record is None or session is None:
            return Refused("unknown_prompt", "There is no such prompt.")
        made = self.prepare(record, session, by, for_s, times, folder)
        if isinstance(made, str):
            return Refused("cannot_grant", f"This cannot be granted: {made}.")
        grant, words = made
        if preview:
            return words
        kept = self._ledger.add_grant(grant, record.prompt_id, words.words)
        return replace(words, grant_id=kept.grant_id, answered=self._try_again(record, session))

    def prepare(
        self,
        record: PromptRecord,
        session: SessionRecord,
        by: str,
        for_s: float | None,
        times: int | None,
        folder: bool,
    ) -> tuple[Grant, Granted] | str:
        """Returns the grant and its description, with examples of what it would allow and what not."""
        from atlasbridge.core.policy.offer import decide_shape, describe, examples, in_words

        if record.prompt.secret or record.prompt.idle:
            return "a secret or an empty input box is never answered beforehand"
        case = self._hub_api.case_of(record.prompt, session)
        shape = decide_shape(case, self._hub_api.parse)
        if isinstance(shape, str):
            return shape
        in_session = not folder
        if (for_s is not None and for_s <= 0) or (times is not None and times < 1):
            return "it would never hold"
        seconds = LONGEST_S if for_s is None else min(for_s, LONGEST_S)
        grant = Grant(
            new_id(),
            shape,
            session.tool,
            session.session_id if in_session else "",
            case.where,
            self._now() + seconds,
            times,
            by,
        )
        against = self._hub_api.stands_against(grant, case, session)
        if against:
            return against
        good, bad = examples(shape, case, self._hub_api.parse)
        limits = in_words(seconds, grant.uses_left, in_session)
        words = describe(shape)
        refused, reasons = tuple(text for text, _ in bad), tuple(why for _, why in bad)
        return grant, Granted(f"{words}, {limits}", words, tuple(good), refused, reasons)

    def _describe(self, grant: Grant) -> dict[str, Any]:
        return {
            "grant_id": grant.grant_id,
            "allows": _shape_words(grant.shape),
            "tool": grant.tool,
            "session_id": grant.session_id,
            "folder": grant.folder,
            "seconds_left": None if grant.deadline is None else round(grant.deadline - self._now()),
            "uses_left": grant.uses_left,
            "by": grant.by,
            "created_at": grant.created_at,
        }


def _shape_words(shape: GrantShape) -> str:
    from atlasbridge.core.policy.offer import describe

    return describe(shape)
