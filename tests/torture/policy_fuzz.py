"""Generated commands, judged by a policy and given to real shells: `python -m tests.torture policy_fuzz [--count N]`.

Whatever the policy allows is run by every shell that is installed, in a root where every program is a stub that writes
down its words.  Each command that a shell starts must be one that was judged, word by word, and one that a rule
allows.  A shell within it is opened in the same way.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from multiprocessing import Pool
from pathlib import Path
from random import Random
from typing import Any

from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case, Policy, Say
from atlasbridge.core.policy.shell import Parser, read_script
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser
from tests.support.shell_batch import parse_all
from tests.support.shell_grammar import Grammar
from tests.support.shell_jail import WRAPPERS, ShellJail

ROUND = 4000
RULES = Path(__file__).parents[1] / "policy" / "fuzz_policy.toml"
_SHELLS = ("sh", "bash", "ash", "dash", "ksh", "zsh")  # damage makes one of another
_STARTERS = (*WRAPPERS, "command", "exec", "builtin")  # what they start stands behind them


def main(
    count: int = 100_000,
    seed: int = 1,
    jobs: int = 2,  # processes; each waits half of its time for others
) -> int:
    seen: Counter[str] = Counter()
    rounds = [(seed + done // ROUND, min(ROUND, count - done)) for done in range(0, count, ROUND)]
    failed, counted = 0, 0
    with Pool(jobs) as pool:
        for begun, done, wrong, figures in pool.imap_unordered(_round, rounds):
            seen.update(figures)
            counted += done
            if wrong:
                print(f"policy_fuzz: seed {begun} FAILED:", *wrong, sep="\n  ", flush=True)
                failed += 1
            if (counted // ROUND) % 10 == 0:
                print(f"policy_fuzz: {counted} commands so far: {dict(seen)}", flush=True)
    if not failed:
        print(f"policy_fuzz: {count} commands, nothing ran that no rule allows: {dict(seen)}")
    return 1 if failed else 0


def _round(given: tuple[int, int]) -> tuple[int, int, list[str], Counter[str]]:
    figures: Counter[str] = Counter()
    return *given, fuzz(*given, figures), figures


def fuzz(seed: int, count: int, seen: Counter[str]) -> list[str]:
    """What ran though no rule allows it."""
    grammar = Grammar(Random(seed))
    commands = list(dict.fromkeys(grammar.line() for _ in range(count)))
    parser = ShellParser()
    policy = read_policy(RULES.read_text(encoding="utf-8"), parser)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "parse").mkdir()
        (Path(folder) / "jail").mkdir()
        parse = _batched(parse_all(commands, Path(folder) / "parse"), parser)
        allowed = [text for text in commands if allows(policy, text, parse)]
        seen.update(judged=len(commands), allowed=len(allowed))
        wrong = started_unasked(ShellJail(Path(folder) / "jail"), policy, allowed, seen, parse)
    parser.close()
    return wrong


def _batched(trees: dict[str, dict[str, Any] | None], parser: ShellParser) -> Callable[[str], Any]:
    return lambda text: trees[text] if text in trees else parser(text)


def allows(policy: Policy, text: str, parse: Parser) -> bool:
    subject = Subject(SubjectKind.COMMAND, text, "/x", SubjectSource.HOOK, True, text)
    return judge(policy, Case(subject, "claude", "", "/x", "/home/x"), parse).verdict is Say.ALLOW


def started_unasked(
    jail: ShellJail, policy: Policy, allowed: list[str], seen: Counter[str], parse: Parser
) -> list[str]:
    """What a real shell started for these commands that was not judged, or that no rule allows."""
    return [line for shell in jail.shells for line in _unasked_in(shell, jail, policy, allowed, seen, parse)]


def _unasked_in(
    shell: str, jail: ShellJail, policy: Policy, allowed: list[str], seen: Counter[str], parse: Parser
) -> list[str]:
    wrong, pending = [], [(text, text) for text in allowed]
    while pending:
        inner = []
        for (origin, text), programs in zip(pending, jail.run(shell, [text for _, text in pending]), strict=True):
            script = read_script(text, parse)
            judged = [item.words for item in script.commands] if script is not None else []
            for environment, *given in programs:
                words = (given[0].removeprefix("/bin/"), *given[1:])
                seen[shell] += 1
                if environment != jail.environment:
                    wrong.append(f"{shell}: {origin!r} ran {words} with another environment: {environment!r}")
                if not any(_is_of(words, known) for known in judged):
                    wrong.append(f"{shell}: {origin!r} ran {words}, which was not judged")
                if words[0] in _SHELLS and len(words) == 3:
                    inner.append((origin, words[2]))
                elif not allows(policy, quoted(words), parse):
                    wrong.append(f"{shell}: {origin!r} ran {words}, which no rule allows")
        pending = inner
    return wrong


def quoted(words: Iterable[str]) -> str:
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def _is_of(words: tuple[str, ...], judged: tuple[str, ...]) -> bool:
    """Whether it is this command, or what this command starts."""
    if (judged[0].removeprefix("/bin/"), *judged[1:]) == words:
        return True
    behind = judged[len(judged) - len(words) :] if len(words) < len(judged) else ("",)
    started = (behind[0].removeprefix("/bin/"), *behind[1:]) == words
    return started and judged[0].removeprefix("/bin/") in _STARTERS
