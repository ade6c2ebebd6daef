"""A session's own view in a real browser: what is queued for it, and that it was stopped and goes on."""

from __future__ import annotations

import os
import signal

import pytest
from selenium import webdriver
from tests.support.browser import complaints, find, wait, wait_text
from tests.support.hubs import HubProcess
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


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
    wait_text(browser, ".stack .asks", "Ctrl-Z has stopped it")
    browser.execute_script("window.scrollTo(0, 0)")  # the head of the page stays over what is scrolled under it
    find(browser, ".stack .asks button").click()
    wait_for(lambda: not hub.json("ps")[0]["stopped"])
    wait(browser, lambda it: not find(it, ".stack .asks").is_displayed(), "it goes on")
    find(browser, ".queue button").click()
    wait_for(lambda: hub.json("queue") == [])
    assert complaints(browser) == []
