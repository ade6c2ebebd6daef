"""For all tests: a home folder that is nobody's, and generated examples that no deadline judges."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, so that a change is judged by what it changed; new ones are found with FRESH_EXAMPLES=1.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize="FRESH_EXAMPLES" not in os.environ
)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """What a shell, an editor or git reads from its user's home (a slow ~/.bashrc, say) must not decide a test."""
    home = tempfile.TemporaryDirectory(prefix="ab-home-", ignore_cleanup_errors=True)
    config.add_cleanup(home.cleanup)
    os.environ["HOME"] = home.name
    if "WITH_ZYGOTE" not in os.environ:  # `make test-all` runs the tests of `run` both ways
        os.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "0"  # a process more for every home; those that test it turn it on
