"""`approvals` on a real terminal: the whole question, keys that answer what is shown, over a restart of the hub."""

from __future__ import annotations

import re

from tests.integration.test_hub_rules import asking
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.sessions import wait_no_session
from tests.support.terminal import Terminal, run_in
from tests.support.waiting import wait_for

from atlasbridge.cli.approvals_screen import ARMING_S
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.values import replace


def watch(hub: HubProcess, rows: int = 24, cols: int = 80) -> Terminal:
    return Terminal(hub.command("approvals"), hub.home.root, rows, cols)


def let_pass(terminal: Terminal, seconds: float) -> None:
    """Until that much time is over, for what is ready only then; the terminal is read meanwhile."""
    clock = SystemClock()
    until = clock.now() + seconds
    terminal.wait_until(lambda: clock.now() > until, "time to pass")


def test_a_key_answers_the_prompt_that_is_shown_and_the_receipt_names_its_session() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="web-api") as host:
        host.raise_prompt(replace(YES_NO, excerpt="Drop the table? (y/n)"))
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("Drop the table? (y/n)")
            assert "web-api" in terminal.text() and "1 waits" in terminal.text()
            let_pass(terminal, ARMING_S)
            terminal.type("y")
            assert host.answer_typing()["answer"]["kind"] == "yes"
            terminal.wait_for("into web-api")
            terminal.wait_for("nothing is waiting for you")
            terminal.type("q")
            assert terminal.wait_exit() == 0
            assert terminal.settings() == terminal.settings_before and not terminal.screen.alternate


def test_a_key_pressed_as_a_prompt_appears_answers_nothing_and_says_so() -> None:
    with hub_process() as hub, FakeHost(hub.home) as host, watch(hub) as terminal:
        terminal.wait_for("nothing is waiting")
        while "too early" not in terminal.text():  # on a machine that was slow, the key was no early one: once more
            began = SystemClock().now()
            prompt_id = host.raise_prompt()
            terminal.wait_for("Continue? (y/n)")
            terminal.type("y")
            terminal.wait_until(lambda: re.search("too early|answering", terminal.text()), "a word about the key")
            if "too early" not in terminal.text():
                assert SystemClock().now() - began > ARMING_S, "it was answered at once"
                host.answer_typing()
                terminal.wait_for("nothing is waiting")
        (prompt,) = hub.ask("prompts")["prompts"]
        assert prompt["prompt_id"] == prompt_id and prompt["decided_by"] == ""
        terminal.type("\x03")
        assert terminal.wait_exit() == 0


def test_the_list_goes_on_over_a_restart_of_the_hub() -> None:
    with hub_process() as hub:
        options = ("--detach", "--name", "long-job")
        with run_in(hub.home.root, "sh", "-c", "printf 'Go on? (y/n) '; read a", options=options) as start:
            assert start.wait_exit() == 0
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("long-job")
            assert hub.cli("hub", "restart").returncode == 0
            terminal.wait_until(
                lambda: "the hub is back" in terminal.text() or "away" not in terminal.text(), "the hub"
            )
            wait_for(hub.is_asked)
            let_pass(terminal, ARMING_S)
            terminal.type("n")
            terminal.wait_for('Typed "No" into long-job')
            terminal.type("q")
            assert terminal.wait_exit() == 0
        wait_no_session(hub.home.root)


def test_a_session_is_attached_from_the_list_and_the_list_is_there_afterwards() -> None:
    with hub_process() as hub:
        options = ("--detach", "--name", "inner")
        with run_in(
            hub.home.root, "sh", "-c", "echo what came before; printf 'Go on? (y/n) '; read a", options=options
        ) as it:
            assert it.wait_exit() == 0
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("1 waits")
            terminal.type("a")
            terminal.wait_until(lambda: not terminal.screen.alternate and terminal.is_raw(), "the session itself")
            terminal.wait_for("what came before")
            terminal.type("\x1dd")
            terminal.wait_until(lambda: terminal.screen.alternate, "the list")
            terminal.wait_for("1 waits")
            terminal.wait_for("detached")
            terminal.type("q")
            assert terminal.wait_exit() == 0
        assert hub.cli("kill", "--force", hub.ask("sessions")["sessions"][0]["session_id"]).returncode == 0
        wait_no_session(hub.home.root)


def test_g_says_what_would_be_allowed_for_a_while_and_a_digit_gives_it() -> None:
    with hub_process() as hub, FakeHost(hub.home, tool="claude") as host:
        host.raise_prompt(asking("npm run test"))
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("npm run test")
            let_pass(terminal, ARMING_S)
            terminal.type("g")
            terminal.wait_for("Without asking, this would be allowed: `npm run test` with files of tests")
            assert terminal.text().count("  allows    ") == 3 and terminal.text().count("  does not    ") == 3
            let_pass(terminal, ARMING_S)
            terminal.type("x")
            terminal.wait_for("nothing was granted")
            let_pass(terminal, ARMING_S)
            terminal.type("g")
            terminal.wait_for("2 5 times")
            let_pass(terminal, ARMING_S)
            terminal.type("2")
            assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
            terminal.wait_for("granted: `npm run test` with files of tests")
            assert [grant["uses_left"] for grant in hub.json("grants", "list", "--json")] == [4]
            terminal.type("q")
            assert terminal.wait_exit() == 0


def test_what_is_queued_for_a_tool_is_shown_with_who_said_it_and_goes_when_it_is_taken_back() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="web-api", tool="claude") as host:
        words = "Run the linter over everything, mend what it finds, and commit with a message that says why."
        assert hub.cli("queue", "add", "web-api", words).returncode == 0
        (item,) = hub.json("queue")
        with watch(hub) as terminal:
            terminal.wait_for("nothing is waiting for you · 1 queued")
            assert words.replace(" ", "") in "".join(terminal.text().split())
            assert item["queue_id"][:8] in terminal.text()
            host.raise_prompt()
            terminal.wait_for("1 waits · 1 queued (i)")
            terminal.wait_for("Continue? (y/n)")
            terminal.type("i")
            terminal.wait_for(f"web-api · {item['by_name']}")
            terminal.type("i")
            terminal.wait_until(lambda: item["queue_id"][:8] not in terminal.text(), "the question again")
            assert words[:40] in hub.cli("approvals", "--once").stdout
            assert hub.cli("queue", "off", item["queue_id"][:8]).returncode == 0
            terminal.wait_until(lambda: "queued" not in terminal.text(), "nothing queued")
            terminal.type("q")
            assert terminal.wait_exit() == 0
