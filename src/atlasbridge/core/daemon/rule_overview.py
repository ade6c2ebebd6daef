"""What a person sees of rules: each of them in one line, and what rules and grants decided, from the audit log."""

from __future__ import annotations

from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.policy.rule import PolicyRule
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.replies import ReplyRecord

MOST = 50
LOOKED_THROUGH = 2000  # replies, for those that a rule or a grant gave
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
    """Newest first."""
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
