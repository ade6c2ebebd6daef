"""The rules that the hub applies: a person's own, those of a trusted project, and temporary grants.

It evaluates a question and returns the answer that a rule types. `core.policy` computes the verdict.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.rule import PREFIX, Case, Grant, Policy, PolicyRule, Say, Verdict, live_grants, own_rules
from atlasbridge.core.prompt.model import Answer, Prompt, Subject, SubjectKind, digest_text
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.prompts import Decider
from atlasbridge.core.system import NO_WAIT, OWN_FILE
from atlasbridge.core.values import frozen, replace

PROJECT_FILE = Path(".atlasbridge") / "policy.toml"
LONGEST_FILE = 65_536
_ASK = Verdict(Say.ASK, "", "no rule speaks of it")


@frozen
class HubRules:
    """The rules that a person wrote, and the related settings."""

    policy: Policy = Policy()
    parse: ShellParser | None = None
    home: str = ""  # for `~`
    tell: str = "digest"  # "digest", "at_once" or "never": how people are notified of decisions by rules
    digest_s: float = 86_400.0
    old_grants: int = 0  # number of grants in the former configuration format, which are ignored
    own: tuple[str, ...] = ()  # paths of these rules and of the hub's settings: no rule lets a tool change them


class RuleService:
    def __init__(self, ledger: Ledger, router: PromptRouter, now: Callable[[], float], rules: HubRules) -> None:
        self._ledger = ledger
        self._router = router
        self._now = now
        self.rules = rules
        self._projects: dict[str, Policy] = {}
        self._told: set[str] = set()
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

    def stands_against(self, grant: Grant, case: Case, session: SessionRecord) -> str:
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
            leads=leads_to,
        )

    def answer(self, prompt: Prompt, verdict: Verdict) -> tuple[Answer, Decider] | None:
        """Returns the answer that a rule types and its decider; None if people are asked."""
        if verdict.verdict is Say.ASK:
            return None
        from atlasbridge.core.policy.choice import once_answer, refusing_answer

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
        """The rules that apply to running sessions."""
        policies = [self._project_policy(session.cwd) for session in self._ledger.sessions()]
        return list(dict.fromkeys(rule for policy in policies for rule in policy.rules))

    def _project_policy(self, cwd: str) -> Policy:
        policy = Policy()
        for folder in (Path(cwd), *Path(cwd).parents) if cwd.startswith("/") else ():
            kept = self._ledger.recall(f"policy.trust:{folder}")
            trusted = json.loads(kept) if kept else {}
            if trusted:
                policy = policy.joined(self._read_project(folder, trusted["digest"], trusted["text"]))
            self._tell_untrusted(folder, trusted.get("digest", ""))
        return policy

    def _read_project(self, folder: Path, digest: str, text: str) -> Policy:
        """Uses the text as it was trusted: later changes of the file have no effect until a person trusts them."""
        if digest not in self._projects:
            from atlasbridge.core.policy.reader import read_policy

            where = str(folder / PROJECT_FILE)
            self._projects[digest] = read_policy(text, self.parse, where=where, home=self.rules.home, tightens=True)
        return self._projects[digest]

    def _tell_untrusted(self, folder: Path, digest: str) -> None:
        try:
            text = _read_small(folder / PROJECT_FILE)
        except (OSError, ValueError):  # ValueError: a name that no file can have
            return
        found = digest_text(text)
        if found != digest and found not in self._told:
            self._told.add(found)
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


def leads_to(path: str) -> str:
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
