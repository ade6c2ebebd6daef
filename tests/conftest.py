"""For all tests: a home that is nobody's, generated examples that no deadline judges, no process left behind."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.left_behind import MARK, end_and_name, mark

# The same examples in every run, so that a change is judged by what it changed; FRESH_EXAMPLES=1 finds new ones.
same = "FRESH_EXAMPLES" not in os.environ
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=same)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """What a shell, an editor or git reads from its user's home (a slow ~/.bashrc, say) must not decide a test."""
    home = tempfile.TemporaryDirectory(prefix="ab-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name
    if os.name == "posix":
        _hear_signals()
    os.environ[MARK] = mark()
    if "WITH_ZYGOTE" not in os.environ:  # `make test-all` runs the tests of `run` both ways
        os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # a process more for every home; those that test it turn it on


def _hear_signals() -> None:
    """What `nohup` or a shell's `&` lets the tests ignore, all that they start would ignore, too."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_running() -> Iterator[None]:
    """Each file of tests ends what it has started: a process that goes on would disturb others, and for days."""
    yield
    left = end_and_name()
    assert not left, "left running: " + "; ".join(left)
