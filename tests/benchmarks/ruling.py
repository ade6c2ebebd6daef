"""What a verdict of the rules costs: every command of the adversarial corpus once, never seen before, the parser warm.

A verdict that needs the parser waits for another process: beside it stands what that process alone takes in this run.
`python -m tests.benchmarks.ruling` prints the figures.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser
from tests.benchmarks.latency import percentiles

FILES = Path(__file__).resolve().parents[1] / "policy"
BETWEEN_S = 0.03  # between two questions the parser is warmed up, as in the hub


@dataclass(frozen=True, slots=True)
class Verdicts:
    count: int
    p50_ms: float
    p99_ms: float
    parser_p50_ms: float  # the parser's process alone
    parser_p99_ms: float


def verdicts() -> Verdicts:
    parser = ShellParser()
    policy = read_policy((FILES / "policy.toml").read_text(encoding="utf-8"), parser)
    texts = list(dict.fromkeys(_texts(tomllib.loads((FILES / "corpus.toml").read_text(encoding="utf-8")))))
    took, parsed = [], []
    for text in texts:
        subject = Subject(SubjectKind.COMMAND, text, "/x", SubjectSource.HOOK, True, text)
        took.append(_timed(parser, lambda: judge(policy, Case(subject, "claude", "", "/x", "/home/x"), parser)))  # noqa: B023
        parsed.append(_timed(parser, lambda: parser._parse("x $y")))
    parser.close()
    return Verdicts(len(took), *percentiles(took), *percentiles(parsed))


def _timed(parser: ShellParser, work: object) -> float:
    parser.warm_up()
    time.sleep(BETWEEN_S)
    begun = time.perf_counter()
    work()  # type: ignore[operator]
    return (time.perf_counter() - begun) * 1e3


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, list | dict):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)


if __name__ == "__main__":
    print(verdicts())
