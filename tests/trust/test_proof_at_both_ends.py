"""Who dials proves who listens, and who listens knows who dialled: attacks from inside a session, as root and not."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support import hostile_tool
from tests.support.hubs import NO_WEB, HubProcess, hub_process, short_home
from tests.support.tier import first_of
from tests.support.waiting import LOOK_EVERY_S, wait_for, written

from atlasbridge.core import peer as peer_module
from atlasbridge.core.client.find_session import NoSuchSession, find_session
from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.peer import GONE, UNPROVEN, Peer, meet, started_at

HERE = Path(__file__).parent

USERS = first_of(["an ordinary user", "root"])
LOOPBACK = f'{NO_WEB}[hub]\ntransport = "loopback"\n'


@contextmanager
def attacked(attack: str, folder: Path, user: str, config: str = NO_WEB) -> Iterator[HubProcess]:
    """A real session whose tool carries out this attack."""
    with hub_process(config, ordinary=user != "root") as hub:
        words = (sys.executable, "-P", hostile_tool.__file__, attack, str(hub.home.root), str(folder))
        started = hub.cli("run", "--detach", "--name", "victim", "--", *words)
        assert started.returncode == 0, started.stderr
        yield hub


def is_nonce(said: str) -> bool:
    return said.startswith("\0") and len(said) <= 32


def outcome(folder: Path) -> Any:
    return json.loads(written(folder / "done", "the attack's end"))


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", ["false hub", "false hub beside", "false voucher"])
def test_no_host_and_no_command_speaks_to_a_false_hub(attack: str, user: str, tmp_path: Path) -> None:
    with attacked(attack, tmp_path, user) as hub:
        wait_for((tmp_path / "taken").exists, "the false hub")
        done = hub.cli("reply", "0123abcd", "sesame-4711")
        assert done.returncode != 0
        assert [said for said in outcome(tmp_path) if not is_nonce(said)] == [], "somebody spoke to it"
        assert not (tmp_path / "answered").exists()
        wait_for(lambda: hub.cli("ps").returncode == 0, "the hub has its socket again")
        (prompt,) = wait_for(lambda: hub.ask("prompts")["prompts"], "the question")
        assert hub.cli("reply", prompt["prompt_id"], "n").returncode == 0
        assert written(tmp_path / "answered") == "n"


@pytest.mark.parametrize("user", USERS)
def test_no_host_speaks_to_a_false_hub_at_a_port(user: str, tmp_path: Path) -> None:
    with attacked("false key", tmp_path, user, LOOPBACK) as hub:
        wait_for((tmp_path / "taken").exists, "the false hub")
        hub.cli("reply", "0123abcd", "sesame-4711")
        assert outcome(tmp_path) == [], "somebody spoke to it"
        assert not (tmp_path / "answered").exists()


@pytest.mark.parametrize("user", USERS)
def test_neither_attach_nor_a_hook_speaks_to_a_false_host(user: str, tmp_path: Path) -> None:
    with attacked("false host", tmp_path, user) as hub:
        assert written(tmp_path / "hooked") == "nothing", "the tool would have gone on"
        (false,) = hub.home.sessions.glob("*.sock")
        with pytest.raises(NoSuchSession):
            find_session(hub.home, false.stem)
        assert outcome(tmp_path) == [], "somebody spoke to it"


@pytest.mark.parametrize("user", USERS)
def test_the_key_of_a_port_lets_nobody_inside_a_session_decide(user: str, tmp_path: Path) -> None:
    with attacked("loopback key", tmp_path, user, LOOPBACK):
        assert outcome(tmp_path)["reason"] == "self"
        assert not (tmp_path / "answered").exists()


@pytest.mark.parametrize("user", USERS)
def test_no_way_past_the_hub_answers_an_own_or_another_session(user: str, tmp_path: Path) -> None:
    asks = (sys.executable, "-c", "print(input('Go on? [y/N] '))")
    with hub_process(NO_WEB, ordinary=user != "root") as hub:
        assert hub.cli("run", "--detach", "--name", "innocent", "--", *asks).returncode == 0
        wait_for(hub.is_asked, "the innocent question")
        person = subprocess.Popen(hub.command("events", "--follow"), env=hub.environ, stdout=subprocess.DEVNULL)
        try:
            (tmp_path / "person").write_text(str(person.pid))
            words = (sys.executable, "-P", hostile_tool.__file__, "many ways", str(hub.home.root), str(tmp_path))
            assert hub.cli("run", "--detach", "--name", "victim", "--", *words).returncode == 0
            came = outcome(tmp_path)
        finally:
            person.kill()
            person.wait()
        refused = {"self", "still open", "no namespace"}
        wrong = {name: said for name, said in came.items() if ", " in name and said not in refused}
        assert all("only a person can decide" in said and "answered" not in said for said in wrong.values()), wrong
        assert all(name.startswith("with another mark") for name in wrong), wrong
        if user != "root":
            assert came["take a descriptor of a person's command"] == "nothing"
            assert came["open the files of the hub"] == came["open the files of the host"] == "opened: []"
        assert len(came) >= 11 and not (tmp_path / "answered").exists()
        assert len(hub.ask("prompts")["prompts"]) == 2, "both still wait"


@pytest.mark.parametrize("user", USERS)
def test_a_number_that_another_process_has_now_decides_nothing(user: str, tmp_path: Path) -> None:
    numbers_can_be_chosen()
    with attacked("number", tmp_path, user) as hub:
        number = int(written(tmp_path / "number"))
        with held_by_an_outsider(number):
            (tmp_path / "reused").touch()
            answer = outcome(tmp_path)
        assert answer["reason"] == "self", answer
        assert not (tmp_path / "answered").exists() and hub.is_asked()


@pytest.fixture
def older_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without SO_PEERPIDFD, for this process and for all that it starts."""
    path = [str(HERE.parent / "support" / "older_kernel"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setattr(peer_module, "_SO_PEERPIDFD", 0x7FFF)


@pytest.mark.usefixtures("older_kernel")
@pytest.mark.parametrize("user", USERS)
def test_before_linux_6_5_a_nonce_shows_who_has_dialled(user: str, tmp_path: Path) -> None:
    test_a_number_that_another_process_has_now_decides_nothing(user, tmp_path)


@pytest.mark.usefixtures("older_kernel")
@pytest.mark.parametrize("config", first_of([NO_WEB, LOOPBACK]))
def test_before_linux_6_5_a_person_runs_attaches_and_answers(config: str, tmp_path: Path) -> None:
    script = f"print(input('Go on? [y/N] '), file=open({str(tmp_path / 'answered')!r}, 'w'))"
    with hub_process(config) as hub:
        hub.environ["ATLASBRIDGE_SESSION_ZYGOTE"] = "1"
        assert hub.cli("run", "--detach", "--name", "one", "--", sys.executable, "-c", script).returncode == 0
        (prompt,) = wait_for(lambda: hub.ask("prompts")["prompts"], "the question")
        find_session(hub.home, prompt["session_id"]).close()
        os.kill(hub.pid, signal.SIGKILL)  # the host starts the next hub and vouches for it
        wait_for(lambda: hub.cli("ps").returncode == 0, "the next hub")
        wait_for(lambda: hub.ask("prompts")["prompts"], "the question, again")
        done = hub.cli("reply", prompt["prompt_id"], "n")
        assert done.returncode == 0, done.stderr
        assert written(tmp_path / "answered").strip() == "n"


@pytest.mark.usefixtures("older_kernel")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("attack", first_of(["false voucher", "false hub"]))
def test_before_linux_6_5_no_host_and_no_command_speaks_to_a_false_hub(attack: str, user: str, tmp_path: Path) -> None:
    test_no_host_and_no_command_speaks_to_a_false_hub(attack, user, tmp_path)


def nonces(listens: Callable[[socket.socket], object]) -> tuple[Peer, Peer | None]:
    """What a client finds out about `listens`, which has a process of its own, and what that one has found out."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as link:
        listener.bind("")
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            listener.listen()
            os.write(theirs, b".")
            found = listens(listener.accept()[0])
            os.write(
                theirs, json.dumps([found.pid, found.uid, found.started] if isinstance(found, Peer) else 0).encode()
            )
            os._exit(0)
        os.read(ours, 1)
        link.connect(listener.getsockname())
        met = meet(link)
        told = json.loads(os.read(ours, 100))
        os.waitpid(child, 0)
        return met, Peer(*told) if told else None


@pytest.mark.usefixtures("older_kernel")
def test_both_ends_know_each_other_by_their_nonces() -> None:
    met, found = nonces(lambda link: meet(link, listens=True))
    assert met.started > 0
    assert found == Peer(os.getpid(), os.getuid(), started_at(os.getpid()))


def answer_by_a_child(link: socket.socket) -> None:
    """Another process than the one that listens answers, as when that one has ended."""
    if os.fork() == 0:
        meet(link, listens=True)
        os._exit(0)
    os.wait()


def play_back(link: socket.socket) -> None:
    """A nonce that was heard on another connection."""
    link.recv(32)
    link.sendall(b"\0" * 64)


@pytest.mark.usefixtures("older_kernel")
@pytest.mark.parametrize("false", [answer_by_a_child, play_back])
def test_nobody_else_answers_a_nonce(false: Callable[[socket.socket], None]) -> None:
    assert nonces(false)[0].started == GONE


@pytest.mark.usefixtures("older_kernel")
def test_a_caller_without_a_nonce_is_not_known() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b'{"op":"reply"}\n')
        assert meet(ours, listens=True).started == UNPROVEN
        assert ours.recv(100) == b'{"op":"reply"}\n', "and is heard all the same"


CLONE3 = 435  # of Linux, on every processor


def numbers_can_be_chosen() -> None:
    """Asked before a tool begins that waits for it."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    try:
        with held_by_an_outsider(pid):
            pass
    except PermissionError:
        pytest.skip("only root chooses the number that the next process gets")


@contextmanager
def held_by_an_outsider(number: int) -> Iterator[None]:
    """A process that nobody started inside a session gets this number, as if the numbers had come round again."""
    while (pid := fork_with_number(number)) is None:
        time.sleep(LOOK_EVERY_S)  # on a busy machine somebody else may have it for a while
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def fork_with_number(number: int) -> int | None:
    libc, chosen = ctypes.CDLL(None, use_errno=True), ctypes.c_int(number)
    how = struct.pack("11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(chosen), 1, 0)
    pid: int = libc.syscall(CLONE3, how, len(how))
    if pid == 0:
        signal.pause()
        os._exit(0)
    if pid < 0 and ctypes.get_errno() != errno.EEXIST:
        raise OSError(ctypes.get_errno(), "clone3")
    return pid if pid > 0 else None


def test_a_session_that_this_hub_does_not_know_decides_nothing_here(tmp_path: Path) -> None:
    """Its tool has taken the mark off, and whatever it left behind is nobody's child but its host's."""
    asks = (sys.executable, "-c", "print(input('Delete everything? [y/N] '))")
    words = (sys.executable, "-P", hostile_tool.__file__, "without a mark")
    with hub_process() as hub, short_home() as other:
        assert hub.cli("run", "--detach", "--", *asks).returncode == 0
        alone = HubProcess(other)
        assert alone.cli("run", "--detach", "--no-hub", "--", *words, str(hub.home.root), str(tmp_path)).returncode == 0
        assert outcome(tmp_path)["reason"] == "self"


@pytest.mark.parametrize("user", USERS)
def test_a_tool_that_has_ended_its_own_host_answers_nobody_else(user: str, tmp_path: Path) -> None:
    asks = (sys.executable, "-c", f"a = input('Go on? [y/N] '); open({str(tmp_path / 'answered')!r}, 'w').write(a)")
    with hub_process(NO_WEB, ordinary=user != "root") as hub:
        assert hub.cli("run", "--detach", "--name", "innocent", "--", *asks).returncode == 0
        wait_for(hub.is_asked, "the innocent question")
        words = (sys.executable, "-P", hostile_tool.__file__, "outlive host", str(hub.home.root), str(tmp_path))
        assert hub.cli("run", "--detach", "--name", "hostile", "--", *words).returncode == 0
        assert outcome(tmp_path)["reason"] == "self"
        assert hub.is_asked() and not (tmp_path / "answered").exists()


def test_nobody_inside_a_session_can_start_a_hub(tmp_path: Path) -> None:
    with attacked("own hub", tmp_path, "root") as hub:
        came = outcome(tmp_path)
        assert came["status"] != 0 and "inside a session" in came["said"], came
        wait_for(lambda: hub.cli("ps").returncode == 0, "a hub that the host has started")
        assert not (tmp_path / "answered").exists()


@pytest.mark.parametrize("user", USERS)
def test_a_hub_that_a_host_has_started_is_believed_by_all(user: str, tmp_path: Path) -> None:
    """It is a child of the host, as is what the tool leaves behind: the host says which one it is."""
    asks = (sys.executable, "-c", "print(input('Delete everything? [y/N] '))")
    with hub_process(ordinary=user != "root") as hub:
        for name in ("one", "two"):
            assert hub.cli("run", "--detach", "--name", name, "--", *asks).returncode == 0
        wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2, "both questions")
        before = hub.pid
        os.kill(before, signal.SIGKILL)
        wait_for(lambda: lock_holder(hub.home.lock) not in (before, None), "the next hub")
        wait_for(lambda: hub.cli("ps").returncode == 0, "a hub that answers")
        wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2, "both questions again")
        for prompt in hub.ask("prompts")["prompts"]:
            assert hub.cli("reply", prompt["prompt_id"], "n").returncode == 0
        host = Path(f"/proc/{hub.pid}/stat").read_text().rpartition(")")[2].split()[1]
        assert Path(f"/proc/{host}/comm").read_text().strip() in ("atlas-session", "systemd", "init") or host == "1"
