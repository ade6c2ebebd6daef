"""Every error says what is wrong and what to do, and survives pickling (users send them between processes)."""

from __future__ import annotations

import errno
import pickle
from uuid import UUID

import pytest

from ptypool import (
    AtCapacity,
    CommandTimeout,
    HandleNotFound,
    PtyError,
    PtyInternalError,
    PtyIoError,
    SpawnFailed,
)

ID = UUID("6f0e4c3a-0000-4000-8000-000000000001")
ALL = [
    AtCapacity(3),
    HandleNotFound(ID),
    SpawnFailed("nope was not found", errno.ENOENT),
    SpawnFailed("cannot enter /nope", errno.ENOENT, "cwd"),
    PtyIoError("cannot write", errno.EIO),
    PtyIoError("a long line", errno.EMSGSIZE, "Send shorter lines."),
    PtyInternalError("the pool is closed"),
    CommandTimeout(1.5, "partial"),
]


@pytest.mark.parametrize("error", ALL, ids=repr)
def test_an_error_is_a_pty_error_with_advice(error: PtyError) -> None:
    assert isinstance(error, PtyError)
    assert error.what() and error.what_to_do()
    assert str(error) == f"{error.what()}. {error.what_to_do()}"


@pytest.mark.parametrize("error", ALL, ids=repr)
def test_an_error_survives_pickling(error: PtyError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_errors_carry_what_a_program_needs() -> None:
    assert AtCapacity(3).max == 3
    assert HandleNotFound(ID).id == ID
    failure = SpawnFailed("x", errno.EACCES, "cwd")
    assert (failure.reason, failure.errno, failure.stage) == ("x", errno.EACCES, "cwd")
    assert CommandTimeout(1.5, "partial").output == "partial"


def test_the_advice_tells_a_bad_program_from_a_bad_folder() -> None:
    assert "PATH" in str(SpawnFailed("x", errno.ENOENT))
    assert "working directory" in str(SpawnFailed("x", errno.ENOENT, "cwd"))


def test_a_command_timeout_is_a_timeout_error() -> None:
    with pytest.raises(TimeoutError):
        raise CommandTimeout(1, "")
