"""Rules that a person might want, from what they answered: shapes that were agreed to and never refused."""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.policy.grant import GrantShape
from atlasbridge.core.policy.granting import decide_shape
from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.programs import DESTRUCTIVE, SHELLS, program_of
from atlasbridge.core.policy.rule import Case, Policy
from atlasbridge.core.policy.shell import Parser
from atlasbridge.core.values import frozen

LEAST = 2


@frozen
class PastQuestion:
    """A question of the past: `agreed` is None where nobody decided."""

    case: Case
    agreed: bool | None


@frozen
class Suggestion:
    shape: Shape
    tool: str
    count: int
    examples: tuple[str, ...]

    def to_toml(self) -> str:
        name = "-".join(word for word in self.shape.words if word.replace("-", "").isalnum())[:40] or "rule"
        lines = [
            "[[rule]]",
            f"name = {quoted(name)}",
            'verdict = "allow"',
            f"command = [{', '.join(quoted(word) for word in self.shape.words)}]",
            f"tool = {quoted(self.tool)}",
            f"match = [{', '.join(quoted(text) for text in self.examples)}]",
        ]
        return "\n".join(lines) + "\n"


def suggest(answered: Iterable[PastQuestion], policy: Policy, parse: Parser, least: int = LEAST) -> list[Suggestion]:
    """Most often agreed first; nothing that is destructive, that was once refused, or that rules speak of already."""
    agreed: dict[tuple[str, Shape], list[str]] = {}
    refused: set[tuple[str, Shape]] = set()
    for item in answered:
        for shape in _shapes(item.case, parse):
            key = (item.case.tool, shape)
            if item.agreed is False:
                refused.add(key)
            elif item.agreed and judge(policy, item.case, parse).rule == "":
                text = item.case.subject.text if item.case.subject else ""
                agreed.setdefault(key, []).append(text)
    found = [
        Suggestion(shape, tool, len(texts), tuple(dict.fromkeys(texts))[:3])
        for (tool, shape), texts in agreed.items()
        if len(texts) >= least and (tool, shape) not in refused and not is_destructive(shape)
    ]
    return sorted(found, key=lambda item: (-item.count, str(item.shape)))


def _shapes(case: Case, parse: Parser) -> tuple[Shape, ...]:
    shape = decide_shape(case, parse)
    return shape.commands if isinstance(shape, GrantShape) and len(shape.commands) == 1 else ()


def is_destructive(shape: Shape) -> bool:
    program = program_of(shape.program)
    return (
        program in DESTRUCTIVE
        or f"{program} {(*shape.words, '')[1]}" in DESTRUCTIVE
        or (program in SHELLS and len(shape.words) > 1)
    )


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
