"""A short run of tests/torture/grammar_fuzz.py on programs that every system has, and that it would notice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.torture import grammar_fuzz

pytestmark = pytest.mark.heavy  # needs strace: tools/install-extras


@pytest.mark.parametrize("program", ["ls", "cat", "grep", "find", "sort", "sed", "awk", "diff", "tar"])
def test_a_real_program_touches_nothing_outside_its_folder(program: str) -> None:
    seen: Counter[str] = Counter()
    assert list(grammar_fuzz.fuzz(7, 6, seen, program)) == []
    assert seen[program] >= 3


@pytest.mark.parametrize("program", ["sed", "awk"])
def test_no_script_that_the_table_takes_writes_or_starts_anything(program: str) -> None:
    seen: Counter[str] = Counter()
    assert list(grammar_fuzz.fuzz_scripts(program, 11, 2000, seen)) == []
    assert sum(seen.values()) >= 50


def test_it_notices_a_program_that_reads_writes_or_starts_something_else(tmp_path: Path) -> None:
    room, secret = grammar_fuzz.furnish(tmp_path)
    for words, what in (
        (["cat", str(secret)], "opens the file outside"),
        (["cp", "a.txt", str(secret.parent / "b")], "writes outside"),
        (["find", ".", "-maxdepth", "0", "-exec", "true", ";"], "starts"),
    ):
        noticed = list(grammar_fuzz.watch(words, room, secret, runs=False))
        assert any(what in line for line in noticed), (words, noticed)
