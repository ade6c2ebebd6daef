"""The rules that the hub applies: a person's own, those of a trusted project, and temporary grants.

It evaluates a question and returns the answer that a rule types. `core.policy` computes the verdict.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import NO_PROMPT, Caller, Granted, Refused, Trusted
from atlasbridge.core.policy.rule import (
    LONGEST_S,
    PREFIX,
    Case,
    Grant,
    GrantShape,
    Policy,
    PolicyRule,
    Say,
    Verdict,
    live_grants,
    own_rules,
)
from atlasbridge.core.prompt.model import OPEN, Answer, Prompt, PromptRecord, Subject, SubjectKind, digest_text
from atlasbridge.core.routing.policy import decide_allowed
from atlasbridge.core.routing.router import LOCAL, PromptRouter
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.prompts import Decider, ReplyRecord
from atlasbridge.core.system import NO_WAIT, OWN_FILE
from atlasbridge.core.values import frozen, replace

PROJECT_FILE = Path(".atlasbridge") / "policy.toml"
LONGEST_FILE = 65_536
_ASK = Verdict(Say.ASK, "", "no rule matches it")


@frozen
class HubRules:
    policy: Policy = Policy()
    parse: ShellParser | None = None
    home: str = ""  # for `~`
    tell: str = "digest"  # "digest", "at_once" or "never": how people are notified of decisions by rules
    digest_s: float = 86_400.0
    own: tuple[str, ...] = ()  # paths of these rules and of the hub's settings: no rule lets a tool change them


class RuleService:
    def __init__(self, ledger: Ledger, router: PromptRouter, now: Callable[[], float], rules: HubRules) -> None:
        self._ledger = ledger
        self._router = router
        self._now = now
        self.rules = rules
        self._projects: dict[str, Policy] = {}
        self._announced_digests: set[str] = set()
        # runs work that can wait until nobody waits for an answer
        self.later: Callable[[Callable[[], None]], None] = lambda call: call()

    @property
    def parse(self) -> ShellParser:
        """Created when first needed: most hubs have no rules."""
        if self.rules.parse is None:
            self.rules = replace(self.rules, parse=ShellParser())
        assert self.rules.parse is not None
        return self.rules.parse

    def use(self, rules: HubRules) -> None:
        """Applies the rules after a reload; the parser is kept."""
        self.rules = replace(rules, parse=self.rules.parse or rules.parse)

    def get_ready(self) -> None:
        """Prepares what the first verdict needs, only if there are rules."""
        if self.rules.policy.rules:
            self.later(self._warm_up)

    def _warm_up(self) -> None:
        import atlasbridge.core.policy.judge  # noqa: F401  what it knows of programs is read once

        self.parse.warm_up()

    def close(self) -> None:
        if self.rules.parse is not None:
            self.rules.parse.close()

    # verdicts

    def judge(self, prompt: Prompt, session: SessionRecord) -> Verdict:
        policy = self._policy_for(session, prompt.subject)
        if not policy.rules or prompt.secret or prompt.idle:
            return _ASK
        from atlasbridge.core.policy.judge import judge  # imported late, because it loads the knowledge about programs

        verdict = judge(policy, self.case_of(prompt, session), self.parse)
        self.later(self.parse.warm_up)
        return verdict

    def find_objection(self, grant: Grant, case: Case, session: SessionRecord) -> str:
        """Returns why this question would be asked despite such a grant; "" if it would not."""
        from atlasbridge.core.policy.judge import judge

        verdict = judge(self._policy_for(session, case.subject).joined(Policy(grant.rules())), case, self.parse)
        if verdict.verdict is Say.ALLOW:
            return ""
        return f"the rule {verdict.rule!r} is against it" if verdict.rule else verdict.reason

    def case_of(self, prompt: Prompt, session: SessionRecord) -> Case:
        subject = prompt.subject and prompt.subject.restored()
        real, where = "", (subject.folder if subject is not None else "") or session.cwd
        if subject is not None and subject.kind is SubjectKind.EDIT and subject.target:
            paths = (os.path.join(where, os.path.expanduser(path)) for path in subject.targets)
            real = "\n".join(map(_real, paths))
        folder = _real(where) if where.startswith("/") else ""
        folds = folds_case(where) or folds_case(self.rules.home)
        return Case(
            subject,
            session.tool,
            session.label,
            session.cwd,
            self.rules.home,
            real,
            folder,
            folds=folds,
            leads=resolve_path,
        )

    def answer(self, prompt: Prompt, verdict: Verdict) -> tuple[Answer, Decider] | None:
        """Returns the answer that a rule types and its decider; None if people are asked."""
        if verdict.verdict is Say.ASK:
            return None
        from atlasbridge.core.policy.approval import once_answer, refusing_answer

        allows = verdict.verdict is Say.ALLOW
        answer = once_answer(prompt) if allows else refusing_answer(prompt, verdict.reason)
        if answer is None:
            return None
        granted = [name for name in verdict.used if name.startswith(PREFIX)]
        only_granted = bool(granted) and len(granted) == len(verdict.used)
        name = verdict.rule if only_granted else f"rule:{verdict.rule}"
        noted = {"rule": verdict.rule, "rule_digest": verdict.digest, "reason": verdict.reason}
        ids = tuple(grant.removeprefix(PREFIX) for grant in granted)
        return answer, Decider(name, "a rule of yours" if not only_granted else "a grant", name, "", ids, noted)

    def _policy_for(self, session: SessionRecord, subject: Subject | None) -> Policy:
        """A project's rules apply in the folder where the session started, and in the folder where the command would
        run."""
        policy = self.rules.policy
        for folder in dict.fromkeys((session.cwd, subject.folder if subject and subject.folder else session.cwd)):
            policy = policy.joined(self._project_policy(folder))
        for grant in live_grants(self._ledger.live_grants(), session.session_id, self._now()):
            policy = policy.joined(Policy(grant.rules()))
        return policy.joined(own_rules(self.rules.own)) if policy.rules else policy

    # rules of projects

    def project_rules(self) -> list[PolicyRule]:
        policies = [self._project_policy(session.cwd) for session in self._ledger.sessions()]
        return list(dict.fromkeys(rule for policy in policies for rule in policy.rules))

    def _project_policy(self, cwd: str) -> Policy:
        policy = Policy()
        for folder in (Path(cwd), *Path(cwd).parents) if cwd.startswith("/") else ():
            kept = self._ledger.recall(f"policy.trust:{folder}")
            trusted = json.loads(kept) if kept else {}
            if trusted:
                policy = policy.joined(self._read_project(folder, trusted["digest"], trusted["text"]))
            self._announce_untrusted(folder, trusted.get("digest", ""))
        return policy

    def _read_project(self, folder: Path, digest: str, text: str) -> Policy:
        """Uses the text as it was trusted: later changes of the file have no effect until a person trusts them."""
        if digest not in self._projects:
            from atlasbridge.core.policy.reader import read_policy

            where = str(folder / PROJECT_FILE)
            self._projects[digest] = read_policy(text, self.parse, where=where, home=self.rules.home, tightens=True)
        return self._projects[digest]

    def _announce_untrusted(self, folder: Path, digest: str) -> None:
        try:
            text = _read_small(folder / PROJECT_FILE)
        except (OSError, ValueError):  # ValueError: a name that no file can have
            return
        found = digest_text(text)
        if found != digest and found not in self._announced_digests:
            self._announced_digests.add(found)
            state = "has changed" if digest else "is not trusted yet"
            self._router.notify(f"The rules in {folder / PROJECT_FILE} {state}: atlasbridge policy trust {folder}")

    def trust(self, folder: Path, by: str) -> Policy:
        """Raises ConfigError if the file is invalid, or would allow something."""
        from atlasbridge.core.policy.reader import read_policy

        path = folder / PROJECT_FILE
        try:
            text = _read_small(path)
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}", "name the project's folder") from None
        policy = read_policy(text, self.parse, where=str(path), home=self.rules.home, tightens=True)
        digest = digest_text(text)
        self._ledger.remember(f"policy.trust:{folder}", json.dumps({"digest": digest, "text": text}))
        self._ledger.note(AuditEvent.POLICY_TRUSTED, path=str(path), rule_digest=digest, decided_by=by)
        return policy

    def distrust(self, folder: Path, by: str) -> bool:
        known = bool(self._ledger.recall(f"policy.trust:{folder}"))
        if known:
            self._ledger.remember(f"policy.trust:{folder}", "")
            self._ledger.note(AuditEvent.POLICY_TRUSTED, path=str(folder / PROJECT_FILE), rule_digest="", decided_by=by)
        return known


@lru_cache(maxsize=256)
def folds_case(folder: str) -> bool:
    """Whether this file system treats `A` and `a` as the same name, as most on macOS and Windows do."""
    name = next((part for part in reversed(folder.split("/")) if part.swapcase() != part), "")
    if not name:
        return False
    head, _, tail = folder.rpartition(name)
    try:
        return os.path.samefile(folder, head + name.swapcase() + tail)
    except (OSError, ValueError):
        return False


def _real(path: str) -> str:
    """Resolves a path. A name that no file can have is returned unchanged, so that the question is not lost."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def resolve_path(path: str) -> str:
    """Resolves a path, even if it does not exist yet; "" if this hub is not allowed to read it, or if it is a symlink
    loop."""
    try:
        return os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):
        return os.path.realpath(path)  # resolves the existing part
    except (OSError, ValueError):
        return ""


def _read_small(path: Path) -> str:
    """Reads only regular files, without blocking: a tool can put anything there, such as a pipe."""
    fd = os.open(path, os.O_RDONLY | NO_WAIT | OWN_FILE)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        with open(fd, "rb", closefd=False) as file:
            data = file.read(LONGEST_FILE + 1)
    finally:
        os.close(fd)
    if len(data) > LONGEST_FILE:
        raise OSError(errno.EFBIG, "the file is too large")
    return data.decode("utf-8", "replace")


REPORTED_AT = "policy.told_at"
DIGEST_LOOK_S = 600.0
MOST_COUNTED = 10_000


class RuleDigest:
    """Notifies people periodically of the decisions of rules and grants, in one message."""

    def __init__(self, hub: HubParts) -> None:
        self._hub = hub

    def look(self) -> None:
        """Reports the decisions since the last time, when the next report is due."""
        self._hub.scheduler.set("rule-digest", self._hub.clock.now() + DIGEST_LOOK_S, self.look)
        rules, ledger, wall = self._hub.rules.rules, self._hub.ledger, self._hub.clock.wall()
        reported_at = ledger.recall(REPORTED_AT)
        if not reported_at:
            ledger.remember(REPORTED_AT, iso(wall))
        elif rules.tell == "digest" and reported_at <= iso(wall - rules.digest_s):
            sentence = self._sentence(reported_at)
            ledger.remember(REPORTED_AT, iso(wall))
            if sentence:
                self._hub.router.notify(sentence)

    def _sentence(self, since: str) -> str:
        entries = self._hub.ledger.audit_entries(limit=MOST_COUNTED, event=AuditEvent.REPLY_RECEIVED.value, newest=True)
        sources = [str(entry.get("source", "")) for entry in entries if str(entry["ts"]) >= since]
        counts = Counter(source for source in sources if source.startswith(("rule:", "grant:")))
        if not counts:
            return ""
        parts = [f"{name} {count} times" if count > 1 else f"{name} once" for name, count in counts.most_common(10)]
        total = sum(counts.values())
        return f"Your rules and grants answered {total} question{'s' if total > 1 else ''}: {', '.join(parts)}."


def describe_decision(record: PromptRecord, session: SessionRecord, verdict: Verdict) -> str:
    subject = record.prompt.subject
    what = escape_controls(subject.shown if subject else record.prompt.excerpt, keep_lines=False)[:200]
    did = "allowed" if verdict.verdict.value == "allow" else "refused"
    return f"{verdict.rule} {did} in {session.label or session.tool}: {what}"


MOST_DECISIONS = 50
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
    entries = ledger.audit_entries(limit=LOOKED_THROUGH, event=AuditEvent.REPLY_RECEIVED.value, newest=True)
    own = [entry for entry in entries if str(entry.get("source", "")).startswith(AUTOMATIC)]
    return [_decision(ledger, entry) for entry in reversed(own[-MOST_DECISIONS:])]


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
    from atlasbridge.core.policy.approval import agrees

    return reply.answer is not None and agrees(record.prompt, reply.answer)


MOST_CASES = 2000
SHORTEST_ID = 8  # shortest id with which a grant can be revoked


class RuleOperations:
    """The operations of the table on rules and grants. `try_again(record, session)` checks whether a prompt that is
    still open is allowed by a new grant."""

    def __init__(self, hub: HubParts, try_again: Callable[[PromptRecord, SessionRecord], bool]) -> None:
        self._ledger, self._router, self._rules, self._now = hub.ledger, hub.router, hub.rules, hub.clock.now
        self._try_again = try_again

    async def rules(self, caller: Caller) -> dict[str, Any]:
        held = [*self._rules.rules.policy.rules, *self._rules.project_rules()]
        return {
            "rules": [describe_rule(rule) for rule in held],
            "grants": self._live(),
            "decisions": list_decisions(self._ledger),
            "tell": self._rules.rules.tell,
        }

    async def policy_cases(self, caller: Caller, prompt_id: str = "", since: str = "") -> dict[str, Any]:
        """Past questions, newest first, with the data that a rule can use."""
        if prompt_id:
            record = self._ledger.prompt(prompt_id)
            found = [record] if record else []
        else:
            found = [item for item in self._ledger.history("", MOST_CASES) if item.created_at >= since]
        return {"cases": [self._case(record) for record in found]}

    def _case(self, record: PromptRecord) -> dict[str, Any]:
        session = self._ledger.session(record.session_id)
        subject = record.prompt.subject
        case = self._rules.case_of(record.prompt, session) if session else None
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

    async def policy_trust(self, caller: Caller, folder: str, remove: bool = False) -> Trusted | Refused:
        """Trusts a project's file: its rules apply from now on."""
        try:
            if remove:
                return Trusted((), self._rules.distrust(Path(folder), caller.identity))
            return Trusted(tuple(rule.name for rule in self._rules.trust(Path(folder), caller.identity).rules))
        except AtlasBridgeError as error:
            return Refused("bad_configuration", str(error), error.hint)

    async def grants(self, caller: Caller) -> dict[str, Any]:
        return {"grants": self._live()}

    def _live(self) -> list[dict[str, Any]]:
        """The grants that can still allow something: a session's grant ends with the session."""
        living = {session.session_id for session in self._ledger.sessions()}
        return [self._describe(grant) for grant in self._ledger.live_grants() if grant.session_id in ("", *living)]

    async def revoke_grants(self, caller: Caller, grant_id: str = "") -> dict[str, Any]:
        return {"ended": self._ledger.revoke_grants(grant_id, caller.identity)}

    async def revoke_grant(self, caller: Caller, grant_id: str) -> dict[str, Any] | Refused:
        if len(grant_id) >= SHORTEST_ID and self._ledger.revoke_grants(grant_id, caller.identity):
            return {"revoked": True}
        return Refused("unknown_grant", "there is no such grant")

    async def grant(
        self,
        caller: Caller,
        prompt_id: str,
        for_s: float | None = None,
        times: int | None = None,
        folder: bool = False,
        preview: bool = False,
    ) -> Granted | Refused:
        record = self._ledger.prompt(prompt_id)
        session = self._ledger.session(record.session_id) if record else None
        if refusal := self._refuse_grant(record, caller):
            return Refused("cannot_grant", refusal)
        if record is None or session is None:
            return NO_PROMPT
        made = self.prepare(record, session, caller.identity, for_s, times, folder)
        if isinstance(made, str):
            return Refused("cannot_grant", f"This cannot be granted: {made}.")
        grant, words = made
        if preview:
            return words
        kept = self._ledger.add_grant(grant, record.prompt_id, words.words)
        return replace(words, grant_id=kept.grant_id, answered=self._try_again(record, session))

    def _refuse_grant(self, record: PromptRecord | None, caller: Caller) -> str:
        """A grant through a channel counts only while its prompt is open, and only from people who are allowed to
        answer it."""
        if caller.channel == LOCAL:
            return ""
        if record is None or record.state not in OPEN:
            return "This prompt is no longer open."
        remote, policy = self._router.remote(caller.channel), self._router.policy
        allowed = decide_allowed(caller.channel, caller.identity, remote=remote, prompt=record.prompt, settings=policy)
        return "" if allowed else "You are not allowed to answer this prompt."

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
        case = self._rules.case_of(record.prompt, session)
        shape = decide_shape(case, self._rules.parse)
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
        against = self._rules.find_objection(grant, case, session)
        if against:
            return against
        good, bad = examples(shape, case, self._rules.parse)
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
