"""Every example of docs/ptypool.md is run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "ptypool.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
SAID = {
    '"echo", ["hello"]': "hello\nexit status 0\n",
    'await handle.send_line("ls -la")': "\ndrwx",
    "from ptypool.sync import": "\nPool full! Max capacity: 2\n",
    "Spawned after release": "Active: 2/2\nPool full! Max capacity: 2\nSpawned after release: ",
    "pool.acquire": "job 5",
    "handle.resize(120, 40)": "rows, columns: (40, 120)",
    "spawn_with_retry": "Spawn failed: my-cli was not found",
    "Session.open": "/usr\nhello\n",
    "adapter_for": "Task status: completed",
    "spawn_process(": "cwd 2",
}
FAKE_CLAUDE = """#!/bin/sh
echo '{"type":"result","subtype":"success","is_error":false}'
sleep 1000
"""


@pytest.fixture
def path_with_fakes(tmp_path: Path) -> str:
    """Programs that an example names and that need not be installed."""
    for name, text in (("claude", FAKE_CLAUDE), ("vim", "#!/bin/sh\nsleep 1000\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.mark.parametrize("mark", SAID)
def test_an_example_runs_and_says_what_it_should(mark: str, path_with_fakes: str) -> None:
    (example,) = [text for text in EXAMPLES if mark in text]
    environ = {**os.environ, "PATH": path_with_fakes, "PYTHONWARNINGS": "error", "PYTHONUNBUFFERED": "1"}
    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, env=environ)
    assert ran.returncode == 0 and ran.stderr == "", ran.stderr
    assert SAID[mark] in ran.stdout.replace("\r\n", "\n")


def test_no_example_is_forgotten() -> None:
    assert len(EXAMPLES) == len(SAID)
    assert all(any(mark in example for mark in SAID) for example in EXAMPLES)
