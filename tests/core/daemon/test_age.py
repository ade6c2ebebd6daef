"""The version that a hub leaves in a file: it counts only while the hub that wrote it lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from atlasbridge import __version__
from atlasbridge.core.daemon.request import (
    HubLock,
    compare_version,
    look_at_hub,
    read_version_file,
    remove_version_file,
    write_version_file,
)
from atlasbridge.core.home import Home
from atlasbridge.core.values import replace
from atlasbridge.core.wire import PROTOCOL


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[HubLock]:
    held = HubLock(tmp_path / "hub.lock")
    assert held.acquire()
    yield held
    held.release()


@pytest.mark.usefixtures("lock")
def test_what_a_hub_leaves_is_read_as_it_would_have_said_it(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert read_version_file(home) is None
    write_version_file(home)
    left = read_version_file(home)
    assert left == {"pid": os.getpid(), "protocol": PROTOCOL, "version": __version__}
    assert compare_version(left) == ""
    remove_version_file(home)
    assert read_version_file(home) is None


def test_the_word_of_a_hub_that_was_killed_is_not_believed(tmp_path: Path, lock: HubLock) -> None:
    write_version_file(Home(tmp_path))
    lock.release()
    assert read_version_file(Home(tmp_path)) is None


@pytest.mark.usefixtures("lock")
@pytest.mark.parametrize("word", ["", "1 2 0.0.1", "PID", "PID two 0.0.1", "\xff"])
def test_anything_else_is_no_word_of_the_hub_that_runs(tmp_path: Path, word: str) -> None:
    (tmp_path / "hub.version").write_bytes(word.replace("PID", str(os.getpid())).encode("latin-1"))
    assert read_version_file(Home(tmp_path)) is None


@pytest.mark.usefixtures("lock")
def test_a_hub_that_can_leave_no_word_runs_all_the_same_and_is_asked(tmp_path: Path) -> None:
    (tmp_path / "hub.version").mkdir()  # nothing can be written there, nor taken away
    write_version_file(Home(tmp_path))
    assert read_version_file(Home(tmp_path)) is None
    remove_version_file(Home(tmp_path))


@pytest.mark.usefixtures("lock")
def test_what_a_killed_hub_has_left_is_no_place_to_write_through(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "hub.version").symlink_to(tmp_path / "precious")
    write_version_file(Home(tmp_path))
    assert read_version_file(Home(tmp_path)) is not None
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.usefixtures("lock")
def test_a_hub_that_listens_elsewhere_is_asked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_version_file(home)
    assert read_version_file(replace(home, hub=tmp_path / "elsewhere.sock")) is None


@pytest.mark.usefixtures("lock")
def test_an_older_hub_is_named_without_being_asked(tmp_path: Path) -> None:
    home = Home(tmp_path)
    (tmp_path / "hub.version").write_text(f"{os.getpid()} 1 0.0.1\n")
    assert look_at_hub(home) == "", "no hub has left an address"
    home.socket.touch()
    assert "is of an older version 0.0.1 than this command" in look_at_hub(home)
