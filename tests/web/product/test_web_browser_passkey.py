"""Passkeys in a real browser with Chromium's virtual authenticator, a real hub and a real question."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from selenium import webdriver
from tests.support.browser import add_authenticator, complaints, find, open_browser, text_of, wait, wait_text
from tests.support.hubs import HubProcess, hub_process

pytestmark = pytest.mark.browser

RULE = """
[[rule]]
name = "signed"
verdict = "ask"
kind = "question"
proof = "passkey"
"""


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process("[channels.web]\nport = 0\n", start=False) as running:
        policy = running.home.root / "policy.toml"
        policy.write_text(RULE)
        policy.chmod(0o600)
        running.start()
        yield running


@pytest.fixture
def browser() -> Iterator[webdriver.Chrome]:
    running = open_browser()
    add_authenticator(running)
    yield running
    running.quit()


def enrol(hub: HubProcess, browser: webdriver.Chrome) -> None:
    link = hub.json("passkey", "add")["links"]["local"]
    assert link.startswith("http://localhost:")
    browser.get(link)
    wait_text(browser, "#link", "live")
    find(browser, "#passkey-name").send_keys("laptop")
    find(browser, "#passkey-add").click()
    wait_text(browser, "#passkey-panel .word", "Added laptop.")


def ask(hub: HubProcess, browser: webdriver.Chrome) -> tuple[subprocess.Popen[str], str]:
    asking = hub.popen("ask", "Deploy to production?")
    browser.execute_script("location.hash = '#prompts'")
    return asking, str(find(browser, "[data-prompt]").get_attribute("data-prompt"))


def ended(asking: subprocess.Popen[str]) -> int:
    asking.communicate()
    return asking.returncode


def press(browser: webdriver.Chrome, value: str, says: str = "") -> None:
    """Until the card has left, or says why not: the page ignores taps while its list is moving."""

    def pressed(it: webdriver.Chrome) -> bool:
        if says and says in text_of(it, "[data-prompt] .word.bad:not(.proof)"):
            return True  # looked at before the next tap, which takes the sentence away
        for button in it.find_elements("css selector", f"[data-prompt] [data-value={value}]:enabled"):
            button.click()
        return not says and not it.find_elements("css selector", "[data-prompt]")

    wait(browser, pressed, f"{value} was not taken")


def test_a_key_is_enrolled_by_its_link_and_agrees_with_one_touch(hub: HubProcess, browser: webdriver.Chrome) -> None:
    enrol(hub, browser)
    (kept,) = hub.json("passkey", "list")
    assert (kept["name"], kept["rp_id"]) == ("laptop", "localhost")
    asking, prompt_id = ask(hub, browser)
    wait_text(browser, ".proof", "sign it with your passkey")
    press(browser, "y")
    assert ended(asking) == 0
    (entry,) = [one for one in hub.json("audit", "show", "--event", "REPLY_RECEIVED") if one["prompt_id"] == prompt_id]
    assert entry["passkey"]["key_id"] == kept["key_id"]
    assert hub.json("audit", "verify")["ok"]
    assert complaints(browser) == []


def test_refusing_needs_no_key_and_agreeing_in_a_terminal_names_the_page(
    hub: HubProcess, browser: webdriver.Chrome
) -> None:
    enrol(hub, browser)
    asking, prompt_id = ask(hub, browser)
    refused = hub.cli("reply", prompt_id[:8], "y")
    assert refused.returncode != 0 and f"/#prompt/{prompt_id}" in refused.stderr + refused.stdout
    press(browser, "n")
    assert ended(asking) == 1
    assert hub.json("audit", "verify")["ok"]


def test_a_page_that_was_opened_by_its_address_says_why_it_cannot_agree(
    hub: HubProcess, browser: webdriver.Chrome
) -> None:
    enrol(hub, browser)
    link = hub.json("web", "--no-open")["links"]["local"].replace("localhost", "127.0.0.1")
    browser.get(link)
    wait_text(browser, "#link", "live")
    asking, _ = ask(hub, browser)
    wait_text(browser, ".proof", "open http://localhost:")
    press(browser, "y", "only for a name")
    press(browser, "n")
    assert ended(asking) == 1


def test_a_removed_key_agrees_to_nothing_and_another_browser_needs_a_code(
    hub: HubProcess, browser: webdriver.Chrome
) -> None:
    enrol(hub, browser)
    asking, _ = ask(hub, browser)
    removed = hub.cli("passkey", "remove", "laptop")
    assert removed.returncode == 0, removed.stderr
    press(browser, "y", "No passkey is enrolled")
    browser.execute_script("location.hash = '#settings'")
    find(browser, "#passkey-code").clear()
    find(browser, "#passkey-add").click()
    wait_text(browser, "#passkey-panel .word", "needs a code")
    assert hub.json("passkey", "list") == []
    asking.terminate()
    ended(asking)
