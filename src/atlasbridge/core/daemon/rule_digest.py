"""Notifies people of the decisions of rules and grants: each one at once, or all of them periodically in one
message."""

from __future__ import annotations

from collections import Counter

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.rule import Verdict
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord

TOLD = "policy.told_at"
LOOK_S = 600.0
MOST = 10_000


class RuleDigest:
    def __init__(self, hub: HubParts) -> None:
        self._hub = hub

    def start(self) -> None:
        rules = self._hub.rules.rules
        if rules.old_grants and not self._hub.ledger.recall("policy.old_grants"):
            self._hub.ledger.remember("policy.old_grants", "told")
            self._hub.router.notify(OLD_GRANTS)
        self.look()

    def look(self) -> None:
        """Reports the decisions since the last time, when the next report is due."""
        self._hub.scheduler.set("rule-digest", self._hub.clock.now() + LOOK_S, self.look)
        rules, ledger, wall = self._hub.rules.rules, self._hub.ledger, self._hub.clock.wall()
        told = ledger.recall(TOLD)
        if not told:
            ledger.remember(TOLD, iso(wall))
        elif rules.tell == "digest" and told <= iso(wall - rules.digest_s):
            sentence = self._sentence(told)
            ledger.remember(TOLD, iso(wall))
            if sentence:
                self._hub.router.notify(sentence)

    def _sentence(self, since: str) -> str:
        entries = self._hub.ledger.audit_entries(limit=MOST, event=AuditEvent.REPLY_RECEIVED.value, newest=True)
        sources = [str(entry.get("source", "")) for entry in entries if str(entry["ts"]) >= since]
        counts = Counter(source for source in sources if source.startswith(("rule:", "grant:")))
        if not counts:
            return ""
        parts = [f"{name} {count} times" if count > 1 else f"{name} once" for name, count in counts.most_common(10)]
        total = sum(counts.values())
        return f"Your rules and grants answered {total} question{'s' if total > 1 else ''}: {', '.join(parts)}."


OLD_GRANTS = (
    "[[grants]] in config.toml is no longer used: it compared what was shown, not what would run, and you are asked."
    " The rules that take its place: atlasbridge policy migrate"
)


def describe_decision(record: PromptRecord, session: SessionRecord, verdict: Verdict) -> str:
    subject = record.prompt.subject
    what = escape_controls(subject.shown if subject else record.prompt.excerpt, keep_lines=False)[:200]
    did = "allowed" if verdict.verdict.value == "allow" else "refused"
    return f"{verdict.rule} {did} in {session.label or session.tool}: {what}"
