"""Which modules need Unix.  All others must be importable with what Python has on Windows; the list only shrinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from tests.support.like_windows import environ_like_windows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="plays Windows on Unix")

NEEDS_UNIX = {
    *("adapters.pty", "adapters.external_adapter", "adapters.claude_code", "adapters.openai_cli"),
    *("cli.approvals_screen", "cli.system_hub", "cli.full_screen", "cli.zygote"),
    *("core.client.client", "core.host.attachment", "core.host.fork_server", "core.host.host"),
    "lab.record",
    *("os.tty.linux", "os.tty.macos", "os.tty.posix"),
    "specification",
}
LOOK = """
import importlib, json, pkgutil, atlasbridge
faults = {}
for module in pkgutil.walk_packages(atlasbridge.__path__, "atlasbridge."):
    if module.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(module.name)
    except (ImportError, AttributeError) as error:
        faults[module.name.removeprefix("atlasbridge.")] = str(error)
print(json.dumps(faults))
"""


def test_what_needs_unix_is_known_and_everything_else_is_there() -> None:
    environ = {**os.environ, **environ_like_windows()}
    done = subprocess.run([sys.executable, "-P", "-c", LOOK], env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    faults = json.loads(done.stdout)
    assert {name: fault for name, fault in faults.items() if name not in NEEDS_UNIX} == {}
    assert faults.keys() >= NEEDS_UNIX, "these no longer need it"


@pytest.mark.parametrize("words", [["attach"], ["version"], ["--help"], ["adapters", "list"], ["policy", "check"]])
def test_a_command_answers_or_says_why_it_cannot(words: list[str], tmp_path: object) -> None:
    environ = {**os.environ, **environ_like_windows(), "ATLASBRIDGE_HOME": str(tmp_path)}
    command = [sys.executable, "-P", "-m", "atlasbridge", *words]
    done = subprocess.run(command, env=environ, capture_output=True, text=True)
    assert done.returncode == (1 if words == ["attach"] else 0), done.stderr
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr
