"""A session's own view in a real browser: what is queued for it, and that it was stopped and goes on."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import termios
from pathlib import Path

import pytest
from selenium import webdriver
from tests.support.browser import complaints, find, phone, wait, wait_text
from tests.support.hubs import HubProcess
from tests.support.waiting import wait_for

pytestmark = pytest.mark.browser


def test_instructions_are_queued_and_taken_back_and_a_stopped_session_goes_on(
    hub: HubProcess, browser: webdriver.Chrome
) -> None:
    assert hub.cli("run", "--detach", "--label", "web-api", "--", "sleep", "600").returncode == 0
    (session,) = hub.json("ps")
    browser.execute_script(f"location.hash = '#session/{session['session_id']}'")
    wait_text(browser, "h1", "web-api")
    wait(browser, lambda it: find(it, "#queue-words").is_displayed(), "the field")
    find(browser, "#queue-words").send_keys("run the tests")
    find(browser, "[aria-label='Queued instructions'] button[type=submit]").click()
    wait_text(browser, ".queue", "run the tests")
    assert [item["text"] for item in hub.json("queue")] == ["run the tests"]
    os.killpg(session["pid"], signal.SIGTSTP)
    wait(
        browser,
        lambda it: "Ctrl-Z stopped" in it.find_element("css selector", ".stack").text,
        "it is stopped",
    )
    browser.execute_script("window.scrollTo(0, 0)")  # the head of the page stays over what is scrolled under it
    find(browser, ".stack .asks button").click()
    wait_for(lambda: not hub.json("ps")[0]["stopped"])
    wait(browser, lambda it: "Ctrl-Z" not in it.find_element("css selector", ".stack").text, "it goes on")
    find(browser, ".queue button").click()
    wait_for(lambda: hub.json("queue") == [])
    assert complaints(browser) == []


@pytest.mark.parametrize("way", ["the page is left", "a terminal attaches", "a new hub is started"])
def test_a_session_takes_the_size_of_the_phone_and_gets_another_back_when(
    way: str, hub: HubProcess, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    phone(browser, 390, 844)
    told = tmp_path / "size"
    shows = f'trap "stty size | tee {told}" WINCH; stty size | tee {told}; while :; do sleep 0.1; done'
    assert hub.cli("run", "--detach", "--label", "small", "--", "bash", "-c", shows).returncode == 0
    (session,) = hub.json("ps")

    def size() -> tuple[int, ...]:
        return tuple(map(int, told.read_text().split()))

    browser.execute_script(f"location.hash = '#session/{session['session_id']}'")
    wait_text(browser, ".term", "24 80")
    press(browser, "Fit to my screen")
    wait_for(lambda: len(size()) == 2 and size() != (24, 80))
    rows, cols = size()
    assert 8 <= rows <= 60 and 20 <= cols < 60
    wait_text(browser, ".term", f"{rows} {cols}")
    widths = browser.execute_script(
        "const it = document.querySelector('.term');"
        " return [it.scrollWidth, it.clientWidth, parseFloat(it.style.fontSize)]"
    )
    assert widths[0] <= widths[1] + 1 and widths[2] >= 11, widths
    assert find(browser, ".tools [aria-pressed=true]").text == "Fit to my screen"
    if way == "the page is left":
        browser.execute_script("location.hash = '#sessions'")
        wait_for(lambda: size() == (24, 80))
        assert complaints(browser) == []
    elif way == "a terminal attaches":
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(hub.command()[0], hub.command("attach", "small"), hub.environ)
        termios.tcsetwinsize(terminal, (30, 100))
        wait_for(lambda: size() == (30, 100))
        wait(browser, lambda it: not it.find_elements("css selector", ".tools [aria-pressed=true]"), "not lent")
        os.close(terminal)
    else:
        hub.kill_9()
        hub.start()
        wait_for(lambda: size() == (24, 80))
        wait(browser, lambda it: not it.find_elements("css selector", ".tools [aria-pressed=true]"), "not lent")


def test_what_a_session_has_changed_is_shown_file_by_file(
    hub: HubProcess, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    writes = "sleep 0.2; echo hello > made.txt; sleep 600"
    assert hub.cli("run", "--detach", "--", "bash", "-c", writes, cwd=tmp_path).returncode == 0
    (session,) = hub.json("ps")
    wait_for(lambda: (tmp_path / "made.txt").exists())
    browser.execute_script(f"location.hash = '#session/{session['session_id']}'")
    wait_text(browser, ".tools", "Changes")
    press(browser, "Changes")
    wait_text(browser, ".changes", "made.txt")
    assert "1 file changed · +1 −0 lines" in find(browser, ".changes").text
    assert "+hello" in find(browser, ".changes pre").text
    press(browser, "Changes")
    wait(browser, lambda it: find(it, ".term").is_displayed(), "the screen")
    assert complaints(browser) == []


def press(browser: webdriver.Chrome, name: str) -> None:
    """A button of the screen's tools."""
    found = "[...document.querySelectorAll('.tools button')].find((one) => one.textContent === arguments[0])"
    wait(browser, lambda it: it.execute_script(f"const it = {found}; it?.click(); return Boolean(it)", name), name)
