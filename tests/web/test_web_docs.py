"""The examples of docs/api.md are run as they stand, by a shell, against a real server."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sample_prompt import MENU
from tests.support.threaded_hub import ThreadedHub

from atlasbridge.core.prompt.model import Refusal
from atlasbridge.web.api import OVER_HTTP as OPERATIONS
from atlasbridge.web.api import STATUS
from atlasbridge.web.settings import WebSettings

DOCS = Path(__file__).parents[2] / "docs"
API = (DOCS / "api.md").read_text()
EXAMPLES = re.findall(r"```sh\n(.*?)```", API, re.DOTALL)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHub]:
    running = ThreadedHub(Path(tmp_path_factory.mktemp("docs")))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def environment(hub: ThreadedHub) -> dict[str, str]:
    record = hub.ask(MENU)
    access = hub.hub.channel.site.access
    return {
        "AB": hub.url,
        "TOKEN": access.create_token("my-script", "answer")[1],
        "ADMIN": access.create_token("other", "admin")[1],
        "PROMPT": record.prompt_id,
        "SESSION": record.session_id,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed here")
def test_every_example_runs(environment: dict[str, str], tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 8
    output = []
    for example in EXAMPLES:
        command = ["bash", "-euo", "pipefail", "-c", example]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, (example, done.stdout, done.stderr)
        assert done.stdout.strip(), example
        output.append(done.stdout)
    everything = "\n".join(output)
    for expected in (
        '"status":"ok"',
        '"stage":"typed"',
        "409",
        '"error":"not_open"',
        '"event":"hello"',
        '"outcome":"expired"',
        "# TYPE",
    ):
        assert expected in everything, expected


def test_every_reason_of_a_refusal_is_explained() -> None:
    for reason in Refusal:
        if reason is not Refusal.NOT_ALLOWED:
            assert f"`{reason.value}`" in API, reason
    assert set(STATUS.values()) <= {int(status) for status in re.findall(r"^\| (\d{3}) \|", API, re.MULTILINE)}


def test_every_setting_is_explained() -> None:
    text = (DOCS / "howto" / "phone.md").read_text()
    for name in WebSettings.__slots__:
        assert f"`{name}`" in text, name


def test_every_scope_in_the_table_is_in_use() -> None:
    assert {operation.scope for operation in OPERATIONS} == {"", "read", "ask", "answer", "admin"}
