"""Commands of plain words get the tree that the parser would give; anything else is left to it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlasbridge.core.policy.plain import plain_tree
from atlasbridge.core.routing.shell_parser import ShellParser

WORDS = st.text("abcxyzAZ019_./:@%+,-=", min_size=1, max_size=12)
PARSER = ShellParser()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(WORDS, st.sampled_from(["if", "time", "in", "let", "export", "do", "git", "-c", "--"])), min_size=1
    )
)
def test_the_tree_is_the_parsers_own(words: list[str]) -> None:
    text = " ".join(words)
    mine = plain_tree(text)
    if mine is not None:
        assert mine == PARSER._parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ls",
        "ls ",
        "ls  x",
        "ls\tx",
        "ls\nx",
        "x=1 ls",
        "ls *",
        "ls ~",
        "ls $x",
        "ls #x",
        "ls !x",
        "ls 'x'",
        "é",
        "{ ls",
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(text: str) -> None:
    assert plain_tree(text) is None


def test_most_commands_are_plain() -> None:
    for text in (
        "npm run test:unit",
        "git status --short",
        "python -m pytest -q tests/core",
        "cargo test --all",
        "ls -la src",
    ):
        assert plain_tree(text) is not None
