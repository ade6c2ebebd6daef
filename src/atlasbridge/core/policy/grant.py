"""A grant: a temporary permission that a person gives from one question. It is evaluated like a rule; the store keeps
it."""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.rule import PolicyRule, Say
from atlasbridge.core.values import frozen

PREFIX = "grant:"
LONGEST_S = 12 * 3600.0  # no grant lasts longer than half a day


@frozen
class GrantShape:
    """What is allowed: shapes of commands, one file, or one host."""

    commands: tuple[Shape, ...] = ()
    path: str = ""
    host: str = ""


@frozen
class Span:
    """One of the offered limits: for how long, how often, where."""

    key: str
    label: str
    for_s: float | None = None
    times: int | None = None
    folder: bool = False


SPANS = (
    Span("30m", "For 30 minutes", for_s=1800.0),
    Span("5x", "5 times", times=5),
    Span("session", "In this session"),
    Span("folder", "In this folder", folder=True),
)


def find_span(key: str) -> Span | None:
    return next((span for span in SPANS if span.key == key), None)


@frozen
class Grant:
    grant_id: str
    shape: GrantShape
    tool: str
    session_id: str = ""  # "": every session of that tool in that folder
    folder: str = ""
    deadline: float | None = None  # on the monotonic clock of its boot
    uses_left: int | None = None
    by: str = ""
    created_at: str = ""

    @property
    def name(self) -> str:
        return PREFIX + self.grant_id[:8]

    def rules(self) -> tuple[PolicyRule, ...]:
        common = {"tool": self.tool, "folder": self.folder, "reason": f"granted by {self.by}"}
        shapes: list[dict[str, object]] = [{"command": shape} for shape in self.shape.commands]
        shapes += [{"path": self.shape.path}] if self.shape.path else []
        shapes += [{"host": self.shape.host}] if self.shape.host else []
        return tuple(PolicyRule(self.name, Say.ALLOW, **common, **shape) for shape in shapes)  # type: ignore[arg-type]


def live_grants(grants: Iterable[Grant], session_id: str, now: float) -> list[Grant]:
    return [
        grant
        for grant in grants
        if grant.session_id in ("", session_id)
        and (grant.deadline is None or now < grant.deadline)
        and (grant.uses_left is None or grant.uses_left > 0)
    ]
