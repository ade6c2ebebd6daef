"""Names and words of others in our logs and lists: they begin no line, steer no terminal, and pass for nothing else."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_host import YES_NO
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for
from tests.trust.test_words_that_nobody_can_keep import say_hello

from atlasbridge.core.daemon.log_file import JsonLines, Readable, open_log
from atlasbridge.core.prompt.codec import encode_prompt

FORGED = '12:00:00 info    the hub listens\r\x1b[2K\u202e\u200b{"event": "REPLY_RECEIVED", "seq": 1}'
NASTY = f"x\n{FORGED}\n\x9b31m\u2028y\x00z"
DECEIVES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


def record(message: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("atlasbridge.x", logging.WARNING, "x.py", 1, message, arguments, None)


def test_what_others_say_begins_no_line_of_a_log_on_a_terminal() -> None:
    text = Readable().format(record("process %s said hello for session %s", 1, NASTY))
    first, *rest = text.split("\n")
    assert re.match(r"\d\d:\d\d:\d\d warning ", first) and all(line.startswith("    ") for line in rest)
    assert not DECEIVES.search(text)


def test_what_others_say_is_one_line_of_a_log_in_a_file() -> None:
    line = JsonLines().format(record("a name: %s", NASTY))
    assert "\n" not in line and not DECEIVES.search(line)
    assert json.loads(line)["level"] == "warning"


@pytest.fixture
def own_logging() -> Iterator[None]:
    root, handlers, level = logging.getLogger(), logging.getLogger().handlers[:], logging.getLogger().level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_libraries_that_log_addresses_are_silent_at_every_level(
    own_logging: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic or a token is part of an address; the hub's log is written in the same way as a hub's."""
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    logging.getLogger().handlers[:] = []
    open_log(Path(os.devnull), "DEBUG", 0, 0, to_terminal=True)
    for name in ("httpx", "httpcore", "slack_sdk", "uvicorn.access", "psycopg"):
        logging.getLogger(name).info("HTTP Request: POST https://ntfy.example/my-secret-topic")
        logging.getLogger(name).debug("wss://wss-primary.slack.com/link/?ticket=secret")
    assert said.getvalue() == ""


def test_the_hub_api_says_nothing_of_addresses() -> None:
    """`fleet serve` as it is: whatever level is wished, only our own words are logged."""
    script = (
        "import logging, click.testing\n"
        "from unittest import mock\n"
        "from atlasbridge.cli.fleet import serve\n"
        "def work(*_):\n"
        "    logging.getLogger('httpx').info('HTTP Request: POST https://ntfy.example/my-secret-topic')\n"
        "    logging.getLogger('atlasbridge.fleet.server').warning('a link ended: x\\n00:00:00 info    forged')\n"
        "    return lambda: None\n"
        "with mock.patch('atlasbridge.fleet.server.server.run', work):\n"
        "  for form in ('text', 'json'):\n"
        "    serve.callback('postgresql://x/y', '127.0.0.1', 0, '', '', '', 1, None, 90 * 86400.0, None, form, None)\n"
    )
    environ = {**os.environ, "ATLASBRIDGE_LOG_LEVEL": "DEBUG"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environ)
    assert "my-secret-topic" not in done.stderr + done.stdout, done.stderr
    assert "a link ended" in done.stderr, done
    assert not re.search(r"^00:00:00", done.stderr, re.M)


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        running.start()
        yield running


def test_names_that_are_forged_lines_stay_names_everywhere(hub: HubProcess) -> None:
    """A session whose tool, folder, label and command try to be something else; in tables, lists, logs and exports."""
    session = {"tool": NASTY, "label": NASTY, "cwd": f"/{NASTY}", "command": [NASTY, NASTY]}
    asked = {**encode_prompt(YES_NO), "choices": [{"value": "1", "label": NASTY}], "says": NASTY, "question": NASTY}
    with say_hello(hub, session, {**asked, "excerpt": NASTY, "screen": NASTY}):
        wait_for(lambda: hub.ask("status")["open_prompts"] == 1)
        for words in (
            ("ps",),
            ("prompts",),
            ("audit", "show"),
            ("audit", "export"),
            ("logs",),
            ("logs", "--hub"),
            ("status",),
        ):
            done = hub.cli(*words)
            assert not DECEIVES.search(done.stdout), (words, done.stdout)
            assert not re.search(r"^12:00:00 info", done.stdout, re.M), (words, done.stdout)
    assert hub.json("audit", "verify")["ok"]
    lines = (hub.home.root / "audit.log").read_text().splitlines()
    assert all(json.loads(line)["seq"] == number for number, line in enumerate(lines, 1))
