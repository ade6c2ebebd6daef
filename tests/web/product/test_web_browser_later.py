"""Later on the page, in a real browser with a real hub and program: kept, shown, taken back, asked again."""

from __future__ import annotations

import pytest
from selenium import webdriver
from tests.support.browser import complaints, find, wait, wait_text
from tests.support.hubs import HubProcess
from tests.support.waiting import wait_for
from tests.web.product.test_web_browser_product import question, start

pytestmark = pytest.mark.browser


def test_an_answer_for_later_is_given_shown_and_taken_back(hub: HubProcess, browser: webdriver.Chrome) -> None:
    start(hub, 'read -p "Overwrite config? [y/N] " a; echo "one:$a"; sleep 600')
    question(hub, browser, "Overwrite config?")
    find(browser, ".later summary").click()
    find(browser, ".later .when").send_keys("in 2h")
    find(browser, ".later .postpone").click()
    wait(browser, lambda it: it.find_elements("css selector", "[data-later]"), "what is kept")
    (kept,) = hub.json("later", "list")
    assert (kept["kind"], kept["by"]) == ("answer", "web:Chrome on Linux")
    wait_text(browser, "[data-later]", "Answers")
    wait_text(browser, ".ring span", "h")  # hours are left now, not minutes
    find(browser, ".take-back").click()
    wait(browser, lambda it: not it.find_elements("css selector", "[data-later]"), "nothing is kept")
    assert hub.json("later", "list") == []
    find(browser, ".snooze").click()
    wait_for(lambda: [one["kind"] for one in hub.json("later", "list")] == ["snooze"])
    assert complaints(browser) == []
