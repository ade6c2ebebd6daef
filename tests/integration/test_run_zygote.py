"""Sessions whose host a zygote has forked: they are what they are without it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.sessions import host_pids, wait_no_session
from tests.support.terminal import ATLASBRIDGE, Terminal
from tests.support.waiting import wait_for, written
from tests.support.zygotes import (
    SWITCH,
    children_of,
    environ_with_zygote,
    parent_of,
    start_zygote,
    wait_spare,
    zygotes,
)

pytestmark = pytest.mark.landing

REPORT = """
import fcntl, json, os, resource, signal, sys, termios
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
def opened(fd):
    try: return os.readlink(f"/proc/self/fd/{fd}")
    except OSError: return ""
OWN = 0b11 << 31  # 32 and 33 are the C library's: anyone who was started by `posix_spawn` ignores them
try: folder = os.getcwd()
except OSError: folder = "gone"
json.dump({
    "environ": {name: value for name, value in os.environ.items() if name not in ("ATLASBRIDGE_SESSION", "_")},
    "marked": "ATLASBRIDGE_SESSION" in os.environ,
    "words": sys.argv[2:], "folder": folder, "umask": oct(os.umask(0)),
    "limits": [resource.getrlimit(number) for number in range(16)],
    "signals": [int(status[name], 16) & ~OWN for name in ("SigBlk", "SigIgn", "SigCgt")],
    "nice": os.getpriority(os.PRIO_PROCESS, 0), "leads": os.getsid(0) == os.getpid() == os.getpgrp(),
    "open": {fd: opened(fd) for fd in range(3, 30) if opened(fd) and "fd/" not in opened(fd)},
    "terminal": [os.isatty(fd) for fd in (0, 1, 2)], "size": list(os.get_terminal_size(0)),
    "flags": termios.tcgetattr(0)[:4], "user": [os.getresuid(), os.getresgid(), os.getgroups()],
    "oom": open("/proc/self/oom_score_adj").read(), "tracer": status["TracerPid"].strip(),
    "cgroup": open("/proc/self/cgroup").read(), "dumpable": os.access("/proc/self/environ", os.R_OK),
}, open(sys.argv[1], "w"))
"""


@pytest.fixture(autouse=True)
def zygotes_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


def report(home: Path, tmp_path: Path, way: str, **how: Any) -> dict[str, Any]:
    """What a tool sees of itself, started with a zygote ("forked") or without ("plain")."""
    script, out = tmp_path / "report.py", tmp_path / f"{way}.json"
    script.write_text(REPORT)
    how = {"command": [*ATLASBRIDGE, "run", "--no-hub", "--"], **how}
    environ = environ_with_zygote(home, SECRET="of this caller", **({SWITCH: "0"} if way == "plain" else {}))
    words = [*how["command"], sys.executable, str(script), str(out), "a word", "", "ü"]
    with Terminal(how.get("shell", lambda words: words)(words), home, 30, 99, environ, how.get("cwd")) as terminal:
        terminal.wait_exit()
    found: dict[str, Any] = json.loads(out.read_text())
    found["environ"].pop(SWITCH, None)
    return found


def both(home: Path, tmp_path: Path, **how: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    plain = report(home, tmp_path, "plain", **how)
    for zygote in zygotes(home):
        wait_spare(zygote)
    return plain, report(home, tmp_path, "forked", **how)


def test_a_host_is_forked_by_the_zygote(home: Path) -> None:
    zygote = start_zygote(home)
    with Terminal([*ATLASBRIDGE, "run", "--no-hub", "cat"], home, env=environ_with_zygote(home)) as terminal:
        terminal.wait_raw()
        assert parent_of(host_pids(home)[0]) == zygote
        terminal.type("hello\r")
        terminal.wait_until(lambda: terminal.text().count("hello") == 2, "the echo")
        terminal.type(b"\x04")
        assert terminal.wait_exit() == 0


def test_a_tool_sees_the_same_either_way(home: Path, tmp_path: Path) -> None:
    start_zygote(home)
    plain, forked = both(home, tmp_path)
    assert forked == plain
    assert forked["environ"]["SECRET"] == "of this caller"
    assert forked["words"] == ["a word", "", "ü"]


SHELLS: dict[str, Callable[[list[str]], list[str]]] = {
    "umask": lambda words: ["sh", "-c", 'umask 027; exec "$@"', "sh", *words],
    "an open file": lambda words: ["bash", "-c", 'exec 9</etc/passwd 17>/dev/null; exec "$@"', "sh", *words],
    "files at every low number": lambda words: [
        "bash",
        "-c",
        f'exec {" ".join(f"{number}</etc/passwd" for number in range(3, 25))}; exec "$@"',
        "sh",
        *words,
    ],
    "ignored signals": lambda words: ["sh", "-c", "trap '' INT HUP USR1; exec \"$@\"", "sh", *words],
    "closed error": lambda words: ["sh", "-c", 'exec "$@" 2>&-', "sh", *words],
    "closed input": lambda words: ["sh", "-c", 'exec "$@" <&-', "sh", *words],
    "a folder that is gone": lambda words: ["sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh", *words],
    "few files": lambda words: ["sh", "-c", 'ulimit -n 200; ulimit -c 0; exec "$@"', "sh", *words],
    "nice": lambda words: ["nice", "-n", "3", *words],
}


@pytest.mark.parametrize("name", SHELLS)
def test_what_a_caller_has_its_tool_gets(home: Path, tmp_path: Path, name: str) -> None:
    start_zygote(home)
    plain, forked = both(home, tmp_path, shell=SHELLS[name], cwd=tmp_path)
    assert forked == plain


def test_other_surroundings_get_another_zygote(home: Path) -> None:
    environ = environ_with_zygote(home)
    first = start_zygote(home, environ)
    subprocess.run(["nice", "-n", "3", *ATLASBRIDGE, "run", "--no-hub", "true"], env=environ, check=True)
    wait_for(lambda: len(zygotes(home)) == 2, "a zygote for the nice")
    second = next(pid for pid in zygotes(home) if pid != first)
    assert os.getpriority(os.PRIO_PROCESS, second) == os.getpriority(os.PRIO_PROCESS, first) + 3


def test_a_zygote_keeps_nothing_of_whoever_came_first(home: Path) -> None:
    zygote = start_zygote(home, environ_with_zygote(home, SECRET="sk-of-the-first"))
    assert b"sk-of-the-first" not in Path(f"/proc/{zygote}/environ").read_bytes()
    assert os.readlink(f"/proc/{zygote}/cwd") == "/"
    opened = [os.readlink(path) for path in Path(f"/proc/{zygote}/fd").iterdir()]
    assert all(name.startswith(("/dev/null", "socket:", str(home))) for name in opened), opened


def test_what_is_wrong_is_said_as_ever(home: Path) -> None:
    start_zygote(home)
    for words in (
        ["--nonsense", "true"],
        ["no-such-program-at-all"],
        ["--ttl", "soon", "true"],
        ["--help"],
        ["--backend", "conpty", "true"],
        [],
    ):
        told = []
        for switch in ({SWITCH: "0"}, {}):
            done = subprocess.run(
                [*ATLASBRIDGE, "run", *words],
                env=environ_with_zygote(home, **switch),
                capture_output=True,
                text=True,
            )
            told.append((done.returncode, done.stdout, done.stderr))
        assert told[0] == told[1]


@pytest.mark.parametrize("status", [0, 7])
def test_the_tools_status_is_ours(home: Path, status: int) -> None:
    start_zygote(home)
    words = [*ATLASBRIDGE, "run", "--no-hub", "sh", "-c", f"echo out; exit {status}"]
    done = subprocess.run(words, env=environ_with_zygote(home), capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (status, "out")


def test_hosts_outlive_their_zygote_and_the_next_session_gets_a_new_one(home: Path) -> None:
    zygote = start_zygote(home)
    environ = environ_with_zygote(home)
    with Terminal([*ATLASBRIDGE, "run", "--no-hub", "cat"], home, env=environ) as terminal:
        terminal.wait_raw()
        os.kill(zygote, signal.SIGKILL)
        wait_for(lambda: not zygotes(home), "the zygote's death")
        terminal.type("still here\r")
        terminal.wait_until(lambda: terminal.text().count("still here") == 2, "the echo")
        assert start_zygote(home) != zygote
        terminal.type(b"\x04")
        assert terminal.wait_exit() == 0
    wait_no_session(home)


def test_a_zygote_that_does_not_answer_is_not_waited_for_and_starts_nothing_later(home: Path, tmp_path: Path) -> None:
    zygote = start_zygote(home)
    spare = wait_spare(zygote)
    os.kill(zygote, signal.SIGSTOP)
    try:
        words = [*ATLASBRIDGE, "run", "--no-hub", "sh", "-c", f"echo ran >>'{tmp_path}/runs'"]
        subprocess.run(words, env=environ_with_zygote(home), check=True)
        assert (tmp_path / "runs").read_text() == "ran\n"
    finally:
        os.kill(zygote, signal.SIGCONT)
    wait_for(lambda: spare not in children_of(zygote), "the host that was meant for this caller to see that it left")
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_two_hosts_of_one_zygote_have_nothing_in_common_that_should_be_random(home: Path) -> None:
    start_zygote(home)
    words = [*ATLASBRIDGE, "run", "--detach", "--no-hub", "cat"]
    ids = [
        subprocess.run(words, env=environ_with_zygote(home), capture_output=True, text=True).stdout for _ in range(3)
    ]
    assert len(set(ids)) == 3
    assert len(host_pids(home)) == 3


LIGHT = ("typing", "re", "enum", "json", "pathlib", "socket", "signal", "collections", "functools", "threading")


def test_a_client_of_a_zygote_imports_next_to_nothing(home: Path, tmp_path: Path) -> None:
    start_zygote(home)
    out = tmp_path / "modules"
    code = (
        f"import os, sys; sys.argv = ['atlasbridge', 'run', '--no-hub', 'true']; leave = os._exit\n"
        f"def left(status):\n"
        f"    open({str(out)!r}, 'w').write(' '.join(m for m in {LIGHT!r} if m in sys.modules)); leave(status)\n"
        f"os._exit = left\nfrom atlasbridge.__main__ import main; main()"
    )
    with Terminal([sys.executable, "-c", code], home, env=environ_with_zygote(home)) as terminal:
        assert terminal.wait_exit() == 0
    assert out.read_text() == ""


@pytest.mark.parametrize("more", [(), ("--label", "web")])
def test_a_zygote_has_imported_all_that_a_host_needs(home: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    out = tmp_path / "late"
    script = tmp_path / "zygote.py"
    script.write_text(
        "import sys\n"
        "from atlasbridge.cli import zygote\n"
        "from atlasbridge.core.host import host\n"
        "known, finish = set(), host.SessionHost.finish\n"
        "def told(words, client):\n"
        "    known.update(sys.modules)\n"
        "    host_session(words, client)\n"
        "def finished(self, status):\n"
        "    finish(self, status)\n"
        f"    open({str(out)!r}, 'w').write(' '.join(['new:', *sorted(set(sys.modules) - known)]))\n"
        "host_session, zygote.host_session, host.SessionHost.finish = zygote.host_session, told, finished\n"
        "zygote.main()\n"
    )
    environ = environ_with_zygote(home)
    with subprocess.Popen([sys.executable, "-P", str(script)], env=environ) as zygote:
        wait_for(lambda: zygotes(home), "the zygote")
        words = [*ATLASBRIDGE, "run", *more, "--", "sh", "-c", "printf 'Go on? (y/n) '; read -r x; echo $x"]
        with Terminal(words, home, env=environ) as terminal:
            terminal.wait_for("Go on?")
            wait_for(lambda: _open_prompts(environ), "the prompt")
            reply = [*ATLASBRIDGE, "reply", _open_prompts(environ)[0], "y"]
            subprocess.run(reply, env=environ, check=True, capture_output=True)
            assert terminal.wait_exit() == 0
        told = written(out, "the host's word")
        zygote.kill()
    assert told == "new:"


def _open_prompts(environ: dict[str, str]) -> list[str]:
    done = subprocess.run([*ATLASBRIDGE, "approvals", "--json"], env=environ, capture_output=True, text=True)
    return [prompt["prompt_id"] for prompt in json.loads(done.stdout or "[]")]
