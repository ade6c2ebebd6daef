"""The hub takes as many open files as it may: every session is one."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")


def test_the_hub_raises_the_usual_limit_of_open_files() -> None:
    code = "from atlasbridge.core.daemon.__main__ import raise_file_limit as up; up(); import resource as r; "
    code += "print(r.getrlimit(r.RLIMIT_NOFILE)[0])"
    shell = f'ulimit -S -n 256 && ulimit -H -n 4096 && "{sys.executable}" -c "{code}"'
    run = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert int(run.stdout) == 4096
