"""The zygote's parts by themselves: what a request says, which fingerprints are equal, when a fork server ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import wait_for
from tests.support.zygotes import children_of

from atlasbridge.cli import zygote
from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.home import Home
from atlasbridge.core.host import fork_server, spawn_request
from atlasbridge.core.host.fork_server import ForkServer, Serving, claim
from atlasbridge.core.host.spawn_request import (
    CWD,
    encode_request,
    interpreter_environ,
    parse_request,
    read_fingerprint,
    request_length,
    server_address,
    wants_zygote,
)
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.peer import Peer, meet

WORDS = st.binary(min_size=0, max_size=30).filter(lambda word: b"\0" not in word)
NAMES = WORDS.filter(lambda name: name and b"=" not in name)


@given(st.lists(WORDS, min_size=1, max_size=5), st.dictionaries(NAMES, WORDS, max_size=5), st.integers(0, 0o777))
def test_a_request_is_read_as_it_was_written(words: list[bytes], environ: dict[bytes, bytes], umask: int) -> None:
    told = [os.fsdecode(word) for word in words]
    request = encode_request(b"here\nand there", umask, [CWD, "0", "17"], told, environ)
    assert request_length(request) == len(request)
    read = parse_request(request)
    assert (read.fingerprint, read.umask, read.fds) == (b"here\nand there", umask, (CWD, "0", "17"))
    assert (list(read.words), read.environ) == (words, environ)


@given(st.binary(max_size=200))
def test_anything_else_is_no_request_and_does_no_harm(data: bytes) -> None:
    try:
        length = request_length(data)
        parse_request(data.ljust(length, b"\0"))
    except (ValueError, UnicodeDecodeError):
        pass


def test_fingerprint_are_the_same_for_a_child_and_name_what_differs() -> None:
    own = read_fingerprint(os.environ)
    code = "import os, sys; from atlasbridge.core.host.spawn_request import read_fingerprint as read\n"
    code += "sys.stdout.buffer.write(read(os.environ))"

    def of(*before: str, **environ: str) -> bytes:
        command = [*before, sys.executable, "-c", code]
        return subprocess.run(command, env={**os.environ, **environ}, capture_output=True, check=True).stdout

    if own:  # not where the tests themselves run with interpreter options of their own
        assert of() == own
    usual = of()
    assert usual != b""
    for other in (
        of("nice", "-n", "1"),
        of("sh", "-c", 'ulimit -n 77; exec "$@"', "sh"),
        of("sh", "-c", 'ulimit -c 1; exec "$@"', "sh"),
        of("taskset", "1") if os.cpu_count() != 1 else b"",
        of("ionice", "-c", "3"),
        of(LC_ALL="C.UTF-8"),
        of(MALLOC_ARENA_MAX="3"),
        of(PYTHONHASHSEED="1"),
    ):
        assert other != usual
        assert server_address("/home", other) != server_address("/home", usual)


def test_another_version_has_another_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spawn_request, "_has_options", lambda: False)
    before = read_fingerprint(os.environ)
    monkeypatch.setattr(spawn_request, "__version__", "99.0")
    assert server_address("/home", read_fingerprint(os.environ)) != server_address("/home", before)


def test_an_interpreter_with_options_of_its_own_has_no_zygote() -> None:
    code = "import os; from atlasbridge.core.host.spawn_request import read_fingerprint as read\n"
    code += "print(read(os.environ))"
    for option in ("-O", "-Xdev", "-Werror"):
        done = subprocess.run([sys.executable, option, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "b''"


@pytest.mark.parametrize("said", ["0", "off", "No", "FALSE"])
def test_one_variable_turns_it_off(said: str) -> None:
    assert not wants_zygote({"ATLASBRIDGE_SESSION_ZYGOTE": said})


def test_inside_a_session_none_is_wanted() -> None:
    assert wants_zygote({})
    assert not wants_zygote({"ATLASBRIDGE_SESSION": "abc"})


def test_a_zygote_gets_no_secret() -> None:
    environ = {"PYTHONPATH": "/x", "LANG": "C", "OPENAI_API_KEY": "sk", "HOME": "/root"}
    assert interpreter_environ(environ) == {"LANG": "C", "PYTHONPATH": "/x"}


def test_only_so_many_are_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    (tmp_path / "run").mkdir()
    for number in range(fork_server.MOST):
        (tmp_path / "run" / f"{number}.sock").touch()
    monkeypatch.setattr(os, "fork", _never)
    fork_server.start_fork_server(home, {})


def _never() -> int:
    raise AssertionError("a process was started")


class Cradle:
    """A zygote of the test's own, in a process of its own; a host of it only says what it was told."""

    def __init__(
        self,
        folder: Path,
        fresh: Callable[[], bool],
        hub: Callable[[], bool],
        idle_s: float = 60.0,
        look_s: float = 0.05,
    ) -> None:
        self.path = str(folder / "z.sock")
        self.log = folder / "log"
        self.pid = os.fork()
        if self.pid == 0:
            try:
                clock = SystemClock()
                lock = claim(self.path)
                if lock is not None:
                    serving = Serving(
                        *(self.path, b"the same", _host, fresh, hub, clock, SessionLog(self.log, clock)),
                        idle_s=idle_s,
                        look_s=look_s,
                    )
                    ForkServer(serving).run(lock)
            finally:
                os._exit(0)

    def __enter__(self) -> Cradle:
        wait_for(lambda: self.told() is not None or self._knock(), "the zygote to listen")
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _knock(self) -> bool:
        with socket.socket(socket.AF_UNIX) as caller:
            return caller.connect_ex(self.path) == 0

    def ask(self, fingerprint: bytes = b"the same") -> bytes:
        """What the host says first."""
        with socket.socket(socket.AF_UNIX) as caller:
            caller.settimeout(60)
            caller.connect(self.path)
            folder = os.open("/", os.O_PATH)
            request = encode_request(fingerprint, 0o22, [CWD], ["run", "me"], {b"A": b"1"})
            socket.send_fds(caller, [request], [folder])
            os.close(folder)
            if caller.recv(5) != b"here\n":
                return b""
            caller.sendall(b"go\n")
            return caller.recv(1000)

    def spare(self) -> int:
        """The host that waits: nobody who has come is left."""
        return wait_for(lambda: next(iter(children_of(self.pid)), 0), "a spare")

    def why(self) -> str:
        """Why it has ended."""
        wait_for(lambda: self.told() is not None, "the zygote's end")
        return self.told() or ""

    def told(self) -> str | None:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        ends = [json.loads(line) for line in lines if '"zygote ends"' in line]
        return ends[-1]["why"] if ends else None


def _host(words: list[str], client: Any) -> NoReturn:
    client.sendall(" ".join([*words, os.environ["A"], os.getcwd(), oct(os.umask(0))]).encode())
    client.recv(1)
    os._exit(0)


def yes() -> bool:
    return True


def no() -> bool:
    return False


def test_a_zygote_forks_a_host_for_each_request(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes) as zygote:
        assert [zygote.ask() for _ in range(3)] == [b"run me 1 / 0o22"] * 3
        assert os.stat(zygote.path).st_mode & 0o777 == 0o600


def test_other_fingerprint_are_refused(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes) as zygote:
        assert zygote.ask(b"others") == b""
        assert zygote.ask() != b""


def test_who_says_nothing_keeps_nobody_waiting(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes) as zygote, socket.socket(socket.AF_UNIX) as silent:
        silent.connect(zygote.path)
        silent.sendall(b"half a let")
        assert zygote.ask() == b"run me 1 / 0o22"


def test_a_zygote_of_older_code_forks_nothing_and_ends(tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    with Cradle(tmp_path, lambda: not changed.exists(), yes) as zygote:
        assert zygote.ask() != b""
        changed.touch()
        wait_for(lambda: _ask_quietly(zygote) == b"", "the older zygote to refuse")
        assert zygote.why() == "the program has changed"
        assert not os.path.exists(zygote.path)


def test_a_spare_of_older_code_serves_nobody_and_ends(tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    with Cradle(tmp_path, lambda: not changed.exists(), yes) as zygote:
        assert zygote.ask() != b""
        spare = zygote.spare()
        changed.touch()
        wait_for(lambda: _ask_quietly(zygote) == b"", "the older zygote to refuse")
        wait_for(lambda: not os.path.exists(f"/proc/{spare}"), "the older spare's end")


def test_a_spare_refuses_another_user_and_the_next_caller_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = tmp_path / "stranger"
    others = Peer(os.getpid(), os.getuid() + 1)
    monkeypatch.setattr(
        fork_server, "meet", lambda link, listens: others if stranger.exists() else meet(link, listens=listens)
    )
    with Cradle(tmp_path, yes, yes) as zygote:
        zygote.spare()
        stranger.touch()
        assert _ask_quietly(zygote) == b""
        stranger.unlink()
        zygote.spare()
        assert zygote.ask() == b"run me 1 / 0o22"


def test_where_spares_die_a_zygote_ends_when_nobody_needs_it_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForkServer, "_be_spare", lambda *_: os._exit(9))
    with Cradle(tmp_path, yes, yes, idle_s=0.1, look_s=1.5) as zygote:
        assert zygote.why() == "nobody came"


def _ask_quietly(zygote: Cradle) -> bytes:
    try:
        return zygote.ask()
    except OSError:
        return b""


def test_a_zygote_ends_with_the_hub(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, no) as zygote:
        assert zygote.why() == "the hub is gone"


def test_a_zygote_that_nobody_needs_ends(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes, idle_s=0.1) as zygote:
        assert zygote.why() == "nobody came"


def test_a_zygote_stays_while_a_session_of_its_own_lives(tmp_path: Path) -> None:
    looked, gone = threading.Event(), tmp_path / "gone"
    with Cradle(tmp_path, yes, lambda: not gone.exists()) as zygote, socket.socket(socket.AF_UNIX) as caller:
        caller.connect(zygote.path)
        folder = os.open("/", os.O_PATH)
        socket.send_fds(caller, [encode_request(b"the same", 0o22, [CWD], ["stay"], {b"A": b"1"})], [folder])
        os.close(folder)
        assert caller.recv(5) == b"here\n"
        caller.sendall(b"go\n")
        assert caller.recv(1000).startswith(b"stay")
        gone.touch()
        looked.wait(0.5)  # ten looks
        assert zygote.told() is None
        caller.close()
        assert zygote.why() == "the hub is gone"


def test_a_zygote_whose_socket_was_taken_away_ends(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes) as zygote:
        os.unlink(zygote.path)
        assert zygote.why() == "its socket is gone"


def test_of_two_at_one_address_one_lives(tmp_path: Path) -> None:
    with Cradle(tmp_path, yes, yes) as first:
        second = Cradle(tmp_path, yes, yes)
        os.waitpid(second.pid, 0)
        assert first.ask() != b""


PLAIN = st.dictionaries(
    st.sampled_from(["m", "rows", "cols", "past", "number"]), st.integers(-9, 70000) | st.just("size")
)


@given(PLAIN)
def test_plain_words_are_written_as_json_is(message: dict[str, str | int]) -> None:
    assert wire.decode(wire.encode_plain(message)) == message == wire.decode(wire.encode(message))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_messages_are_read_as_json_reads_them(message: dict[str, Any]) -> None:
    line = json.dumps(message).encode()
    assert wire.decode(b" " + line + b"\r") == json.loads(line) == message


@pytest.mark.parametrize(
    "line", [b"", b"[1]", b"1", b"{", b'{"a":1}x', b'{"a":1} {"b":2}', b"nul", b"\xff", b'{"a":\x01"b"}']
)
def test_what_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):
        wire.decode(line)


def test_every_module_that_the_zygote_imports_exists() -> None:
    """A module that was renamed would end it at its start, and sessions would quietly take the slow way."""
    for package, names in zygote.NEEDED.items():
        for name in names.split():
            assert find_spec(f"atlasbridge.{package}.{name}"), f"{package}.{name}"
