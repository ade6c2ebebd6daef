"""The waiting probe on real programs, each on a terminal of its own: it must come to the right answer."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest
from tests.support.probe_stage import Start, python, stages

from atlasbridge.core.detection.events import ProbeState
from atlasbridge.os.tty import linux
from atlasbridge.os.tty.posix import echo_and_canon

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

start = pytest.fixture(stages)
READING, POLLING, BUSY, UNKNOWN = ProbeState.READING, ProbeState.POLLING, ProbeState.BUSY, ProbeState.UNKNOWN


@pytest.mark.parametrize(
    "argv",
    [
        ("bash", "-c", "read x"),
        ("cat",),
        ("sh", "-c", "cat | grep x"),
        ("sh", "-c", "cat | sort"),
        ("bash", "-c", "read x </dev/tty"),
        ("sh", "-c", "sh -c 'sh -c \"read x\"; true'; true"),
        ("bash", "-i"),
        python("input('name: ')"),
        python("import sys; sys.stdin.read()"),
        python("import subprocess; subprocess.run(['cat'])"),
        python("import os; os.readv(0, [bytearray(9)])"),
    ],
    ids=lambda argv: " ".join(argv)[-40:],
)
def test_a_program_blocked_in_read_is_reading(start: Start, argv: tuple[str, ...]) -> None:
    answer = start(*argv).until(READING)
    assert answer.pid > 0
    assert answer.command


def test_output_of_another_process_leaves_a_blocked_read_the_same_and_a_line_ends_it(start: Start) -> None:
    stage = start("bash", "-c", "(while :; do echo log; sleep 0.05; done) & read x; read y")
    before = stage.until(READING)
    stage.until_shown(b"log\r\nlog\r\nlog")
    after = stage.until(READING)
    assert before.turns > 0
    assert (after.pid, after.turns) == (before.pid, before.turns)
    os.write(stage.master, b"a line\n")
    assert stage.until_true(lambda answer: answer.state is READING and answer.turns != before.turns)


@pytest.mark.parametrize(("waits", "same"), [("input()", True), ("import select; select.select([0], [], [])", False)])
def test_lines_of_another_thread_count_as_the_programs_own_unless_its_read_blocks(
    start: Start, waits: str, same: bool
) -> None:
    code = (
        "import threading, time\ndef log():\n while True: print('log', flush=True); time.sleep(0.05)\n"
        f"threading.Thread(target=log, daemon=True).start()\n{waits}"
    )
    stage = start(*python(code))
    before = stage.until_true(lambda answer: answer.turns > 0)
    stage.until_shown(b"log\r\nlog\r\nlog\r\nlog")
    after = stage.until_true(lambda answer: answer.turns > 0)
    assert (after.turns == before.turns) is same


def test_a_program_that_is_signalled_when_keys_arrive_watches_the_terminal(start: Start) -> None:
    """As peco does, and other programs of the library termbox: no thread blocks in a read."""
    code = (
        "import fcntl, os, signal, tty\ntty.setraw(0)\nsignal.signal(signal.SIGIO, lambda *_: None)\n"
        "fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())\n"
        "fcntl.fcntl(0, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\nwhile True: signal.pause()"
    )
    answer = start(*python(code)).until_true(lambda answer: answer.state in (READING, POLLING))
    assert answer.canonical is False


def test_the_terminals_flags_tell_a_secret_from_a_line(start: Start) -> None:
    line = start(*python("input('name: ')")).until(READING)
    assert (line.echo, line.canonical) == (True, True)
    secret = start(*python("import getpass; getpass.getpass()")).until(READING)
    assert (secret.echo, secret.canonical) == (False, True)
    raw = start("bash", "-c", "read -n1 x").until_true(lambda answer: answer.state is READING and not answer.canonical)
    assert raw.canonical is False


def test_flags_that_change_during_a_look_are_those_of_the_reader(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = start(*python("import getpass; getpass.getpass()"))
    stage.until_true(lambda answer: answer.state is READING and answer.echo is False)
    real, before = echo_and_canon, [(True, True)]
    monkeypatch.setattr(linux, "echo_and_canon", lambda fd: before.pop() if before else real(fd))
    assert stage.until(READING).echo is False


@pytest.mark.parametrize(
    "code",
    [
        "import select; select.select([0], [], [])",
        "import select; select.select([0], [], [], 100000)",
        "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()",
        "import select; e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()",
        "import os, select; r, w = os.pipe(); select.select([0, r], [], [])",
        "import os, select; e = select.epoll(); e.register(0, 1); e.register(os.eventfd(0), 1); e.poll()",
        "import select, socket; a, b = socket.socketpair(); select.select([0, a], [], [])",
        "import select; i = select.epoll(); i.register(0, 1); o = select.epoll(); o.register(i.fileno(), 1); o.poll()",
        "import threading; t = threading.Thread(target=input); t.start(); t.join()",
        "import asyncio, sys\n"
        "async def main():\n"
        "    loop = asyncio.get_running_loop(); loop.add_reader(0, print); await loop.create_future()\n"
        "asyncio.run(main())",
    ],
)
def test_a_loop_that_watches_only_the_terminal_is_reading(start: Start, code: str) -> None:
    start(*python(code)).until(READING)


@pytest.mark.parametrize(
    ("code", "timer"),
    [
        ("import select\nwhile not select.select([0], [], [], 0.2)[0]: pass", True),
        ("import select\np = select.poll(); p.register(0, 1)\nwhile not p.poll(300): pass", True),
        ("import select, socket; s = socket.create_server(('127.0.0.1', 0)); select.select([0, s], [], [])", False),
        ("import select; select.select([0], [], [], 30)", True),
        (
            "import threading, time\nthreading.Thread(target=input, daemon=True).start()\nwhile True: time.sleep(0.1)",
            True,
        ),
    ],
)
def test_a_loop_that_also_waits_for_other_things_is_polling(start: Start, code: str, timer: bool) -> None:
    stage = start(*python(code))
    assert stage.until(POLLING).timer is timer
    stage.never(READING)


@pytest.mark.parametrize(
    ("code", "period_s"),
    [
        ("select.select([0], [], [], 30.5)", 30.5),
        ("p = select.poll(); p.register(0, 1); p.poll(2500)", 2.5),
        ("e = select.epoll(); e.register(0, 1); e.poll(12)", 12.0),
    ],
)
def test_the_length_of_a_timer_is_seen(start: Start, code: str, period_s: float) -> None:
    answer = start(*python(f"import select\nwhile True: {code}")).until(POLLING)
    assert answer.period_s == pytest.approx(period_s, abs=0.01)


@pytest.mark.parametrize(
    ("code", "serves"),
    [
        ("import select, socket; s = socket.create_server(('127.0.0.1', 0)); select.select([0, s], [], [])", True),
        ("import ctypes, select; f = ctypes.CDLL(None).inotify_init1(0); select.select([0, f], [], [])", True),
        ("import select; select.select([0], [], [], 30)", False),
    ],
)
def test_a_loop_with_work_that_comes_by_itself_says_so(start: Start, code: str, serves: bool) -> None:
    assert start(*python(code)).until(POLLING).serves is serves


@pytest.mark.parametrize(
    "argv",
    [
        ("sleep", "600"),
        ("sh", "-c", "while :; do :; done"),
        ("sh", "-c", "sleep 600 | cat"),
        ("sh", "-c", "sleep 600; read x"),
        python("import time; print('Continue? [y/N] ', end='', flush=True); time.sleep(600)"),
        python("import socket; s = socket.create_server(('127.0.0.1', 0)); s.accept()"),
        python("import select, socket; s = socket.create_server(('127.0.0.1', 0)); select.select([s], [], [])"),
        python("import os; r, w = os.pipe(); os.read(r, 1)"),
    ],
    ids=lambda argv: " ".join(argv)[-40:],
)
def test_a_program_that_does_not_wait_for_the_terminal_is_busy(start: Start, argv: tuple[str, ...]) -> None:
    stage = start(*argv)
    stage.until(BUSY)
    stage.never(READING, POLLING)


def test_a_reader_in_the_background_does_not_count(start: Start) -> None:
    stage = start("bash", "-mc", "cat & sleep 600")
    stage.until(BUSY)
    stage.never(READING)


def test_a_stopped_program_is_busy(start: Start) -> None:
    stage = start("cat")
    stage.until(READING)
    os.kill(stage.process.pid, signal.SIGSTOP)
    stage.until_true(lambda answer: answer.state is BUSY and "stopped" in answer.why)
    os.kill(stage.process.pid, signal.SIGCONT)
    stage.until(READING)


def test_a_poll_continued_after_a_stop_is_still_seen(start: Start) -> None:
    stage = start(*python("import select; p = select.poll(); p.register(0, 1); p.poll()"))
    stage.until(READING)
    os.kill(stage.process.pid, signal.SIGSTOP)
    stage.until(BUSY)
    os.kill(stage.process.pid, signal.SIGCONT)
    stage.until(READING)


def test_no_foreground_process_is_unknown(start: Start) -> None:
    stage = start("true")
    stage.process.wait()
    assert stage.probe.look(1.0, None).state is UNKNOWN


def test_an_event_loop_with_a_child_at_work_is_busy(start: Start) -> None:
    code = "import select, subprocess; subprocess.Popen(['sleep', '600']); select.select([0], [], [])"
    stage = start(*python(code))
    assert "sleep" in stage.until_true(lambda answer: "at work" in answer.why).why
    stage.never(READING, POLLING)
    assert stage.probe.look(1.0, 0.0).state is READING  # the child is older than the last input: a helper that stays


def test_a_helper_that_waits_for_words_is_no_work(start: Start) -> None:
    code = "import select, subprocess; p = subprocess.Popen(['cat'], stdin=-1, stdout=-1); select.select([0], [], [])"
    start(*python(code)).until(READING)


@pytest.mark.parametrize(
    ("child", "state"),
    [
        ("c.recv(1)", READING),  # of the program itself
        ("s = socket.create_server(('127.0.0.1', 0)); select.select([c, s], [], [])", READING),
        ("select.select([c], [], [], 600)", BUSY),
        ("os.popen('sleep 600').read()", BUSY),
        ("a, b = os.pipe(); os.fork() or time.sleep(600); os.close(b); os.read(a, 1)", BUSY),
    ],
)
def test_a_child_that_waits_for_the_program_itself_is_no_work(start: Start, child: str, state: ProbeState) -> None:
    code = (
        "import os, select, socket, time\n"
        "s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
        f"if not os.fork(): s.close(); {child}\n"
        "p, _ = s.accept(); s.close(); c.close(); print('ready', flush=True); select.select([0], [], [])"
    )
    stage = start(*python(code))
    stage.until_shown(b"ready")
    stage.until(state)


LEAVES_A_DAEMON = """
import os, select, socket
(here, there), parent = os.pipe(), os.getpid()
def leave(*fds):
    for fd in fds: os.dup2(os.open("/dev/null", os.O_RDWR), fd)
def listen(family, address):
    server = socket.socket(family); server.bind(address); server.listen()
    while os.getppid() == parent: select.select([server], [], [], 0.05)
if not os.fork():
    {daemon}
    while os.getppid() == parent: select.select([], [], [], 0.05)
    os._exit(0)
print("ready", flush=True)
select.select([0], [], [])
"""
PORT, NAME = "listen(socket.AF_INET, ('127.0.0.1', 0))", "listen(socket.AF_UNIX, '')"


@pytest.mark.parametrize(
    ("daemon", "state"),
    [
        (f"os.setsid(); leave(0, 1, 2, here, there); {PORT}", READING),
        (f"os.setsid(); leave(0, 1, 2, here, there); {NAME}", READING),
        (f"os.setsid(); leave(1, 2, there); {PORT}", READING),  # the program may tell it when to end
        (f"os.setsid(); leave(0, 1, 2, here); {PORT}", BUSY),  # it may have words for the program
        (f"os.setsid(); leave(0, 1, here, there); {PORT}", BUSY),  # and this one for the terminal
        (f"leave(0, 1, 2, here, there); {PORT}", BUSY),
        ("os.setsid(); leave(0, 1, 2, here, there)", BUSY),  # it awaits no calls
    ],
)
def test_a_daemon_that_awaits_calls_is_no_work_of_the_program(start: Start, daemon: str, state: ProbeState) -> None:
    stage = start(*python(LEAVES_A_DAEMON.format(daemon=daemon)))
    stage.until_shown(b"ready")
    stage.until_true(lambda answer: answer.state is state and (state is READING or "at work" in answer.why))
    stage.never({READING: BUSY, BUSY: READING}[state])


def test_a_request_without_an_answer_is_work(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            "import select, socket\n"
            f"s = socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))\n"
            "s.send(b'ask'); print('sent', flush=True)\n"
            "while s in select.select([0, s], [], [])[0]: s.recv(99)"
        )
        stage = start(*python(code))
        stage.until_shown(b"sent")
        peer, _ = server.accept()
        with peer:
            assert "no answer" in stage.until_true(lambda answer: "no answer" in answer.why).why
            stage.never(READING, POLLING)
            peer.send(b"answer")
            stage.until(POLLING)
            assert stage.probe.look(1.0, 0.0).state is POLLING


def test_a_request_older_than_the_last_input_does_not_count(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = (
            "import select, socket\n"
            f"s = socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))\n"
            "s.send(b'ask'); select.select([0, s], [], [])"
        )
        stage = start(*python(code))
        stage.until_true(lambda answer: "no answer" in answer.why)
        stage.until(POLLING, input_age_s=0.0)


def test_a_server_that_has_answered_is_not_at_work(start: Start) -> None:
    code = (
        "import select, socket\n"
        "s = socket.create_server(('127.0.0.1', 0)); print('port', s.getsockname()[1], '', flush=True)\n"
        "c, _ = s.accept(); c.recv(9); c.send(b'x'); print('answered', flush=True)\n"
        "select.select([0, c, s], [], [])"
    )
    stage = start(*python(code))
    stage.until_shown(b" \r\n")
    with socket.create_connection(("127.0.0.1", int(stage.output.split()[1]))) as client:
        client.send(b"ask")
        stage.until_shown(b"answered")
        stage.until(POLLING)


@pytest.mark.parametrize("child", [False, True])
def test_a_thread_that_computes_beside_the_terminal_is_busy(start: Start, child: bool) -> None:
    code = (
        "import select, subprocess, threading\n"
        "def work():\n"
        "    while True: sum(range(1000))\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        f"if {child}: subprocess.Popen(['sleep', '600'])\n"
        "print('ready', flush=True); select.select([0], [], [])"
    )
    stage = start(*python(code))
    stage.until_shown(b"ready")
    stage.until_true(
        lambda answer: answer.state is BUSY and (answer.runs, "at work" in answer.why) == (not child, child)
    )
    stage.never(READING)


def test_a_loop_that_computes_between_glances_at_the_terminal_is_busy(start: Start) -> None:
    code = "import select\nwhile True: sum(range(400000)); select.select([0], [], [], 0.001)"
    start(*python(code)).until_true(lambda answer: "processor" in answer.why)


@pytest.mark.parametrize(
    ("inner", "state"), [("read x", READING), ("sleep 600", BUSY), ("stty -echo; read x", READING)]
)
@pytest.mark.skipif(shutil.which("script") is None, reason="needs script(1)")
def test_a_terminal_inside_the_terminal_is_looked_into(start: Start, inner: str, state: ProbeState) -> None:
    stage = start("script", "-qc", f"bash -c '{inner}'", "/dev/null")
    answer = stage.until_true(lambda answer: answer.state is state and "inside" in answer.why)
    if state is READING:
        assert answer.echo is ("stty" not in inner)


def test_a_terminal_run_by_python_is_looked_into(start: Start) -> None:
    stage = start(sys.executable, "-c", "import pty; pty.spawn(['bash', '-c', 'read x'])")
    assert "inside" in stage.until(READING).why


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(
    ("code", "states"),
    [
        ("require('readline').createInterface({input: process.stdin}).question('name? ', () => {})", (READING,)),
        ("process.stdin.setRawMode(true); process.stdin.resume()", (READING,)),
        ("process.stdin.resume(); setInterval(() => {}, 100)", (POLLING,)),
        ("setInterval(() => {}, 1000)", (BUSY,)),
        ("process.stdin.resume(); require('child_process').spawn('sleep', ['600'])", (BUSY,)),
    ],
)
def test_node_programs(start: Start, code: str, states: tuple[ProbeState, ...]) -> None:
    start("node", "-e", code).until_true(lambda answer: answer.state in states)


_AS_NOBODY = """
import json, os, pty, sys, time
from atlasbridge.os.tty.linux import LinuxProbe
os.setgroups([]); os.setgid(65534); os.setuid(65534)
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
probe, deadline = LinuxProbe(master, pid), time.monotonic() + 20
while True:
    answer = probe.look(1.0, None)
    if answer.state == sys.argv[1] and answer.command == sys.argv[2] or time.monotonic() > deadline:
        break
    time.sleep(0.01)
print(json.dumps([answer.state, answer.why, answer.echo]))
os.close(master)
"""


def as_nobody(state: ProbeState, *argv: str) -> str:
    command = [sys.executable, "-c", _AS_NOBODY, state, *argv]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become an ordinary user")
@pytest.mark.parametrize(("state", "argv"), [(READING, ("cat",)), (BUSY, ("sleep", "600"))])
def test_an_ordinary_user_sees_as_much(state: ProbeState, argv: tuple[str, ...]) -> None:
    assert f'["{state}"' in as_nobody(state, *argv)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("su") is None, reason="needs root to become an ordinary user")
def test_a_privileged_program_that_asks_for_a_secret_is_reading() -> None:
    answer = as_nobody(READING, "su")
    assert "secret" in answer
    assert "false]" in answer
