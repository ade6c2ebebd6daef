"""What has changed in a session's folder, beside what `git` says, and with repositories that mean harm."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.support.waiting import wait_for

from atlasbridge.core.session import changes

SCRIPT = changes.__file__
QUIET = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(("git", *identity, *words), cwd=folder, env=QUIET, capture_output=True, text=True, check=True)
    return done.stdout


def look(folder: Path, since: float) -> dict[str, Any]:
    """As the hub does it: in a process of its own."""
    words = (sys.executable, "-I", "-S", SCRIPT, str(folder), str(since))
    told: dict[str, Any] = json.loads(subprocess.run(words, capture_output=True, check=True, env={}).stdout)
    return told


def by_path(told: dict[str, Any]) -> dict[str, tuple[str, int, int]]:
    return {one["path"]: (one["status"], one.get("added", 0), one.get("removed", 0)) for one in told["files"]}


def commit(folder: Path, files: dict[str, str]) -> float:
    """A repository with these files; the moment after which everything counts."""
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q")
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return settled()


def settled() -> float:
    """The next whole second: a commit's log counts in seconds, a file system's clock in a few milliseconds."""
    second = int(time.time())
    wait_for(lambda: time.time() > second + 1.01, "the next second")
    return time.time()


def wait_for_next_tick(folder: Path) -> None:
    """Until the file system gives new files a later time than the files that are there."""
    probe = folder.parent / "clock"
    probe.touch()
    before = probe.stat().st_mtime_ns

    def has_moved() -> bool:
        probe.touch()
        return probe.stat().st_mtime_ns > before

    wait_for(has_moved, "the clock of the file system")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"


def test_new_changed_and_removed_files_are_told_with_their_lines(folder: Path) -> None:
    since = commit(folder, {"a.txt": "1\n2\n3\n4\n5\n", "b/c.txt": "x\n", "same.txt": "s\n", "gone/d.txt": "d\ne\n"})
    wait_for_next_tick(folder)
    (folder / "a.txt").write_text("1\ntwo\n3\n4\n5\n6\n")
    (folder / "new.txt").write_text("n\n")
    (folder / "gone/d.txt").unlink()
    (folder / "gone").rmdir()
    os.utime(folder / "same.txt")
    told = look(folder, since)
    changed = {"a.txt": ("changed", 2, 1), "new.txt": ("added", 1, 0), "gone/d.txt": ("removed", 0, 2)}
    assert by_path(told) == changed
    assert (told["count"], told["added"], told["removed"], told["whole"]) == (3, 3, 3, True)
    assert told["files"][0]["diff"] == " 1\n-2\n+two\n 3\n 4\n 5\n+6"
    assert git(folder, "rev-parse", "HEAD").startswith(told["commit"])


def test_what_was_committed_meanwhile_still_counts(folder: Path) -> None:
    since = commit(folder, {"a.txt": "1\n", "b.txt": "1\n"})
    wait_for_next_tick(folder)
    (folder / "a.txt").write_text("2\n")
    git(folder, "rm", "-q", "b.txt")
    git(folder, "commit", "-qam", "second")
    assert by_path(look(folder, since)) == {"a.txt": ("changed", 1, 1), "b.txt": ("removed", 0, 1)}


def test_what_was_changed_before_the_session_began_is_not_its_doing(folder: Path) -> None:
    commit(folder, {"a.txt": "1\n"})
    (folder / "a.txt").write_text("2\n")
    (folder / "left.txt").write_text("left\n")
    assert look(folder, settled())["count"] == 0


def test_ignored_files_are_left_out_unless_they_are_tracked(folder: Path) -> None:
    rules = "*.log\nbuild/\n!keep.log\n/only-here.txt\ndocs/**/*.tmp\n"
    since = commit(folder, {".gitignore": rules, "tracked.log": "1\n", "build/kept.txt": "1\n"})
    wait_for_next_tick(folder)
    written = ("a.log", "keep.log", "tracked.log", "build/kept.txt", "only-here.txt", "docs/x/y/z.tmp", "docs/a.txt")
    for name in (*written, "sub/only-here.txt", "build2/new.txt", "deep/build/out.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("2\n")
    listed = set(git(folder, "ls-files", "-mo", "--exclude-standard").split())
    assert set(by_path(look(folder, since))) == listed
    assert "build/kept.txt" in listed and "a.log" not in listed


def test_a_session_in_a_folder_below_tells_only_of_that_folder(folder: Path) -> None:
    since = commit(folder, {"web/a.txt": "1\n", "api/b.txt": "1\n"})
    wait_for_next_tick(folder)
    for name in ("web/a.txt", "api/b.txt"):
        (folder / name).write_text("2\n")
    assert by_path(look(folder / "web", since)) == {"web/a.txt": ("changed", 1, 1)}


def test_a_folder_without_a_repository_lists_what_was_written(folder: Path) -> None:
    (folder / "node_modules").mkdir(parents=True)
    since = settled()
    (folder / "a.txt").write_text("1\n")
    (folder / "node_modules/b.js").write_text("1\n")
    told = look(folder, since)
    assert (by_path(told), told["repository"]) == ({"a.txt": ("written", 0, 0)}, False)


def test_a_worktree_of_its_own_and_a_repository_without_commits_are_read(folder: Path, tmp_path: Path) -> None:
    commit(folder, {"a.txt": "1\n"})
    git(folder, "worktree", "add", "-q", str(tmp_path / "other"))
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    since = settled()
    (tmp_path / "other/a.txt").write_text("2\n")
    (empty / "first.txt").write_text("1\n")
    assert by_path(look(tmp_path / "other", since)) == {"a.txt": ("changed", 1, 1)}
    assert by_path(look(empty, since)) == {"first.txt": ("added", 1, 0)}


def test_a_repository_with_longer_names_is_read(folder: Path) -> None:
    folder.mkdir()
    try:
        git(folder, "init", "-q", "--object-format=sha256")
    except subprocess.CalledProcessError:
        pytest.skip("this git knows no SHA-256")
    since = commit(folder, {"a.txt": "1\n", "b/c.txt": "1\n"})
    git(folder, "repack", "-adq")
    wait_for_next_tick(folder)
    (folder / "b/c.txt").write_text("2\n")
    assert by_path(look(folder, since)) == {"b/c.txt": ("changed", 1, 1)}


def test_files_that_are_not_text_links_and_pipes_are_told_without_being_followed(folder: Path, tmp_path: Path) -> None:
    since = commit(folder, {"a.txt": "1\n"})
    secret = tmp_path / "secret.txt"
    secret.write_text("do not read this")
    wait_for_next_tick(folder)
    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    (folder / "link").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    (folder / "huge.txt").write_bytes(b"x\n" * (changes.LARGEST_FILE // 2 + 10))
    told = {one["path"]: one for one in look(folder, since)["files"]}
    assert set(told) == {"picture.png", "link", "huge.txt"}
    assert told["picture.png"]["binary"] and told["huge.txt"]["large"]
    assert told["link"]["diff"] == f"+{secret}" and "do not read" not in json.dumps(told)


def test_nothing_that_a_repository_names_is_run(folder: Path, tmp_path: Path) -> None:
    """Filters, textconv, fsmonitor, hooks, pagers, aliases, an external diff, an included file: each leaves a trace."""
    since = commit(folder, {"a.txt": "1\n", ".gitattributes": "* filter=evil diff=evil\n"})
    trace = tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\necho ran >> '{trace}'\ncat\n")
    program.chmod(0o755)
    (tmp_path / "more").write_text(f"[core]\n\tfsmonitor = '{program}'\n")
    settings = ("core.fsmonitor", "core.pager", "diff.external", "core.sshCommand", "core.editor", "alias.status")
    more = ("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv", "diff.evil.command")
    for name in (*settings, *more):
        git(folder, "config", name, shlex.quote(str(program)))
    git(folder, "config", "include.path", str(tmp_path / "more"))
    git(folder, "config", "core.hooksPath", str(tmp_path))
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit"):
        (folder / ".git/hooks").mkdir(exist_ok=True)
        (folder / ".git/hooks" / hook).write_text(program.read_text())
        (folder / ".git/hooks" / hook).chmod(0o755)
    wait_for_next_tick(folder)
    (folder / "a.txt").write_text("2\n")
    subprocess.run(("git", "status"), cwd=folder, env=QUIET, capture_output=True, check=False)
    assert trace.exists(), "the trap does not work"
    trace.unlink()
    assert by_path(look(folder, since))["a.txt"] == ("changed", 1, 1)
    assert not trace.exists()


def test_broken_and_hostile_objects_end_in_an_answer(folder: Path) -> None:
    """Every file of the repository is damaged in many ways: the names are told all the same."""
    since = commit(folder, {f"d{n}/a{n}.txt": f"{n}\n" * 50 for n in range(12)})
    git(folder, "repack", "-adq")
    wait_for_next_tick(folder)
    (folder / "d3/a3.txt").write_text("new\n")
    (folder / "d4/a4.txt").unlink()
    random = Random(7)
    inside = [
        path for path in (folder / ".git").rglob("*") if path.is_file() and path.suffix not in (".sample", ".rev")
    ]
    for round_ in range(60):
        path = random.choice(inside)
        whole = path.read_bytes()
        path.chmod(0o644)
        data = bytearray(whole)
        for _ in range(random.choice((1, 4, 64))):
            if data:
                data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(bytes(data[: random.randrange(len(data) + 1)] if round_ % 3 == 0 else data))
        told = changes.changes(str(folder), since)
        assert "d3/a3.txt" in {one["path"] for one in told["files"]}, path
        path.write_bytes(whole)


def test_a_log_that_points_elsewhere_and_a_chain_without_end_are_refused(folder: Path) -> None:
    since = commit(folder, {"a.txt": "1\n"})
    (folder / ".git/logs/HEAD").unlink()
    (folder / ".git/HEAD").write_text("ref: refs/../../../etc/passwd\n")
    (folder / "a.txt").write_text("2\n")
    told = look(folder, since)
    assert (by_path(told), told["repository"]) == ({"a.txt": ("written", 0, 0)}, False)
    with pytest.raises(changes.Broken):
        changes.patched(b"abc", b"\x03\xff\xff\xff\x7f\x90\x03")
    with pytest.raises(changes.Broken):
        changes.patched(b"abc", b"\x03\x03\x91\x02\x03")


def _lend_by_file(folder: Path, other: Path) -> None:
    (folder / ".git").write_text(f"gitdir: {other}/.git\n")


def _lend_by_link(folder: Path, other: Path) -> None:
    (folder / ".git").symlink_to(other / ".git")


def _lend_by_common_folder(folder: Path, other: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/commondir").write_text(f"{other}/.git\n")


def _lend_by_links_inside(folder: Path, other: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects", "refs"):
        (folder / ".git" / name).symlink_to(other / ".git" / name)


def _lend_by_alternates(folder: Path, other: Path) -> None:
    git(folder, "init", "-q")
    (folder / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")
    (folder / ".git/refs/heads/main").write_text(git(other, "rev-parse", "HEAD"))


def _lend_by_linked_packs(folder: Path, other: Path) -> None:
    git(other, "repack", "-adq")
    git(folder, "init", "-q")
    for one in (other / ".git/objects/pack").iterdir():
        (folder / ".git/objects/pack" / one.name).symlink_to(one)
    (folder / ".git/refs/heads/main").write_text(git(other, "rev-parse", "HEAD"))


def _lend_by_a_false_worktree(folder: Path, other: Path) -> None:
    (folder / "store").mkdir()
    (folder / "store/HEAD").write_text("ref: refs/heads/main\n")
    (folder / "store/gitdir").write_text(f"{folder}/.git\n")
    (folder / "store/commondir").write_text(f"{other}/.git\n")
    (folder / ".git").write_text("gitdir: store\n")


LENDERS = (
    *(_lend_by_file, _lend_by_link, _lend_by_common_folder, _lend_by_links_inside),
    *(_lend_by_alternates, _lend_by_linked_packs, _lend_by_a_false_worktree),
)


@pytest.mark.parametrize("lend", LENDERS, ids=[one.__name__.removeprefix("_lend_by_") for one in LENDERS])
def test_nothing_of_another_folder_is_shown(folder: Path, tmp_path: Path, lend: Callable[[Path, Path], None]) -> None:
    """A repository that names another one as its own would show that one's files as removed."""
    commit(tmp_path / "private", {"key.txt": "a private line\n"})
    folder.mkdir()
    lend(folder, tmp_path / "private")
    (folder / "a.txt").write_text("1\n")
    told = look(folder, time.time() - 60)
    assert "private line" not in json.dumps(told) and "key.txt" not in by_path(told)
    assert "a.txt" in by_path(told)


def test_a_file_with_another_name_elsewhere_is_named_but_not_shown(folder: Path, tmp_path: Path) -> None:
    since = commit(folder, {"a.txt": "1\n"})
    (tmp_path / "key").write_text("a private line\n")
    os.link(tmp_path / "key", folder / "b.txt")
    told = look(folder, since)
    assert "private line" not in json.dumps(told)
    assert [(one["path"], one["unknown"]) for one in told["files"]] == [("b.txt", True)]


def test_a_submodule_and_a_repository_beside_its_worktrees_are_read(folder: Path, tmp_path: Path) -> None:
    commit(tmp_path / "part", {"p.txt": "1\n"})
    commit(folder, {"a.txt": "1\n"})
    git(folder, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(tmp_path / "part"), "part")
    bare = tmp_path / "bare"
    bare.mkdir()
    git(bare, "clone", "-q", "--bare", str(tmp_path / "part"), ".store")
    (bare / ".git").write_text("gitdir: ./.store\n")
    git(bare, "worktree", "add", "-q", "main-tree")
    since = settled()
    for place in (folder / "part", bare / "main-tree"):
        (place / "p.txt").write_text("2\n")
        assert by_path(look(place, since)) == {"p.txt": ("changed", 1, 1)}, place


def test_large_differences_are_cut_and_say_so(folder: Path) -> None:
    since = commit(folder, {"a.txt": "".join(f"line {n}\n" for n in range(9000))})
    wait_for_next_tick(folder)
    (folder / "a.txt").write_text("".join(f"other {n}\n" for n in range(9000)))
    for number in range(changes.MOST_FILES + 20):
        (folder / f"n{number}.txt").write_text("x\n" * 400)
    told = look(folder, since)
    assert (told["count"], len(told["files"])) == (changes.MOST_FILES + 21, changes.MOST_FILES)
    first = told["files"][0]
    assert (first["added"], first["removed"], first["cut"]) == (9000, 9000, True)
    assert len(json.dumps(told)) < 2 * changes.ALL_DIFFS


def test_the_differences_make_the_new_file_of_the_old_one() -> None:
    random = Random(3)
    for _ in range(300):
        old = [random.choice("abcdef") for _ in range(random.randrange(30))]
        new = [line for line in old if random.random() > 0.2]
        for _ in range(random.randrange(4)):
            new.insert(random.randrange(len(new) + 1), random.choice("xyz"))
        was, now = ("".join(f"{line}\n" for line in lines).encode() for lines in (old, new))
        told = changes.differences(was, now, 1 << 20)
        lines = told["diff"].split("\n") if told["diff"] else []
        assert sum(line.startswith("+") for line in lines) == told["added"]
        assert sum(line.startswith("-") for line in lines) == told["removed"]
        assert told["added"] - told["removed"] == len(new) - len(old)
        kept = [line[1:] for line in lines if line[:1] in "+ "]
        assert _stands_in(kept, new) and (told["diff"] or old == new)


def _stands_in(part: list[str], whole: list[str]) -> bool:
    """In this order, with other lines in between."""
    rest = iter(whole)
    return all(line in rest for line in part)
