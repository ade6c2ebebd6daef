"""`approvals` on a real terminal: the whole question, keys that answer what is shown, over a restart of the hub."""

from __future__ import annotations

import re
from pathlib import Path

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
            assert "web-api" in terminal.text() and "1 waiting" in terminal.text()
            let_pass(terminal, ARMING_S)
            terminal.type("y")
            assert host.answer_typing()["answer"]["kind"] == "yes"
            terminal.wait_for("to web-api")
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
            terminal.wait_for('Sent "No" to long-job')
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
            terminal.wait_for("1 waiting")
            terminal.type("a")
            terminal.wait_until(lambda: not terminal.screen.alternate and terminal.is_raw(), "the session itself")
            terminal.wait_for("what came before")
            terminal.type("\x1dd")
            terminal.wait_until(lambda: terminal.screen.alternate, "the list")
            terminal.wait_for("1 waiting")
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
            terminal.wait_for("AtlasBridge would allow this without asking: `npm run test` with files of tests")
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
            terminal.wait_for("1 waiting · 1 queued (i)")
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


WORDS = (
    "add tests",
    "continue",
    "quit the old server first, then start the new one",
    "yes",
    "no, use the other branch: release/2.4",
    "q",
    "/compact keep the list of files",
    ":wq",
    "t",
    "  two blanks in front, and one behind ",
    "Größe prüfen, dann 日本語 — fertig ✓",
    "git commit -m 'x' && git push",
    "1",
    "kill -9 is not the answer; why does it hang?",
)
PASSWORDS = ("hunter2", "correct horse battery staple", ":;/?q", " leading", "x", "ÄÖü-ß-12345", "a1!A(){}[]|~^")
ASKING = """
printf '%s' "$$" > "$1.pid"
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
  seq 1 40; printf 'Instruction %s: ' "$n"; IFS= read -r words; printf '%s\\n' "$words" >> "$1"
done
for n in 1 2 3 4 5 6 7; do
  printf 'Password %s: ' "$n"; stty -echo; IFS= read -r words; stty echo; echo; printf '%s\\n' "$words" >> "$1"
done
"""


def test_every_sentence_and_password_that_is_typed_in_the_list_arrives_whole(tmp_path: Path) -> None:
    took = tmp_path / "took"
    with hub_process() as hub:
        tool = ("bash", "-c", ASKING.replace("\\\\", "\\"), "asking", str(took))
        with run_in(hub.home.root, *tool, options=("--detach", "--name", "words")) as start:
            assert start.wait_exit() == 0
        with watch(hub) as terminal:
            for number, said in enumerate((*WORDS, *PASSWORDS), 1):
                asks = f"Instruction {number}:" if number <= len(WORDS) else f"Password {number - len(WORDS)}:"
                terminal.wait_for(asks)
                terminal.type(said)  # at once: no letter is lost because the question has just appeared
                hidden = number > len(WORDS)
                terminal.wait_for(("secret: " + "•" * len(said)) if hidden else f"text: {said}".rstrip())
                let_pass(terminal, ARMING_S)
                terminal.type("\r")
                terminal.wait_until(lambda: "text: " not in terminal.text(), "the line to be sent")
                if hidden:
                    assert said == "x" or said not in terminal.text()
            terminal.wait_for("nothing is waiting for you")
            terminal.type("q")
            assert terminal.wait_exit() == 0
        wait_no_session(hub.home.root)
    assert took.read_text().splitlines() == [*WORDS, *PASSWORDS]


def test_leaving_a_question_alone_asks_first_and_the_question_stays_listed_with_a_way_back() -> None:
    with hub_process() as hub:
        tool = ("sh", "-c", "printf 'Go on? (y/n) '; read a")
        with run_in(hub.home.root, *tool, options=("--detach", "--name", "job")) as start:
            assert start.wait_exit() == 0
        wait_for(hub.is_asked)
        with watch(hub) as terminal:
            terminal.wait_for("Go on?")
            let_pass(terminal, ARMING_S)
            terminal.type("x")
            terminal.wait_for("Leave this question alone?")
            terminal.type("q")
            terminal.wait_for("nothing was done")
            let_pass(terminal, ARMING_S)
            terminal.type("x")
            terminal.wait_for("Leave this question alone?")
            let_pass(terminal, ARMING_S)
            terminal.type("x")
            terminal.wait_for("1 left alone or late (r: ask again)")
            for words in (("approvals", "--once"), ("status",), ()):
                listed = hub.cli(*words).stdout
                assert "left alone" in listed and "Go on?" in listed, words
            assert "not asked now" in hub.cli("ps").stdout
            terminal.type("r")
            terminal.wait_for("1 waiting")
            let_pass(terminal, ARMING_S)
            terminal.type("y")
            terminal.wait_for("nothing is waiting for you")
            terminal.type("q")
            assert terminal.wait_exit() == 0
        wait_no_session(hub.home.root)


def test_a_prompt_that_was_left_alone_is_asked_again_by_the_command_and_survives_a_restart_of_the_hub() -> None:
    with hub_process() as hub:
        tool = ("sh", "-c", "printf 'Go on? (y/n) '; read a")
        with run_in(hub.home.root, *tool, options=("--detach", "--name", "job")) as start:
            assert start.wait_exit() == 0
        wait_for(hub.is_asked)
        left = hub.cli("reply", "job", "leave")
        assert left.returncode == 0 and "--again" in left.stdout
        assert "left it alone" in hub.cli("reply", left.stdout.split("reply ")[1].split()[0], "y").stderr
        assert hub.cli("hub", "restart").returncode == 0
        wait_for(lambda: hub.ask("prompts")["still_waiting"])
        wait_for(lambda: hub.cli("reply", "job", "--again").returncode == 0, "the session to connect again")
        assert hub.cli("reply", "job", "n").returncode == 0
        wait_no_session(hub.home.root)
