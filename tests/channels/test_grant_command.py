"""`/grant` in a chat: in words what it allows, and nothing without a span."""

from __future__ import annotations

import pytest

from atlasbridge.channels.commands import parse_grant, render_grant


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
    refused = {"would_not": ["ls; rm x"], "why_not": ["Asked: no rule allows 'rm x'."]}
    made = {"ok": True, "words": "exactly `ls`", "would": ["ls x"], **refused}
    assert render_grant(made, "/").splitlines()[:4] == [
        "It would be: exactly `ls`.",
        "✅ ls x",
        "❌ ls; rm x",
        "   Asked: no rule allows 'rm x'.",
    ]
    older = {name: value for name, value in made.items() if name != "why_not"}
    assert render_grant(older, "/").splitlines()[2:3] == ["❌ ls; rm x"]
    assert "grants revoke aaaaaaaa" in render_grant({**made, "grant_id": "a" * 32}, "/")
    assert render_grant({"ok": False, "message": "No."}, "/") == "No."
