"""More ways in which a tool could agree for itself: by terminals, environments, namespaces, sockets and pages."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from tests.integration.test_approvals import let_pass, watch
from tests.support import hostile_tool
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.page_client import API
from tests.support.waiting import wait_for, written
from tests.trust.test_proof_at_both_ends import USERS, attacked, is_nonce, outcome
from tests.trust.test_the_page_asks_who_it_is import WEB, person

from atlasbridge.cli.approvals_screen import ARMING_S
from atlasbridge.core.values import replace

TIOCGPTN = 0x80045430  # of Linux: the number of a terminal, from its other end


def decisions(hub: HubProcess) -> list[str]:
    """By whom, as the audit log has it."""
    return [str(one.get("decided_by")) for one in hub.json("audit", "show", "--event", "REPLY_RECEIVED")]


def untouched(hub: HubProcess, folder: Path) -> bool:
    return hub.is_asked() and not (folder / "answered").exists() and decisions(hub) == []


@pytest.mark.parametrize("user", USERS)
def test_no_environment_of_our_own_command_makes_it_a_persons(user: str, tmp_path: Path) -> None:
    with attacked("environment", tmp_path, user) as hub:
        came = outcome(tmp_path)
        assert len(came) == 6 and all("only a person can decide" in said for said in came.values()), came
        assert untouched(hub, tmp_path)


@pytest.mark.parametrize("user", USERS)
def test_our_commands_in_a_terminal_of_the_tools_own_take_no_key(user: str, tmp_path: Path) -> None:
    with attacked("own terminal", tmp_path, user) as hub:
        came = outcome(tmp_path)
        assert set(came) == {"approvals", "attach", "reply"} and untouched(hub, tmp_path), came


@pytest.mark.parametrize("user", USERS)
def test_a_process_in_a_namespace_of_its_own_is_traced(user: str, tmp_path: Path) -> None:
    with attacked("pid namespace", tmp_path, user) as hub:
        assert outcome(tmp_path)["reason"] in ("self", "no namespace")
        assert untouched(hub, tmp_path)


@pytest.mark.parametrize("user", USERS)
def test_a_socket_that_is_swapped_again_and_again_hears_nothing(user: str, tmp_path: Path) -> None:
    with attacked("swap sockets", tmp_path, user) as hub:
        wait_for((tmp_path / "taken").exists, "the first false socket")
        for _ in range(3):
            hub.cli("hub", "restart")
            assert hub.cli("reply", "0123abcd", "-", given="sesame-4711").returncode != 0
        (tmp_path / "enough").touch()
        assert [said for said in outcome(tmp_path) if not is_nonce(said)] == [], "somebody spoke to it"
        wait_for(lambda: hub.cli("ps").returncode == 0, "the hub has its socket again")
        wait_for(hub.is_asked, "the question")
        assert untouched(hub, tmp_path)


def name_of_terminal(master: int) -> str:
    number = fcntl.ioctl(master, TIOCGPTN, bytes(4))
    return f"/dev/pts/{int.from_bytes(number, sys.byteorder)}"


def test_a_person_s_screen_of_questions_takes_no_key_from_a_tool(tmp_path: Path) -> None:
    """As an ordinary user: root may do all of that."""
    with attacked("keys elsewhere", tmp_path, "an ordinary user") as hub, watch(hub) as terminal:
        terminal.wait_for("Delete everything?")
        let_pass(terminal, ARMING_S)
        (tmp_path / "terminal.new").write_text(f"{name_of_terminal(terminal.master)} {terminal.pid}")
        (tmp_path / "terminal.new").rename(tmp_path / "terminal")
        terminal.wait_until(lambda: (tmp_path / "done").exists(), "the attack's end")
        assert "" not in outcome(tmp_path).values(), outcome(tmp_path)
        assert untouched(hub, tmp_path)


def test_keys_that_a_child_pushes_into_the_tools_terminal_are_no_persons_answer(tmp_path: Path) -> None:
    """The kernel may allow it, and the tool takes them; the log says that no person has answered."""
    with attacked("push keys", tmp_path, "root") as hub:
        pushed = written(tmp_path / "pushed")
        if pushed == "yes":
            assert written(tmp_path / "answered") == "y"
            wait_for(lambda: not hub.is_asked(), "the end of the question")
        assert decisions(hub) == []
        ends = [one["reason"] for one in hub.json("audit", "show", "--event", "PROMPT_WITHDRAWN")]
        assert set(ends) <= {"moved_on", "exited"} and bool(ends) is (pushed == "yes")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://127.0.0.1:9"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "rebound.evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example", "Origin": "http://127.0.0.1.evil.example"}, 421),
        ({}, 401),
    ],
    ids=["another port", "a sandboxed frame", "another site", "rebinding", "a name like ours", "without the key"],
)
def test_a_page_of_the_tools_own_in_the_persons_browser_decides_nothing(headers: dict[str, str], status: int) -> None:
    """The browser sends the cookie along; the key of the login is in the storage of the page itself."""
    with hub_process(WEB) as hub, FakeHost(hub.home) as host:
        written(hub.home.root / "web.json")
        login = person(hub)
        prompt_id = host.raise_prompt(replace(YES_NO, excerpt="Delete everything? (y/n)"))
        wait_for(hub.is_asked)
        port = json.loads((hub.home.root / "web.json").read_text())["port"]
        url = f"http://127.0.0.1:{port}{API}/prompts/{prompt_id}/reply"
        answer = httpx.post(
            url, headers={"Cookie": login["cookie"], **headers}, json={"value": "y", "request_key": "0" * 16}
        )
        assert answer.status_code == status, answer.text
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        upgrade |= {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Cookie": login["cookie"], **headers}
        assert httpx.get(url.replace("/reply", ""), headers=upgrade).status_code >= 400
        assert hub.is_asked()


def test_what_an_agent_of_an_editor_leaves_behind_decides_nothing(tmp_path: Path) -> None:
    """`acp` adopts no orphans; the limit that its agent has stays with all that the agent starts."""
    asks = (sys.executable, "-c", "print(input('Go on? [y/N] '))")
    with hub_process(NO_WEB) as hub:
        assert hub.cli("run", "--detach", "--", *asks).returncode == 0
        wait_for(hub.is_asked, "the question")
        words = (sys.executable, "-P", hostile_tool.__file__, "without a mark", str(hub.home.root), str(tmp_path))
        with subprocess.Popen(
            hub.command("acp", "--", *words), env=hub.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as acp:
            try:
                assert outcome(tmp_path)["reason"] == "self"
            finally:
                acp.kill()
        assert hub.is_asked() and decisions(hub) == []
