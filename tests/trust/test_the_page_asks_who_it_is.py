"""The same question at every way into the page: a login, a decision with a cookie or a token, over port and socket."""

from __future__ import annotations

import errno
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support import hostile_tool, page_person
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.page_client import API, enter_now
from tests.support.tier import first_of
from tests.support.waiting import wait_for, written

from atlasbridge.core.daemon import session_processes
from atlasbridge.core.daemon.session_processes import find_session_of, is_of_this_machine
from atlasbridge.core.peer import Look, Process, own_uid, trace_ancestry
from atlasbridge.core.sockdiag import find_connection

USERS = first_of(["an ordinary user", "root"])
WEB = "[channels.web]\nport = 0\n"


@contextmanager
def attacked(attack: str, folder: Path, user: str) -> Iterator[HubProcess]:
    with hub_process(WEB, ordinary=user != "root") as hub:
        written(hub.home.root / "web.json")
        here = str(Path(hostile_tool.__file__).parents[2])
        hub.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
        words = (sys.executable, "-P", hostile_tool.__file__, attack, str(hub.home.root), str(folder))
        assert hub.cli("run", "--detach", "--name", "greedy", "--", *words).returncode == 0
        yield hub


def link_of(hub: HubProcess) -> str:
    return str(hub.json("web", "--no-open")["links"]["local"])


def person(hub: HubProcess, *words: str) -> Any:
    """What a browser of the hub's user keeps when it has logged in, and the status of what it did then."""
    here = str(Path(hostile_tool.__file__).parents[2])
    environ = {**hub.environ, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])}
    less = hub.command()[: -len(HubProcess(hub.home, hub.home.config.read_text()).command())]
    done = subprocess.run(
        [*less, sys.executable, "-P", page_person.__file__, link_of(hub), *words],
        env=environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def put(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def outcome(folder: Path) -> Any:
    return json.loads(written(folder / "done", "the attack's end"))


def refused(folder: Path, hub: HubProcess) -> bool:
    came = outcome(folder)
    assert isinstance(came, list), came
    status, said = came
    assert (status, said["error"]) == (403, "self"), said
    return hub.is_asked() and not (folder / "answered").exists()


@pytest.mark.parametrize("user", USERS)
def test_a_link_that_a_tool_has_seen_does_not_let_it_in(user: str, tmp_path: Path) -> None:
    with attacked("login", tmp_path, user) as hub:
        link = link_of(hub)
        put(tmp_path / "link", link)
        assert refused(tmp_path, hub)
        if user == "root":
            with httpx.Client(base_url=link.partition("/#")[0]) as client:
                assert enter_now(client, link).status_code == 200, "and it is still good for the person"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", ["cookie", "page socket"])
def test_a_login_that_a_tool_has_read_decides_nothing(attack: str, user: str, tmp_path: Path) -> None:
    with attacked(attack, tmp_path, user) as hub:
        put(tmp_path / "found", json.dumps(person(hub)))
        assert refused(tmp_path, hub)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", ["cookie", "in flight", "thread"])
def test_a_token_that_a_tool_has_found_decides_nothing_however_it_hides(attack: str, user: str, tmp_path: Path) -> None:
    with attacked(attack, tmp_path, user) as hub:
        made = hub.json("token", "create", "ci", "--scope", "answer")
        put(tmp_path / "found", json.dumps({"token": made["token"]}))
        assert refused(tmp_path, hub)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("way", ["port", "socket"])
def test_a_person_logs_in_and_answers(way: str, user: str) -> None:
    with hub_process(WEB, ordinary=user != "root") as hub, FakeHost(hub.home) as host:
        written(hub.home.root / "web.json")
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        words = ("--socket", str(hub.home.root / "web.sock")) if way == "socket" else ()
        assert person(hub, prompt_id, "perhaps", *words)["status"] == 422, "it came as far as the gate"


def test_the_link_for_a_browser_lies_on_no_disk_and_is_for_this_user(tmp_path: Path) -> None:
    """What `atlasbridge web` hands to the browser stands on a command line, where others can read it."""
    with hub_process(WEB) as hub:
        written(hub.home.root / "web.json")
        opened = tmp_path / "opened"
        browser = tmp_path / "browser"
        browser.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{opened}.new' && mv '{opened}.new' '{opened}'\n")
        browser.chmod(0o755)
        hub.environ |= {"BROWSER": f"{shlex.quote(str(browser))} %s", "DISPLAY": ":7"}
        hub.environ.pop("SSH_CONNECTION", None)
        done = hub.cli("web", "--open")
        assert done.returncode == 0, done.stderr
        link = written(opened)
        key = link.rpartition(".")[2]
        files = [path for path in hub.home.root.rglob("*") if path.is_file()]
        assert files and not [path for path in files if key.encode() in path.read_bytes()]
        assert os.getuid() or as_nobody(link) == 403
        with httpx.Client(base_url=link.partition("/#")[0]) as client:
            assert enter_now(client, link).status_code == 200


def as_nobody(link: str) -> int:
    """The status that another user of this machine gets."""
    program = """
import hashlib, hmac, json, sys, urllib.error, urllib.request
url, _, rest = sys.argv[1].partition("/#link=")
who, _, key = rest.partition(".")
mac = lambda *parts: hmac.new(bytes.fromhex(key), "\\n".join(parts).encode(), hashlib.sha256).hexdigest()
greeted = json.load(urllib.request.urlopen(f"{url}/api/v1/hello?who={who}&challenge={'0' * 32}"))
body = {"link": who, "challenge": "0" * 32, "epoch": greeted["epoch"]}
body["proof"] = mac("page", "0" * 32, greeted["epoch"], who)
request = urllib.request.Request(f"{url}/api/v1/login", json.dumps(body).encode(), {"Content-Type": "application/json"})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
    less = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    done = subprocess.run([*less, "/usr/bin/python3", "-c", program, link], capture_output=True, text=True, cwd="/")
    return int(done.stdout) if done.stdout else 0


def pass_on_as_nobody(listener: socket.socket, port: int) -> None:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    while True:
        near = listener.accept()[0]
        far = socket.socket()
        far.connect(("127.0.0.1", port))  # `create_connection` imports a module that nobody may not be able to read
        while ready := select.select([near, far], [], [])[0]:
            if not (data := ready[0].recv(65536)):
                break
            (far if ready[0] is near else near).sendall(data)
        near.close()
        far.close()


@contextmanager
def relay_of_another_user(port: int) -> Iterator[int]:
    """A process of nobody's passes bytes on to the page: a proxy of the machine, or a container's."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pid = os.fork()
        if pid == 0:
            try:
                pass_on_as_nobody(listener, port)
            finally:
                os._exit(1)  # never back into the test
        try:
            yield int(listener.getsockname()[1])
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@pytest.mark.skipif(os.getuid() != 0, reason="another user's process is needed")
def test_a_relay_of_another_user_hides_nobody(tmp_path: Path) -> None:
    with attacked("relay", tmp_path, "root") as hub:
        made = hub.json("token", "create", "ci", "--scope", "answer")
        put(tmp_path / "found", json.dumps({"token": made["token"]}))
        with relay_of_another_user(json.loads((hub.home.root / "web.json").read_text())["port"]) as port:
            put(tmp_path / "relay", str(port))
            status, said = outcome(tmp_path)
        assert (status, said["error"]) == (403, "not_allowed"), said
        assert hub.is_asked() and not (tmp_path / "answered").exists()


@pytest.mark.parametrize(
    ("forwarded", "status"),
    [("203.0.113.7", 422), ("127.0.0.1", 403), ("203.0.113.7, 127.0.0.1", 403), ("::1", 403), ("", 403), ("x", 403)],
)
def test_a_proxy_says_for_whom_it_asks_and_nobody_of_this_machine_decides_through_it(
    forwarded: str, status: int
) -> None:
    with hub_process(f'{WEB}hosts = ["box.example"]\n') as hub, FakeHost(hub.home) as host:
        port = json.loads(written(hub.home.root / "web.json"))["port"]
        token = hub.json("token", "create", "ci", "--scope", "answer")["token"]
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        headers = {"Host": "box.example", "Authorization": f"Bearer {token}"}
        headers |= {"X-Forwarded-For": forwarded} if forwarded else {}
        answer = httpx.post(
            f"http://127.0.0.1:{port}{API}/prompts/{prompt_id}/reply",
            headers=headers,
            json={"value": "perhaps", "request_key": "0123456789abcdef"},
        )
        assert answer.status_code == status, answer.text


def test_a_child_that_ends_while_the_hub_looks_makes_no_person_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser starts others all the time, and each has its sockets for a moment."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as link:
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)

        def look_while_it_ends(pid: int, look: Look) -> tuple[Process, ...]:
            if pid == child:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            return trace_ancestry(pid, look)

        monkeypatch.setattr(session_processes, "trace_ancestry", look_while_it_ends)
        found = find_session_of(link.getsockname(), listener.getsockname(), (), (own_uid(),))
        assert found.inside_session == ""


def test_a_new_login_is_told() -> None:
    with hub_process(WEB) as hub:
        link = link_of(hub)
        with httpx.Client(base_url=link.partition("/#")[0], timeout=30) as first:
            enter_now(first, link)
            with first.stream("GET", f"{API}/events") as events:
                lines = events.iter_lines()
                next(lines)
                other = person(hub)
                told = next(line for line in lines if "logged in to the web page" in line)
        assert other["login_id"] in told and "this machine" in told


def test_the_kernel_is_asked_for_one_connection() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            listener = socket.create_server((host, 0), family=family)
        except OSError as error:
            assert family == socket.AF_INET6 and error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT), error
            continue  # this machine has no IPv6
        with listener, socket.create_connection((host, listener.getsockname()[1])) as link:
            client, server = link.getsockname()[:2], link.getpeername()[:2]
            found = find_connection(client, server)
            assert found is not None and found.uid == own_uid() and found.inode == os.fstat(link.fileno()).st_ino
            assert find_session_of(client, server, (), (own_uid(),)).inside_session == ""
            assert find_connection((host, 1), server) is None
            assert find_session_of((host, 1), server, (), (own_uid(),)).inside_session is None
    assert is_of_this_machine("127.0.0.9") and is_of_this_machine("::ffff:127.0.0.1")
    assert not is_of_this_machine("192.0.2.77")
    assert find_session_of(("192.0.2.77", 5), ("127.0.0.1", 6), (), (own_uid(),)).inside_session == ""
