"""`tools/release` makes a whole release in a clone, and refuses what is not ready."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What is in the checkout now, as a repository of its own."""
    folder = tmp_path / "clone"
    folder.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "-z", "src", "tools", "*.md", "*.toml", "LICENSE"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    pack = ["tar", "--create", "--file", str(tmp_path / "tree.tar"), "--null", "--files-from", "-"]
    subprocess.run(pack, cwd=ROOT, input=files.stdout, check=True)
    subprocess.run(["tar", "--extract", "--file", str(tmp_path / "tree.tar")], cwd=folder, check=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    return folder


def release(folder: Path, version: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["tools/release", version],
        cwd=folder,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )


@pytest.mark.landing
def test_a_release_has_a_tag_a_date_packages_an_sbom_and_checksums(clone: Path) -> None:
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text("utf-8").replace("## 0.1.0 (", "## 9.9.9 (unreleased)\n\n## 0.1.0 (", 1), "utf-8"
    )
    git(clone, "commit", "-q", "-a", "-m", "a heading")
    made = release(clone, "9.9.9")
    assert made.returncode == 0, made.stderr
    assert git(clone, "tag") == "v9.9.9\n"
    assert '__version__ = "9.9.9"' in (clone / "src/atlasbridge/__init__.py").read_text("utf-8")
    assert "## 9.9.9 (unreleased)" not in changelog.read_text("utf-8")
    names = {path.name for path in (clone / "dist").iterdir()}
    assert names == {
        "atlasbridge_pty-9.9.9-py3-none-any.whl",
        "atlasbridge_pty-9.9.9.tar.gz",
        "atlasbridge_pty-9.9.9.sbom.json",
        "SHA256SUMS",
    }
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=clone / "dist", check=True)
    assert git(clone, "status", "--porcelain", "--untracked-files=no") == ""


def test_what_is_not_ready_is_refused_and_nothing_changes(clone: Path) -> None:
    before = git(clone, "rev-parse", "HEAD")
    assert "usage" in release(clone, "one").stderr
    assert "no heading" in release(clone, "8.8.8").stderr
    (clone / "CHANGELOG.md").write_text("mine", "utf-8")
    assert "commit or stash" in release(clone, "0.1.0").stderr
    assert git(clone, "rev-parse", "HEAD") == before
    assert git(clone, "tag") == ""


def test_the_changelog_of_a_release_is_short() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    release_lines = text.partition("## 0.1.0")[2].partition("\n## ")[0].splitlines()
    assert len(release_lines) <= 60
    entries = [line for line in release_lines if line.startswith("- ")]
    assert len(entries) > 10
    assert all(line.startswith(("- ", "### ", "The first", " (")) or not line for line in release_lines)
