"""Commands of plain words get the tree that the parser would give; anything else is left to it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.shell_batch import parse_all
from tests.support.tier import examples

from atlasbridge.core.policy.shell import plain_tree
from atlasbridge.core.routing.shell_parser import ShellParser

WORDS = st.text("abcxyzAZ019_./:@%+,-=", min_size=1, max_size=12)
PARSER = ShellParser()


@settings(max_examples=examples(150), deadline=None)
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
        'ls "$x"',
        'ls "a\\b"',
        "ls 'a\nb'",
        "'ls' x",
        "ls 2>&1 x",
        "ls &",
        "ls |& cat",
        "ls ; cat",
        "ls &&",
        "é",
        "{ ls",
    ],
)
def test_what_is_not_plain_is_left_to_the_parser(text: str) -> None:
    assert plain_tree(text) is None


def test_of_lines_with_quotes_and_joins_the_tree_is_the_parsers_own(tmp_path: Path) -> None:
    pieces = ["ls", "git", "-la", "if", "time", "x=1", "--m=a", "'a b'", '"c d"', "''", '""', "a'b'", "'a'\"b\"c", "a;"]
    pieces += ["2>&1", ">/dev/null", "2>/dev/null", "&&", "||", "|", "do", "2", "export", "=x", "'$x'", '"!"', "[", "#"]
    random = Random(20_261)
    lines = {" ".join(random.choice(pieces) for _ in range(random.randint(1, 7))) for _ in range(10_000)}
    mine = {text: tree for text in sorted(lines) if (tree := plain_tree(text)) is not None}
    assert len(mine) > 300
    assert mine == parse_all(list(mine), tmp_path)


def test_most_commands_are_plain() -> None:
    for text in (
        "npm run test:unit",
        "git status --short",
        "python -m pytest -q tests/core",
        "cargo test --all",
        "ls -la src",
        "cd src && npm test 2>&1 | head -20",
        "git commit -m 'say why'; git status",
    ):
        assert plain_tree(text) is not None
