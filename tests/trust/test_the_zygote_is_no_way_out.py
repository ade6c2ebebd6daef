"""A zygote forks processes that have other ancestors than the process that asks.  So a session's tool must not get one
from it, and no person's session may come from a zygote of a tool's."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sessions import end_all, host_pids
from tests.support.terminal import ATLASBRIDGE
from tests.support.waiting import wait_for, written
from tests.support.zygotes import SWITCH, environ_with_zygote, parent_of, start_zygote, zygotes

from atlasbridge.core.host import fork_server
from atlasbridge.core.peer import HOST_NAME, Peer, Process, is_inside


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv(SWITCH)
    path = Path(tempfile.mkdtemp(prefix="ab"))
    yield path
    end_all(path)
    shutil.rmtree(path, ignore_errors=True)


# A client that does not keep to the rules: it hides that it is inside a session.
ASKS = """
import os, sys
from atlasbridge.core.host.spawn_request import request_host
os.environ.pop("ATLASBRIDGE_SESSION", None)
os.environ["ATLASBRIDGE_HOME"] = sys.argv[1]
got = request_host(["--no-hub", "--detach", "--", "touch", sys.argv[2]], os.environ)
open(sys.argv[3], "w").write("refused" if got is None else "obeyed")
if got is not None:
    while got.recv(1000): pass
"""
# A zygote that a tool has put in the place of the person's.
POSES = """
import glob, os, socket, sys
from atlasbridge.core.host.spawn_request import FOLDER
(path,) = glob.glob(os.path.join(sys.argv[1], FOLDER, "*.sock"))
os.unlink(path)
listener = socket.socket(socket.AF_UNIX); listener.bind(path); listener.listen()
open(sys.argv[2], "w").write(path)
while True:
    caller, _ = listener.accept()
    got = caller.recv(65536)
    with open(sys.argv[3], "ab") as heard: heard.write(got + b"|")
    caller.close()
"""


def in_session(home: Path, *words: str) -> None:
    command = [*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", *words]
    subprocess.run(command, env=environ_with_zygote(home), check=True, stdout=subprocess.DEVNULL)


def script(tmp_path: Path, text: str) -> str:
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


def test_a_person_gets_a_host_and_a_sessions_tool_gets_none(home: Path, tmp_path: Path) -> None:
    start_zygote(home)
    words = [sys.executable, "-P", script(tmp_path, ASKS), str(home)]
    subprocess.run([*words, str(tmp_path / "by-person"), str(tmp_path / "one")], env=environ_with_zygote(home))
    assert (tmp_path / "one").read_text() == "obeyed"
    wait_for((tmp_path / "by-person").exists, "the person's tool")
    in_session(home, *words, str(tmp_path / "by-tool"), str(tmp_path / "two"))
    assert written(tmp_path / "two", "the tool's attempt") == "refused"
    assert not (tmp_path / "by-tool").exists()


def test_an_orphan_of_a_tool_that_left_its_session_gets_none_either(home: Path, tmp_path: Path) -> None:
    start_zygote(home)
    words = [sys.executable, "-P", script(tmp_path, ASKS), str(home), f"{tmp_path}/made", f"{tmp_path}/said"]
    later = shlex.quote(f"sleep 0.3; {shlex.join(words)}")
    in_session(home, "sh", "-c", f"env -i setsid sh -c {later} & sleep 5")
    assert written(tmp_path / "said", "the orphan's attempt") == "refused"
    assert not (tmp_path / "made").exists()


def test_a_session_inside_a_session_stays_below_it(home: Path) -> None:
    zygote = start_zygote(home)
    inner = shlex.join(["env", "-u", "ATLASBRIDGE_SESSION", f"ATLASBRIDGE_HOME={home}", *ATLASBRIDGE])
    in_session(home, "sh", "-c", f"{inner} run --no-hub --detach -- cat; cat")
    wait_for(lambda: len(host_pids(home)) == 2, "both sessions")
    by_parent = {parent_of(pid): pid for pid in host_pids(home)}
    assert by_parent.keys() == {zygote, by_parent[zygote]}, "the outer one's host is the parent of the inner one's"
    assert zygotes(home) == [zygote], "and no zygote was started in there"


def test_nobody_hands_a_session_to_a_zygote_of_a_tools(home: Path, tmp_path: Path) -> None:
    start_zygote(home)
    ready, heard = tmp_path / "ready", tmp_path / "heard"
    in_session(home, sys.executable, "-P", script(tmp_path, POSES), str(home), str(ready), str(heard))
    written(ready, "the address of the false zygote")
    words = [*ATLASBRIDGE, "run", "--no-hub", "echo", "all is well"]
    done = subprocess.run(words, env=environ_with_zygote(home, SECRET="sk-1"), capture_output=True, text=True)
    assert done.stdout.strip() == "all is well"
    assert written(heard, "a word of the false zygote's caller").strip("|") == "", "it was told something"


def test_another_user_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(fork_server, "meet", lambda link, listens: Peer(os.getpid(), os.getuid() + 1))
        with pytest.raises(fork_server.Refused, match="another user"):
            fork_server.check_client(ours)


def test_who_cannot_be_traced_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        monkeypatch.setattr(fork_server, "meet", lambda link, listens: Peer(0, os.getuid()))
        with pytest.raises(fork_server.Refused, match="traced"):
            fork_server.check_client(ours)


def test_a_line_is_inside_by_its_host_or_by_its_mark() -> None:
    shell = Process(9, 8, 50, name="bash")
    assert not is_inside((shell, Process(8, 1, 40, name="sshd")))
    assert is_inside((shell, Process(8, 1, 40, name=HOST_NAME)))
    assert is_inside((Process(9, 8, 50, mark="abc"), Process(8, 1, 40)))


def test_a_host_calls_itself_one_whichever_way_it_came(home: Path) -> None:
    zygote = start_zygote(home)
    words = [*ATLASBRIDGE, "run", "--no-hub", "--detach", "--", "cat"]
    for switch in ({}, {SWITCH: "0"}):
        environ = environ_with_zygote(home, **switch)
        subprocess.run(words, env=environ, check=True, stdout=subprocess.DEVNULL)
    hosts = host_pids(home)
    assert sorted(parent_of(pid) == zygote for pid in hosts) == [False, True]
    assert {Path(f"/proc/{pid}/comm").read_text().strip() for pid in hosts} == {HOST_NAME}
    assert zygote not in hosts
    assert Path(f"/proc/{zygote}/comm").read_text().strip() != HOST_NAME
