"""The page of a real hub: the commands `web` and `token`, a real tool answered by HTTP, the hub's size, a kill -9."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.page_client import enter_now, greet_now
from tests.support.sessions import end_sessions
from tests.support.waiting import wait_for

API = "/api/v1"
MEGABYTE = 1024


@pytest.fixture
def hub(request: pytest.FixtureRequest) -> Iterator[HubProcess]:
    with hub_process("[channels.web]\nport = 0\n", cold=getattr(request, "param", False)) as running:
        yield running
        end_sessions(running.home.root)


@contextmanager
def opened(hub: HubProcess) -> Iterator[httpx.Client]:
    """A page that came in by the link that `atlasbridge web` prints."""
    shown = hub.json("web", "--no-open", "--scope", "admin")
    with httpx.Client(base_url=shown["url"], timeout=60, verify=False) as client:
        enter_now(client, shown["links"]["local"])
        yield client


def test_the_command_prints_a_link_that_opens_the_page_and_a_code_to_scan(hub: HubProcess) -> None:
    done = hub.cli("web", "--no-open", "--qr")
    assert done.returncode == 0, done.stderr
    assert "http://localhost:" in done.stdout and "/#link=" in done.stdout
    assert "▀" in done.stdout or "█" in done.stdout
    with opened(hub) as page:
        me = page.get(f"{API}/me").json()
        assert (me["identity"], me["scope"]) == ("web:page", "admin")
        assert hub.cli("web", "--log-out").stdout == "Logged out: 1\n"
        assert page.get(f"{API}/me").status_code == 401


def test_a_token_is_made_used_listed_and_revoked(hub: HubProcess) -> None:
    secret = hub.cli("token", "create", "ci", "--scope", "read").stdout.strip()
    url = hub.json("web", "--no-open")["url"]
    headers = {"Authorization": f"Bearer {secret}"}
    assert httpx.get(f"{url}{API}/prompts", headers=headers).status_code == 200
    (listed,) = hub.json("token", "list")
    assert (listed["name"], listed["scope"]) == ("ci", "read")
    assert secret.split("_", 2)[2] not in json.dumps(listed)
    twice = hub.cli("token", "create", "ci")
    assert (twice.returncode, "revoke it first" in twice.stderr) == (1, True)
    assert hub.cli("token", "revoke", "ci").returncode == 0
    assert httpx.get(f"{url}{API}/prompts", headers=headers).status_code == 401
    assert hub.cli("token", "revoke", "ci").returncode == 1
    for path in hub.home.root.iterdir():
        if path.is_file():
            assert secret.split("_", 2)[2].encode() not in path.read_bytes(), path.name


def test_a_password_shorter_than_twelve_is_refused(hub: HubProcess) -> None:
    done = hub.cli("web", "--set-password", given="short\nshort\n")
    assert done.returncode == 1
    assert "12" in done.stderr


def run_tool(hub: HubProcess, *command: str) -> tuple[int, int]:
    """The product's own `run` on a terminal of its own; returns its pid and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(hub.command()[0], [*hub.command("run"), *command], hub.environ)
    return pid, terminal


def the_prompt(page: httpx.Client) -> dict[str, Any]:
    found: list[dict[str, Any]] = []
    wait_for(lambda: bool(found.extend(page.get(f"{API}/prompts").json()["prompts"]) or found))
    return found[0]


def read_until(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        seen += os.read(terminal, 65536)
    return seen


def test_a_real_program_is_answered_from_the_page_and_everything_is_recorded(hub: HubProcess) -> None:
    with opened(hub) as page:
        script = 'printf "\\033[31mred\\033[0m\\n"; read -p "Continue? [y/N] " a; echo "got:$a"; sleep 600'
        pid, terminal = run_tool(hub, "bash", "-c", script)
        prompt = the_prompt(page)
        assert (prompt["type"], prompt["confidence"]) == ("yes_no", "high")
        screen = page.get(f"{API}/sessions/{prompt['session_id']}/screen", params={"styled": "true"}).json()
        assert screen["styled"][0][0] == ["red", 1, None, 0]
        answer = page.post(f"{API}/prompts/{prompt['prompt_id']}/reply", json={"value": "y"})
        assert (answer.status_code, answer.json()["stage"]) == (200, "typed")
        assert re.fullmatch(r"\d+:[0-9a-f]{12}", answer.json()["audit_head"])
        assert b"got:y" in read_until(terminal, b"got:y")

        def settled() -> dict[str, Any]:
            return dict(page.get(f"{API}/prompts/{prompt['prompt_id']}").json())

        wait_for(lambda: settled()["state"] == "resolved")
        assert settled()["decided_by"] == "web:page"
        given = settled()["answer"]
        assert (given["label"], given["by"]) == ("Yes", "web:page")
        assert page.get(f"{API}/audit/state").json()["ok"] is True
        names = [entry["event"] for entry in page.get(f"{API}/audit").json()["entries"]]
        assert {"WEB_LOGIN", "REPLY_RECEIVED", "REPLY_INJECTED", "PROMPT_RESOLVED"} <= set(names)
        figures = page.get(f"{API}/statistics").json()
        assert figures["answered_by"] == {"web:page": 1}
        assert figures["answer_s"]["count"] == 1
        leave(hub, pid, terminal)


def test_a_live_screen_follows_a_real_program(hub: HubProcess) -> None:
    with opened(hub) as page:
        pid, terminal = run_tool(hub, "bash", "-c", 'read -p "first? " a; echo "then $a"; read -p "second? " b')
        prompt = the_prompt(page)
        path = f"{API}/sessions/{prompt['session_id']}"
        with page.stream("GET", f"{path}/screen/stream") as stream:
            lines = (json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: "))
            assert "first?" in json.dumps(next(lines))
            page_typing = page.post(f"{path}/typing", json={"on": True})
            assert page_typing.status_code == 200
            assert page.post(f"{path}/keys", json={"data": "hello\r"}).status_code == 200
            assert any("then hello" in json.dumps(frame) for frame in lines)
        assert page.post(f"{path}/end", json={"force": True}).status_code == 200
        leave(hub, pid, terminal)


def leave(hub: HubProcess, pid: int, terminal: int) -> None:
    end_sessions(hub.home.root)
    read_to_the_end(terminal)
    os.waitpid(pid, 0)
    os.close(terminal)


def read_to_the_end(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass  # the other side of the terminal is gone: that is its end


@pytest.mark.parametrize("hub", [True], ids=["as users start it"], indirect=True)
def test_a_login_and_an_open_prompt_survive_kill_9_of_the_hub(hub: HubProcess) -> None:
    with opened(hub) as page:
        pid, terminal = run_tool(hub, "bash", "-c", 'read -p "Continue? [y/N] " a; echo "got:$a"; sleep 600')
        prompt = the_prompt(page)
        hub.kill_9()
        hub.start()
        wait_for(lambda: _alive(page))
        greet_now(page)
        assert the_prompt(page)["prompt_id"] == prompt["prompt_id"]
        path = f"{API}/prompts/{prompt['prompt_id']}/reply"
        wait_for(lambda: page.post(path, json={"value": "y"}).status_code == 200)
        assert b"got:y" in read_until(terminal, b"got:y")
        leave(hub, pid, terminal)


def _alive(page: httpx.Client) -> bool:
    try:
        return page.get(f"{API}/health").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="the kernel's figures are Linux's own")
@pytest.mark.parametrize("hub", [True], ids=["as users start it"], indirect=True)
def test_the_hub_with_its_page_stays_under_fifty_megabytes(hub: HubProcess) -> None:
    with opened(hub) as page, FakeHost(hub.home) as host:
        host.raise_prompt()
        for _ in range(50):
            page.get(f"{API}/prompts")
            page.get("/")
        page.get(f"{API}/openapi.json")
        page.get(f"{API}/statistics")
        assert own_share_kb(hub.pid) < 50 * MEGABYTE


def own_share_kb(pid: int) -> int:
    """What it alone has, and its part of the libraries that every program of this Python has in common."""
    try:
        name, told = "Pss:", Path(f"/proc/{pid}/smaps_rollup").read_text()
    except PermissionError:  # a hub hides its memory from its own user, but not how much of it there is
        name, told = "RssAnon:", Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in told.splitlines() if line.startswith(name)))


def test_run_imports_nothing_of_the_page() -> None:
    code = (
        "import sys, atlasbridge.cli.run; print([name for name in sys.modules if 'web' in name or 'starlette' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
