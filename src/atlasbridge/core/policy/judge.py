"""Computes the verdict of the rules on one question. Deny and ask match generously; allow matches only what is certain.

Rules have no priorities and no order: the strictest rule that applies wins. If none applies, a person is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from unicodedata import category

from atlasbridge.core.patterns import lazy
from atlasbridge.core.policy.grammar import (
    SHELLS,
    WorkFolder,
    program_of,
    read_words,
    reads_elsewhere,
    unwrap,
)
from atlasbridge.core.policy.pattern import (
    absolute,
    any_hosts,
    in_folder,
    is_file,
    is_host,
    match_exactly,
    match_loosely,
    match_word,
    plain_host,
)
from atlasbridge.core.policy.possible_commands import Forms
from atlasbridge.core.policy.rule import PREFIX, Case, Policy, PolicyRule, Say, Verdict
from atlasbridge.core.policy.shell import Parser, ShellDoubt, SimpleCommand, read_script
from atlasbridge.core.prompt.model import Subject, SubjectKind

LONGEST = 16_384  # longest command that can be allowed without a person
_LOOKED_AT = 262_144
_LED = 2000  # words of a command that are resolved on the disk
_SYSTEM = frozenset({"/bin", "/usr/bin", "/sbin", "/usr/sbin"})
_SHELL_OPTION = lazy(r"-[lexu]*c")
_DEPTH = 4


def judge(policy: Policy, case: Case, parse: Parser) -> Verdict:
    try:
        return _judge(policy, case, parse)
    except RecursionError:
        return _ask("it is nested too deeply to be judged")


def _judge(policy: Policy, case: Case, parse: Parser) -> Verdict:
    seen = _Seen(case, parse)
    for verdict in (Say.DENY, Say.ASK):
        holding = [rule for rule in policy.saying(verdict) if seen.holds(rule)]
        if holding:
            return _strict(verdict, holding)
    if seen.overflow:
        return _ask("there is more in it than can be judged")
    return _Permission(policy.saying(Say.ALLOW), case, parse).decide()


def _strict(verdict: Say, rules: list[PolicyRule]) -> Verdict:
    """Of several rules, the one that requires most people; their order does not matter."""
    first = max(rules, key=lambda rule: (rule.approvals, rule.name))
    people = set(first.person)
    for rule in rules:
        people = people & set(rule.person) if people and rule.person else people | set(rule.person)
    said = "refuses it" if verdict is Say.DENY else "asks a person"
    names = ", ".join(sorted(rule.name for rule in rules))
    reason = first.reason or f"the rule {first.name!r} {said}"
    return Verdict(
        verdict,
        first.name,
        reason,
        first.digest,
        first.approvals,
        tuple(sorted(people)),
        (f"{verdict.value}: {names}",),
        proof=next((rule.proof for rule in rules if rule.proof), ""),
    )


class _Seen:
    """The case as strict rules see it. Expensive work is done once, and only when a rule needs it."""

    def __init__(self, case: Case, parse: Parser) -> None:
        self._case = case
        self._parse = parse
        self._made: Forms | None = None

    @property
    def overflow(self) -> bool:
        return self._made is not None and self._made.overflow

    def holds(self, rule: PolicyRule) -> bool:
        subject = self._case.subject
        if not conditions_hold(rule, self._case, self._folders(rule), folds=self._case.folds):
            return False
        if rule.bare:
            return True
        if subject is None or (rule.kind is not None and rule.kind is not subject.kind):
            return False
        if rule.command is None and not rule.path and not rule.host:
            return True
        return self._holds_for(rule, subject)

    def _holds_for(self, rule: PolicyRule, subject: Subject) -> bool:
        if rule.command is not None:
            shape = rule.command
            return subject.kind is SubjectKind.COMMAND and any(match_loosely(shape, words) for words in self._forms())
        if rule.path:
            where, home, folds = self._case.where, self._case.home, self._case.folds
            return any(is_file(rule.path, path, where, home, below=True, folds=folds) for path in self._files(subject))
        return any(is_host(rule.host, host) for host in any_hosts(self._text()) + any_hosts(subject.target))

    def _text(self) -> str:
        subject = self._case.subject
        return "" if subject is None else (subject.text or subject.shown)[:_LOOKED_AT]

    def _forms(self) -> Iterable[tuple[str, ...]]:
        if self._made is None:
            self._made = Forms(self._parse).of_text(self._text())
        return list(self._made.found)

    def _files(self, subject: Subject) -> list[str]:
        if subject.kind is SubjectKind.EDIT:
            return _edited(subject, self._case)
        if subject.kind is not SubjectKind.COMMAND:
            return []
        words = [word for form in self._forms() for word in form]
        found = [*words, *(self._made.files if self._made else ())]
        named = list(dict.fromkeys([*found, *(word.split("=", 1)[1] for word in found if "=" in word)]))
        return named if self._case.leads is None else list(dict.fromkeys([*named, *self._led(named)]))

    def _led(self, names: Sequence[str]) -> list[str]:
        """The link targets of the paths that these words could name."""
        leads, case = self._case.leads, self._case
        paths = [absolute(name, case.where, case.home) for name in names[:_LED] if "\0" not in name]
        return [leads(path) for path in paths if path] if leads is not None else []

    def _folders(self, rule: PolicyRule) -> list[str]:
        """The folder where it runs, and the folders to which its own `cd` would lead."""
        folders = [self._case.where, self._case.folder, self._case.real_folder]
        subject = self._case.subject
        if rule.folder and subject is not None and subject.kind is SubjectKind.COMMAND:
            for words in self._forms():
                if program_of(words[0]) in ("cd", "pushd", "chdir") and len(words) > 1:
                    folders += [absolute(word, self._case.where, self._case.home) for word in words[1:]]
                folders += [
                    absolute(words[place + 1], self._case.where, self._case.home)
                    for place, word in enumerate(words[:-1])
                    if word in ("-C", "--directory", "--prefix", "--cwd", "--chdir")
                ]
        return [folder for folder in folders if folder]


def conditions_hold(rule: PolicyRule, case: Case, folders: Sequence[str], *, folds: bool = False) -> bool:
    """Checks tool, label and folder."""
    if rule.tool and not case.any_tool and not match_word(rule.tool, case.tool):
        return False
    if rule.label and not match_word(rule.label, case.label):
        return False
    return not rule.folder or any(in_folder(rule.folder, folder, case.home, folds=folds) for folder in folders)


class _Permission:
    """Decides whether every part of it is certainly allowed."""

    def __init__(self, rules: tuple[PolicyRule, ...], case: Case, parse: Parser) -> None:
        self._rules = rules
        self._case = case
        self._parse = parse
        self._used: dict[str, PolicyRule] = {}
        self._steps: list[str] = []

    def decide(self) -> Verdict:
        subject = self._case.subject
        if subject is None:
            return _ask("it is not certain what the prompt is about")
        if not self._rules:
            return _ask("no rule matches it")
        why = doubt_subject(subject)
        doubt = ShellDoubt(why) if why else self._doubt(subject)
        if doubt is not None:
            return Verdict(Say.ASK, "", str(doubt), steps=tuple(self._steps), word=doubt.word)
        names = sorted(self._used)
        rule = self._used[names[0]]
        reason = rule.reason or f"every part of it is allowed by {', '.join(repr(name) for name in names)}"
        return Verdict(Say.ALLOW, rule.name, reason, rule.digest, steps=tuple(self._steps), used=tuple(names))

    def _doubt(self, subject: Subject) -> ShellDoubt | None:
        match subject.kind:
            case SubjectKind.COMMAND:
                return self._doubt_script(subject.text, 0, ())
            case SubjectKind.EDIT:
                return self._doubt_edit(subject)
            case SubjectKind.FETCH:
                return self._doubt_fetch(subject)
            case kind:
                return self._take(
                    [rule for rule in self._for_kind(kind) if not (rule.command or rule.path or rule.host)],
                    f"no rule allows a {kind.value}",
                )

    def _for_kind(self, kind: SubjectKind) -> list[PolicyRule]:
        return [
            rule
            for rule in self._rules
            if rule.kind in (None, kind)
            and conditions_hold(rule, self._case, [self._case.where])
            and conditions_hold(rule, self._case, [self._case.real_folder or self._case.where])
        ]

    def _take(self, rules: list[PolicyRule], otherwise: str) -> ShellDoubt | None:
        if not rules:
            return ShellDoubt(otherwise)
        rule = min(rules, key=lambda rule: (rule.name.startswith(PREFIX), rule.name))  # a grant is used last
        self._used[rule.name] = rule
        return None

    def _doubt_edit(self, subject: Subject) -> ShellDoubt | None:
        paths = _edited(subject, self._case)
        if not subject.targets:
            return ShellDoubt("which file would be changed is not known")
        fitting = [
            rule
            for rule in self._for_kind(SubjectKind.EDIT)
            if (rule.path and all(is_file(rule.path, path, self._case.where, self._case.home) for path in paths))
            or (rule.kind is SubjectKind.EDIT and not rule.path)
        ]
        return self._take(fitting, f"no rule allows a change of {', '.join(subject.targets)}")

    def _doubt_fetch(self, subject: Subject) -> ShellDoubt | None:
        host = plain_host(subject.target or subject.text.strip())
        if not host:
            return ShellDoubt("its address is not a plain one")
        fitting = [
            rule
            for rule in self._for_kind(SubjectKind.FETCH)
            if (rule.host and is_host(rule.host, host)) or (rule.kind is SubjectKind.FETCH and not rule.host)
        ]
        return self._take(fitting, f"no rule allows pages of {host}")

    def _doubt_script(self, text: str, depth: int, went: tuple[str, ...]) -> ShellDoubt | None:
        if depth > _DEPTH:
            return ShellDoubt("there are shells within shells")
        script = read_script(text, self._parse)
        if script is None:
            return ShellDoubt("it cannot be parsed as a command of a shell")
        if script.doubts:
            first = script.doubts[0]
            return ShellDoubt(f"it is not certain what would run: there is {first.why}", first.word)
        for command in script.commands:
            doubt = self._doubt_command(SimpleCommand(command.words, (*went, *command.went)), depth)
            if doubt is not None:
                return doubt
        return None if script.commands else ShellDoubt("there is no command")

    def _doubt_command(self, command: SimpleCommand, depth: int) -> ShellDoubt | None:
        words, shown = command.words, " ".join(command.words)
        if not words[0] or not words[0].isascii():
            return ShellDoubt("the program's name has letters that look like others", words[0])
        if reads_elsewhere(words):
            return ShellDoubt(f"what {program_of(words[0])} would run does not stand in the command", words[0])
        fitting, doubt = self._fitting(command)
        if fitting:
            self._steps.append(f"{shown}: {min(rule.name for rule in fitting)}")
            return self._take(fitting, "")
        inner = unwrap(words)
        if inner is not None and not _elsewhere(words[0]):
            if depth > _DEPTH:
                return ShellDoubt("there are too many wrappers")
            return self._doubt_command(SimpleCommand(inner, command.went), depth + 1)
        if _runs_text(words):
            return self._doubt_script(words[2], depth + 1, command.went)
        self._steps.append(f"{shown}: {doubt.why}")
        return doubt

    def _fitting(self, command: SimpleCommand) -> tuple[list[PolicyRule], ShellDoubt]:
        words = command.words
        plain = words if _elsewhere(words[0]) else (words[0].rsplit("/", 1)[-1], *words[1:])
        found, doubt, needs = [], ShellDoubt(f"no rule allows {' '.join(words)!r}"), None
        for rule in self._for_kind(SubjectKind.COMMAND):
            if rule.command is None or (rule.folder and command.went):
                continue
            if _elsewhere(words[0]) and "/" not in rule.command.program:
                continue
            taken = match_exactly(rule.command, words if "/" in rule.command.program else plain)
            if taken is None:
                continue
            # where it runs; the folder is lost if an earlier `cd` led out of it
            place = WorkFolder(self._case.where, leads=self._case.leads).moved(command.went)
            needs = needs or read_words(words, place).needs
            unmet = next((at for at in sorted(taken) if not needs[at].is_met_by(taken[at])), None)
            if unmet is None:
                found.append(rule)
            else:
                name = "the grant" if rule.name.startswith(PREFIX) else repr(rule.name)
                doubt = ShellDoubt(f"the wildcard of {name} does not cover it: {needs[unmet].why}", words[unmet])
        return found, doubt


def _edited(subject: Subject, case: Case) -> list[str]:
    """All files of an edit, by name and by link target: a rule must allow all of them."""
    return [path for path in (*subject.targets, *case.real_target.split("\n")) if path]


def _elsewhere(program: str) -> bool:
    """Whether its path is outside the system folders: it could be another program with that name."""
    return "/" in program and program.rsplit("/", 1)[0] not in _SYSTEM


def _runs_text(words: tuple[str, ...]) -> bool:
    return (
        len(words) == 3
        and not _elsewhere(words[0])
        and program_of(words[0]) in SHELLS - {"busybox", "fish", "csh", "tcsh"}
        and bool(_SHELL_OPTION.fullmatch(words[1]))
    )


def doubt_subject(subject: Subject) -> str:
    """Why no rule can allow it, whatever the rule says; "" if one can."""
    if subject.complete and not subject.text.strip():
        return "it is empty"
    if not subject.complete:
        return "the question is not whole: something of it was cut or scrolled away"
    if not subject.certain:
        return "something of it was hidden before it was shown"
    if len(subject.text) > LONGEST:
        return "it is too long to be allowed without a person"
    return doubt_characters(subject.text) or doubt_characters(subject.target)


def doubt_characters(text: str) -> str:
    for char in text:
        if char < " " and char not in "\t\n":
            return f"it holds a control character (U+{ord(char):04X})"
        if char >= "\x7f" and category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"):
            return f"it holds an invisible character (U+{ord(char):04X})"
    return ""


def _ask(reason: str, steps: tuple[str, ...] = ()) -> Verdict:
    return Verdict(Say.ASK, "", reason, steps=steps)
