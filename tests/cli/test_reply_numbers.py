"""`atlasbridge reply`: a number with a sign is an answer, not an option."""

from __future__ import annotations

from typing import Any

import click
import pytest

from atlasbridge.cli.reply import command


@pytest.mark.parametrize(
    ("args", "value", "text"),
    [
        (["tuna", "-1"], "-1", False),
        (["tuna", "--text", "-1"], "-1", True),
        (["tuna", "--text", "-1 for the old one"], "-1 for the old one", True),
        (["tuna", "- one\n- two"], "- one\n- two", False),
        (["--text", "tuna", "-2.5"], "-2.5", True),
        (["tuna", "--", "-1"], "-1", False),
        (["tuna", "1"], "1", False),
    ],
)
def test_a_number_with_a_sign_is_the_answer(args: list[str], value: str, text: bool) -> None:
    with command.make_context("reply", list(args)) as context:
        assert (context.params["value"], context.params["as_text"], context.params["prompt"]) == (value, text, "tuna")


def test_what_an_option_takes_stays_with_it_and_a_wrong_option_is_refused() -> None:
    with command.make_context("reply", ["tuna", "--keys", "-1"]) as context:
        params: dict[str, Any] = context.params
        assert params["keys"] == "-1" and params["value"] is None
    with pytest.raises(click.NoSuchOption):
        command.make_context("reply", ["tuna", "-x"])
