"""A change of the product without a word in the changelog is noticed, in a real repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "tools" / "check_changelog.py"


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "-q", "-b", "main")
        self.write("CHANGELOG.md", "# Changelog")
        self.commit("begin")

    def git(self, *words: str) -> None:
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], cwd=self.folder, check=True, capture_output=True)

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self.git("add", name)

    def commit(self, *message: str) -> None:
        self.git("commit", "-q", *(word for part in message for word in ("-m", part)))

    def passes(self, *words: str) -> bool:
        return subprocess.run([sys.executable, CHECK, *words], cwd=self.folder, capture_output=True).returncode == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_change_of_the_product_wants_a_line_before_the_commit(checkout: Checkout) -> None:
    checkout.write("src/atlasbridge/core/ids.py", "new = 1\n")
    assert not checkout.passes()
    checkout.write("CHANGELOG.md", "# Changelog\n\n- Something new.\n")
    assert checkout.passes()


def test_tests_and_docs_want_none(checkout: Checkout) -> None:
    checkout.write("tests/test_it.py", "")
    checkout.write("docs/page.md", "")
    assert checkout.passes()


def test_before_a_merge_all_commits_count_together(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", "work")
    checkout.write("src/ptypool/pool.py", "")
    checkout.commit("a new pool")
    assert not checkout.passes("main")
    checkout.write("CHANGELOG.md", "# Changelog\n\n- A new pool.\n")
    checkout.commit("its line")
    assert checkout.passes("main")


def test_what_nobody_notices_says_so(checkout: Checkout) -> None:
    checkout.git("switch", "-q", "-c", "work")
    checkout.write("src/ptypool/pool.py", "")
    checkout.commit("names", "Changelog: none")
    assert checkout.passes("main")
