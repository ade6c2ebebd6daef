"""Later on the page, in a real browser with a real hub and program: kept, shown, taken back, asked again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium import webdriver
from tests.channels.web.test_web_browser_product import question, start
from tests.support.browser import complaints, find, open_browser, wait, wait_text
from tests.support.hubs import HubProcess, hub_process
from tests.support.sessions import end_sessions
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process("[channels.web]\nport = 0\n") as running:
        yield running
        end_sessions(running.home.root)


@pytest.fixture
def browser(hub: HubProcess) -> Iterator[webdriver.Chrome]:
    running = open_browser()
    running.get(hub.json("web", "--no-open")["links"]["local"])
    wait_text(running, "#link", "live")
    yield running
    running.quit()


def test_an_answer_for_later_is_given_shown_and_taken_back(hub: HubProcess, browser: webdriver.Chrome) -> None:
    start(hub, 'read -p "Overwrite config? [y/N] " a; echo "one:$a"; sleep 600')
    question(hub, browser, "Overwrite config?")
    find(browser, ".later summary").click()
    find(browser, ".later .when").send_keys("in 2h")
    find(browser, ".later .postpone").click()
    wait(browser, lambda it: it.find_elements("css selector", "[data-later]"), "what is kept")
    (kept,) = hub.json("later", "list")
    assert (kept["kind"], kept["by"]) == ("answer", "web:Chrome on Linux")
    wait_text(browser, "[data-later]", "is answered")
    wait_text(browser, ".ring span", "h")  # hours are left now, not minutes
    find(browser, ".take-back").click()
    wait(browser, lambda it: not it.find_elements("css selector", "[data-later]"), "nothing is kept")
    assert hub.json("later", "list") == []
    find(browser, ".snooze").click()
    wait_for(lambda: [one["kind"] for one in hub.json("later", "list")] == ["snooze"])
    assert complaints(browser) == []
