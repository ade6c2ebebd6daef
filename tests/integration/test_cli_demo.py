"""The demo, whole: its questions, each answered from elsewhere, none twice, by a person or by the tour."""

from __future__ import annotations

import os
import pty
import re
import signal
import sys
import threading
from functools import partial

import pytest
from tests.support.hubs import HubProcess, hub_process, with_page
from tests.support.sessions import end_sessions, host_pids, processes_of
from tests.support.terminal import Terminal
from tests.support.waiting import wait_for
from tests.support.zygotes import zygotes

from atlasbridge.cli.demo import NEXT, PATIENCE_S, WHERE

ANSWERS = [
    ("yes_no", "y"),
    ("multiple_choice", "2"),
    ("yes_no", "y"),
    ("free_text", "better"),
    ("free_text", "s3cret!"),
    ("yes_no", "n"),
]


def test_what_the_demo_says_first_and_last_fits_a_terminal_of_40_columns() -> None:
    assert max(len(line) for line in (WHERE + NEXT).format(us="atlasbridge", wrap="").splitlines()) < 40


def test_the_demo_says_what_to_try_next_and_leaves_no_process_behind() -> None:
    with hub_process(with_page(), start=False) as hub, Terminal(hub.command("demo"), hub.home.root, 24, 40) as terminal:
        terminal.wait_for("Run it?")
        wait_for(lambda: hub.pid and (hub.home.root / "web.json").exists())
        terminal.type(b"\x03")
        assert terminal.wait_exit(60) == 130
        assert "Next, your own tool:" in terminal.text()
        assert "you can also answer at" not in terminal.text()  # at a page that ends with the demo
        wait_for(lambda: not hub.pid and not zygotes(hub.home.root), "the end of its processes")


def test_a_demo_whose_terminal_disappears_ends_with_all_that_it_started() -> None:
    with hub_process(start=False) as hub, Terminal(hub.command("demo"), hub.home.root, 24, 80) as terminal:
        terminal.wait_for("Run it?")
        wait_for(lambda: hub.pid)
        terminal.hang_up()
        wait_for(lambda: not processes_of(hub.home.root), "the end of its processes")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_agent_of_the_demo_ends_with_it(number: int) -> None:
    with hub_process() as hub, Terminal(hub.command("demo"), hub.home.root, 24, 80) as terminal:
        terminal.wait_for("Run it?")
        terminal.kill(number)
        wait_for(lambda: not host_pids(hub.home.root), "the end of its session")


def test_a_demo_that_was_detached_goes_on_elsewhere() -> None:
    with hub_process() as hub, Terminal(hub.command("demo"), hub.home.root, 24, 80) as terminal:
        wait_for(hub.is_asked)
        terminal.type(b"\x1dd")
        assert terminal.wait_exit() == 120
        assert "That was the demo" not in terminal.text()
        with Terminal(hub.command("attach", "demo"), hub.home.root, 24, 80) as again:
            again.wait_for("Run it?")
            again.type(b"n\r")
            again.wait_for("Then I skip the tests.")
            again.type(b"\x03")
            assert again.wait_exit() == 130


def test_a_tour_that_is_broken_off_answers_no_more() -> None:
    with hub_process(start=False) as hub, Terminal(hub.command("demo", "--tour"), hub.home.root, 24, 80) as terminal:
        terminal.wait_for("Run it?")
        terminal.type(b"\x03")
        assert terminal.wait_exit() == 130
        wait_for(lambda: not processes_of(hub.home.root), "the end of its processes", deadline_s=PATIENCE_S / 2)


def test_keys_typed_before_the_demo_starts_answer_nothing() -> None:
    with hub_process() as hub, Terminal(hub.command("demo"), hub.home.root, 24, 80) as terminal:
        terminal.type(b"y\r2\r")  # as while `make run` still installs
        wait_for(hub.is_asked)
        (prompt,) = hub.ask("prompts")["prompts"]
        assert prompt["type"] == "yes_no" and "test" in prompt["question"].lower(), prompt
        terminal.type(b"\x03")
        assert terminal.wait_exit(60) == 130


def test_the_tour_answers_by_itself_and_refuses_at_the_end() -> None:
    with hub_process() as hub, Terminal(hub.command("demo", "--tour"), hub.home.root, 40, 100) as terminal:
        assert terminal.wait_exit(120) == 0
        assert "your documents are still there" in " ".join(terminal.text().split())
        assert b"a-sample-password" not in terminal.output


def test_the_demo_asks_what_agents_ask_and_takes_the_answers() -> None:
    with hub_process() as hub:
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(sys.executable, hub.command("demo"), {**hub.environ, "TERM": "xterm"})
        seen = bytearray()
        reading = threading.Thread(target=_drain, args=(fd, seen))
        reading.start()
        try:
            asked = []
            for _, value in ANSWERS:
                wait_for(hub.is_asked)
                (prompt,) = hub.ask("prompts")["prompts"]
                asked.append((prompt["type"], prompt["constraints"]["secret"]))
                answer = hub.ask("reply", prompt_id=prompt["prompt_id"], value=value)
                assert answer["stage"] == "typed"
                wait_for(partial(_is_settled, hub, prompt["prompt_id"]))
            assert asked == [(kind, value == "s3cret!") for kind, value in ANSWERS]
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        finally:
            end_sessions(hub.home.root)
            reading.join()
            os.close(fd)
        assert b"212 passed" in seen and b"The file is changed" in seen
        assert b"Done: 1.5.0, note 'better'" in seen and b"a password of 7 characters" in seen
        assert b"your documents are still there" in seen
        assert b"s3cret!" not in seen
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode()).splitlines()  # a lone return ends one, too
        assert [line for line in shown if len(line) > 40 and "/" not in line] == [], "words are broken"
        written = b"".join(path.read_bytes() for path in hub.home.root.rglob("*") if path.is_file())
        assert b"s3cret!" not in written


def _drain(fd: int, into: bytearray) -> None:
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:
            return
        if not data:
            return
        into.extend(data)


def _is_settled(hub: HubProcess, prompt_id: str) -> bool:
    return all(item["prompt_id"] != prompt_id for item in hub.ask("prompts")["prompts"])
