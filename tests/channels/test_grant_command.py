"""`/grant` in a chat: in words what it allows, and nothing without a span."""

from __future__ import annotations

import pytest

from atlasbridge.channels.commands import parse_grant, render_grant
from atlasbridge.core.operations import Granted, Refused
from atlasbridge.core.values import replace


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("abcd1234", ("abcd1234", None, None, False)),
        ("abcd1234 30m", ("abcd1234", 1800.0, None, False)),
        ("abcd1234 2h folder", ("abcd1234", 7200.0, None, True)),
        ("abcd1234 5x", ("abcd1234", None, 5, False)),
        ("abcd1234 0x", None),
        ("abcd1234 off", None),
        ("abcd1234 for ever", None),
        ("", None),
    ],
)
def test_what_is_wanted_is_read_or_refused(text: str, wanted: object) -> None:
    assert parse_grant(text) == wanted


def test_the_answer_says_what_is_allowed_and_what_is_not() -> None:
    made = Granted("exactly `ls`", "ls", ("ls x",), ("ls; rm x",), ("Asked: no rule allows 'rm x'.",))
    assert render_grant(made, "/").splitlines()[:4] == [
        "This would grant: exactly `ls`.",
        "✅ ls x",
        "❌ ls; rm x",
        "   Asked: no rule allows 'rm x'.",
    ]
    assert render_grant(replace(made, why_not=()), "/").splitlines()[2:3] == ["❌ ls; rm x"]
    assert "grants remove aaaaaaaa" in render_grant(replace(made, grant_id="a" * 32), "/")
    assert render_grant(Refused("cannot_grant", "No."), "/") == "No."
