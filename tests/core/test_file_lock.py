"""A lock that another holds is not got, in whatever words the system says so; any other fault is one."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from atlasbridge.core import system
from atlasbridge.core.system import try_lock, try_share


def play_windows(monkeypatch: pytest.MonkeyPatch, fault: OSError | None) -> list[int]:
    """A system without `flock`, whose own call says `fault`; returns where a byte was to be locked."""
    places: list[int] = []

    class Keys(ModuleType):
        LK_NBLCK = 2

        def locking(self, descriptor: int, mode: int, size: int) -> None:
            places.append(os.lseek(descriptor, 0, os.SEEK_CUR))
            if fault is not None:
                raise fault

    monkeypatch.setattr(system, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", Keys("msvcrt"))
    return places


@pytest.mark.parametrize(
    "fault",
    [
        PermissionError(errno.EACCES, "Permission denied"),
        OSError(errno.EDEADLK, "Resource deadlock avoided"),
        OSError(0, "Error"),  # a C library that knows no number for it: Wine's
        OSError("held"),
    ],
)
def test_a_byte_that_another_holds_is_not_got(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: OSError) -> None:
    play_windows(monkeypatch, fault)
    with (tmp_path / "lock").open("w+b") as file:
        assert try_lock(file.fileno()) is False
        assert try_share(file.fileno()) is False


def test_a_byte_far_behind_the_file_is_locked_and_reading_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = play_windows(monkeypatch, None)
    with (tmp_path / "lock").open("w+b", buffering=0) as file:
        file.write(b"4711\n")
        file.seek(1)
        assert try_lock(file.fileno()) and file.read() == b"711\n"
    assert places == [1 << 30]


def test_what_is_no_lock_of_anothers_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play_windows(monkeypatch, OSError(errno.EBADF, "Bad file descriptor"))
    with (tmp_path / "lock").open("w+b") as file, pytest.raises(OSError, match="Bad file"):
        try_lock(file.fileno())


def test_a_file_is_locked_by_one_opening_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w+b") as first, path.open("r+b") as second:
        assert try_lock(first.fileno()) and not try_lock(second.fileno())
        first.close()
        assert try_lock(second.fileno())
