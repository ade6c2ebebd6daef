"""Generated commands, judged by a policy and given to a real bash: `python -m tests.torture policy_fuzz [--count N]`.

Whatever the policy allows is run in a shell that only writes down what it would start; each of these must be a command
that a rule allows by its words.  A shell within it is opened in the same way.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from random import Random

from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.pattern import match_exactly
from atlasbridge.core.policy.programs import dangerous_places
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case, Policy, Say
from atlasbridge.core.prompt.subject import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser
from tests.support.bash_jail import BashJail
from tests.support.shell_batch import parse_all
from tests.support.shell_grammar import Grammar

ROUND = 4000
RULES = Path(__file__).parents[1] / "policy" / "fuzz_policy.toml"
_SHELLS = ("sh", "bash", "ash", "dash", "ksh", "zsh")  # damage makes one of another
_TEXT_OPTIONS = ("-c", "-lc")
_ENVIRONMENT = "/nowhere|||| \t\n"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="policy_fuzz")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes; each waits half of its time for others")
    given = parser.parse_args(arguments)
    seen: Counter[str] = Counter()
    rounds = [(given.seed + done // ROUND, min(ROUND, given.count - done)) for done in range(0, given.count, ROUND)]
    failed, counted = 0, 0
    with Pool(given.jobs) as pool:
        for seed, count, wrong, figures in pool.imap_unordered(_round, rounds):
            seen.update(figures)
            counted += count
            if wrong:
                print(f"policy_fuzz: seed {seed} FAILED:", *wrong, sep="\n  ", flush=True)
                failed += 1
            if (counted // ROUND) % 10 == 0:
                print(f"policy_fuzz: {counted} commands so far: {dict(seen)}", flush=True)
    if not failed:
        print(f"policy_fuzz: {given.count} commands, nothing ran that no rule allows: {dict(seen)}")
    return 1 if failed else 0


def _round(given: tuple[int, int]) -> tuple[int, int, list[str], Counter[str]]:
    figures: Counter[str] = Counter()
    return *given, fuzz(*given, figures), figures


def fuzz(seed: int, count: int, seen: Counter[str]) -> list[str]:
    """What ran though no rule allows it."""
    grammar = Grammar(Random(seed))
    commands = list(dict.fromkeys(text for text in (grammar.line() for _ in range(count)) if "\0" not in text))
    parser = ShellParser()
    policy = read_policy(RULES.read_text(encoding="utf-8"), parser)
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        (Path(folder) / "parse").mkdir()
        (Path(folder) / "jail").mkdir()
        trees = parse_all(commands, Path(folder) / "parse")
        allowed = [
            text for text in commands if _allows(policy, text, lambda one: trees[one] if one in trees else parser(one))
        ]
        seen.update(judged=len(commands), unparsable=sum(tree is None for tree in trees.values()), allowed=len(allowed))
        wrong = started_unasked(BashJail(Path(folder) / "jail"), policy, allowed, seen)
    parser.close()
    return wrong


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _allows(policy: Policy, text: str, parse: object) -> bool:
    subject = Subject(SubjectKind.COMMAND, text, "/x", SubjectSource.HOOK, True, text)
    return judge(policy, Case(subject, "claude", "", "/x", "/home/x"), parse).verdict is Say.ALLOW  # type: ignore[arg-type]


def started_unasked(jail: BashJail, policy: Policy, allowed: list[str], seen: Counter[str]) -> list[str]:
    """What a real bash started for these commands that no rule allows."""
    wrong, pending = [], [(text, text) for text in allowed]
    while pending:
        started = jail.run([text for _, text in pending])
        inner = []
        for (origin, _), programs in zip(pending, started, strict=True):
            for environment, *words in programs:
                seen["started"] += 1
                if environment != _ENVIRONMENT:
                    wrong.append(f"{origin!r} ran {words} with another environment: {environment!r}")
                verdict = _matched(policy, words)
                if verdict is None:
                    wrong.append(f"{origin!r} ran {words}")
                elif verdict:
                    inner.append((origin, verdict))
        pending = inner
    return wrong


def _matched(policy: Policy, words: list[str]) -> str | None:
    """None: no rule allows this very command; a text: what it hands to another shell."""
    if words and words[0].startswith("/bin/"):
        words = [words[0].removeprefix("/bin/"), *words[1:]]
    for rule in policy.rules:
        taken = match_exactly(rule.command, words) if rule.command is not None and words else None
        if taken is not None and not taken & dangerous_places(words):
            return ""
    match words:
        case [shell, option, text] if shell in _SHELLS and option in _TEXT_OPTIONS:
            return text
        case ["nice", *rest]:
            return _matched(policy, _after_options(rest, ("-n",)))
        case ["stdbuf", *rest]:
            return _matched(policy, _after_options(rest, ("-i", "-o", "-e")))
        case ["timeout", *rest]:
            return _matched(policy, _after_options(rest, ("-k", "-s"))[1:])
        case [("env" | "command" | "builtin" | "exec" | "time"), *rest] if rest:
            return _matched(policy, rest)
    return None


def _after_options(words: list[str], takes: tuple[str, ...]) -> list[str]:
    """What such a program runs, as its own reader of options would find it: a value stands beside or behind."""
    while words and words[0][:1] == "-":
        if words[0][:2] not in takes:
            return []
        words = words[2:] if words[0] in takes else words[1:]
    return words
