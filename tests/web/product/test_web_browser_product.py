"""The whole product in a real browser: a real hub, a real program on a real terminal, answered by taps and keys."""

from __future__ import annotations

import os
import pty

import pytest
from selenium import webdriver
from tests.support.browser import at_rest, complaints, find, phone, text_of, wait, wait_text
from tests.support.hubs import HubProcess
from tests.support.terminal import is_readable
from tests.support.waiting import DEADLINE_S

pytestmark = pytest.mark.browser

SCRIPT = """
read -p "Overwrite config? [y/N] " a; echo "one:$a"
PS3="Which colour? "; select b in red green blue; do echo "two:$b"; break; done
read -p "Project name: " c; echo "three:$c"
read -s -p "Password: " d; echo; echo "four:${#d}"
read -p "Press Enter to continue" e; echo "five"; sleep 600
"""


def start(hub: HubProcess, script: str, *options: str) -> int:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(hub.command()[0], [*hub.command("run"), *options, "bash", "-c", script], hub.environ)
    return terminal


def expect(terminal: int, words: str) -> None:
    """Read the terminal as its owner would, until the words are there."""
    seen = b""
    while words.encode() not in seen:
        assert is_readable(terminal, DEADLINE_S), f"{words!r} never came: {seen!r}"
        seen += os.read(terminal, 65536)


def question(hub: HubProcess, browser: webdriver.Chrome, words: str) -> None:
    try:
        wait_text(browser, "[data-prompt] .ask", words)
        at_rest(browser)
    except AssertionError as error:
        raise AssertionError(f"{error}; sessions: {hub.json('ps')}; log: {hub.home.log.read_text()}") from None


def act(browser: webdriver.Chrome, css: str, text: str = "") -> None:
    """Tap (or type and send) until the card has left: the page ignores taps while its list is moving."""
    prompt = find(browser, "[data-prompt]").get_attribute("data-prompt")
    if text:
        find(browser, ".say input").send_keys(text)

    def gone(it: webdriver.Chrome) -> bool:
        if it.find_elements("css selector", f"[data-prompt='{prompt}'] {css}:enabled"):
            it.find_element("css selector", f"[data-prompt='{prompt}'] {css}").click()
        return not it.find_elements("css selector", f"[data-prompt='{prompt}']")

    wait(browser, gone, f"{css} did not answer: {text_of(browser, '.word')}")


def test_every_question_of_a_real_program_is_answered_from_a_phone(hub: HubProcess, browser: webdriver.Chrome) -> None:
    phone(browser)
    terminal = start(hub, SCRIPT)
    question(hub, browser, "Overwrite config?")
    act(browser, "[data-value=y]")
    expect(terminal, "one:y")
    question(hub, browser, "Which colour?")
    act(browser, "[data-value='2']")
    expect(terminal, "two:green")
    question(hub, browser, "Project name:")
    act(browser, ".send", "shop")
    expect(terminal, "three:shop")
    question(hub, browser, "Password:")
    assert find(browser, ".say input").get_attribute("type") == "password"
    act(browser, ".send", "hunter2")
    expect(terminal, "four:7")
    question(hub, browser, "Press Enter")
    act(browser, "[data-value=enter]")
    expect(terminal, "five")
    wait_text(browser, ".card.over .stages .done:last-child", "taken")
    wait_text(browser, ".card.over .anchor", "audit ")
    for path in hub.home.root.rglob("*"):
        if path.is_file():
            assert b"hunter2" not in path.read_bytes(), path.name
    assert complaints(browser) == []
    os.close(terminal)


def test_the_page_comes_back_by_itself_after_kill_9_of_the_hub(hub: HubProcess, browser: webdriver.Chrome) -> None:
    terminal = start(hub, 'read -p "Continue? [y/N] " a; echo "got:$a"; sleep 600')
    question(hub, browser, "Continue?")
    hub.kill_9()
    wait_text(browser, "#link", "not connected")
    hub.start()
    wait_text(browser, "#link", "live")
    question(hub, browser, "Continue?")
    act(browser, "[data-value=n]")
    expect(terminal, "got:n")
    os.close(terminal)


def test_an_answer_at_the_terminal_takes_the_card_away(hub: HubProcess, browser: webdriver.Chrome) -> None:
    terminal = start(hub, 'read -p "Continue? [y/N] " a; echo "got:$a"; sleep 600')
    question(hub, browser, "Continue?")
    os.write(terminal, b"y\r")
    expect(terminal, "got:y")
    wait_text(browser, "#cards", "Nothing is waiting for you")
    os.close(terminal)


def test_the_card_counts_down_to_what_a_timer_will_answer(hub: HubProcess, browser: webdriver.Chrome) -> None:
    start(hub, 'read -p "Overwrite config? [y/N] " a; sleep 600')
    question(hub, browser, "Overwrite config?")
    wait_text(browser, ".late", "If nobody answers, a timer answers “No” in 9:")
    assert not find(browser, ".soon").is_displayed()
    act(browser, "[data-value=y]")
    terminal = start(hub, 'read -p "Delete all files? [y/N] " a; echo "two:$a"; sleep 600', "--ttl", "20s")
    question(hub, browser, "Delete all files?")
    wait_text(browser, ".soon", "In 0:1")
    assert text_of(browser, ".soon").endswith("a timer answers “No”, unless somebody answers first.")
    assert not find(browser, ".late").is_displayed()
    expect(terminal, "two:n")
    wait_text(browser, ".verdict, .word, #main", "the timer")
    assert complaints(browser) == []


def test_the_card_names_no_timer_where_none_will_answer(hub: HubProcess, browser: webdriver.Chrome) -> None:
    start(hub, 'read -p "Keep your local changes? [y/N] " a; sleep 600', "--ttl", "30s")
    question(hub, browser, "Keep your local changes?")
    wait_text(browser, ".late", "If nobody answers, nothing is typed.")
    assert not find(browser, ".soon").is_displayed()
