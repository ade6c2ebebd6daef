"""Names and words that are no text, or nested without end: anyone who brings them harms nobody else's session."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.hubs import HubProcess, hub_process
from tests.support.tier import first_of
from tests.support.waiting import wait_for

from atlasbridge.core import wire
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Prompt, PromptType

HALF = "\ud800"
ASKED = encode_prompt(Prompt(PromptType.TYPE_YES_NO, 0.95, "Go? (y/n)", "Go?", digest="d", safe_default="n"))


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        running.start()
        yield running


def say_hello(hub: HubProcess, session: dict[str, Any], prompt: dict[str, Any]) -> socket.socket:
    link = socket.socket(socket.AF_UNIX)
    link.connect(str(hub.home.socket))
    record = {"session_id": new_id(), "tool": "bash", "command": ["bash"], "cwd": "/x", "pid": os.getpid()}
    record |= {"host_pid": os.getpid(), "started_at": "2026-01-01T00:00:00.000000+00:00", **session}
    hello: dict[str, Any] = {"m": "hello", "session": record, "open": None, "typed": []}
    for message in (hello, {"m": "raise", "prompt_id": new_id(), "prompt": {**ASKED, **prompt}}):
        link.sendall(json.dumps(message).encode() + b"\n")
    return link


@pytest.mark.parametrize(
    ("session", "prompt"),
    first_of(
        [
            ({"command": [HALF, "a\x00b"]}, {}),
            ({"tool": HALF, "label": HALF, "cwd": f"/{HALF}"}, {}),
            ({}, {"question": HALF, "says": HALF, "screen": HALF, "excerpt": HALF}),
            ({}, {"choices": [{"value": "1", "label": HALF}], "constraints": {HALF: HALF}}),
            ({}, {"evidence": [[HALF, 0.5, HALF]], "safe_default": HALF}),
        ],
        quickly=3,
    ),
    ids=range(5),
)
def test_a_host_whose_words_are_no_text_keeps_nobody_from_looking(
    hub: HubProcess, session: dict[str, Any], prompt: dict[str, Any]
) -> None:
    with say_hello(hub, session, prompt):
        wait_for(lambda: hub.ask("status")["open_prompts"] == 1)
        assert len(hub.ask("sessions")["sessions"]) == len(hub.ask("prompts")["prompts"]) == 1
        for words in (("ps",), ("ps", "--json"), ("approvals", "--json"), ("audit", "export")):
            done = hub.cli(*words)
            assert done.returncode == 0, (words, done.stderr)
    assert hub.json("audit", "verify")["ok"]


def test_a_session_in_a_folder_whose_name_is_no_text_is_asked_about(hub: HubProcess, tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/odd\xff"
    os.mkdir(folder)
    command = [sys.executable, "-m", "atlasbridge", "run", "--detach", "--"]
    words = [
        *map(os.fsencode, command),
        b"bash",
        b"-c",
        b"read -p 'Go? (y/n) ' x; echo $x >said; exec sleep 600",
        b"\xfe",
    ]
    done = subprocess.run(words, cwd=folder, env=hub.environ, capture_output=True)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 1)
    (prompt,) = hub.ask("prompts")["prompts"]
    assert "odd" in prompt["cwd"]
    assert hub.cli("reply", prompt["prompt_id"], "y").returncode == 0
    wait_for(lambda: os.path.exists(folder + b"/said"))
    assert hub.cli("ps", "--json").returncode == 0
    hub.cli("kill", prompt["session_id"])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
def test_what_is_nested_without_end_is_no_message(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        wire.decode(text.encode())


def test_nonsense_at_a_sessions_open_question_ends_the_caller_and_not_the_session(hub: HubProcess) -> None:
    done = hub.cli("run", "--detach", "--", "bash", "-c", "read -p 'Go? (y/n) ' x; exec sleep 600")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 1)
    (session,) = hub.ask("sessions")["sessions"]
    sockets = [path for path in hub.home.root.rglob("*") if path.is_socket() and path != hub.home.socket]
    assert len(sockets) == 1, sockets
    for words in (b"[" * 100_000, b'{"m":"\\ud800"}', b'{"m":' + b"[" * 50_000, b"\x00\xff"):
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(2)
            caller.connect(str(sockets[0]))
            try:
                caller.sendall(words + b"\n")
                while caller.recv(65536):
                    pass
            except (TimeoutError, OSError):
                pass  # it was told nothing, or thrown out
    (prompt,) = hub.ask("prompts")["prompts"]
    assert hub.cli("reply", prompt["prompt_id"], "y").returncode == 0
    hub.cli("kill", session["session_id"])


@pytest.mark.parametrize("kind", first_of(["command", "edit", "fetch", "question"]))
def test_a_name_that_no_file_can_have_loses_no_question(hub: HubProcess, kind: str) -> None:
    """A hook tells where a command runs and which file is changed; a model may have written both."""
    words = {"kind": kind, "text": "a\x00b", "folder": "/x\x00y", "source": "hook", "complete": True, "shown": "a"}
    with say_hello(hub, {}, {"subject": {**words, "target": "/c\x00d", "digest": ""}}):
        wait_for(lambda: hub.ask("status")["open_prompts"] == 1)
    assert hub.json("audit", "verify")["ok"]
