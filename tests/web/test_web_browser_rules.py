"""Grants and rules in a real browser on a phone's screen: offered in words, given, listed, revoked; and who agreed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from tests.integration.test_hub_rules import RULES, asking
from tests.support.browser import complaints, find, open_browser, phone, text_of, wait, wait_text
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process

pytestmark = pytest.mark.browser
PEOPLE = """
[[people]]
name = "Ada"
identities = ["cli:local"]
[[people]]
name = "Bert"
identities = ["web:Bert phone"]
"""


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process(f"[channels.web]\nport = 0\n{PEOPLE}") as running:
        (running.home.root / "policy.toml").write_text(RULES)
        assert running.cli("hub", "reload").returncode == 0
        yield running


@pytest.fixture
def browser(hub: HubProcess) -> Iterator[webdriver.Chrome]:
    running = open_browser(390, 844)
    phone(running, 390, 844)
    running.get(hub.json("web", "--no-open", "--name", "Bert phone")["links"]["local"])
    wait_text(running, "#link", "live")
    yield running
    assert complaints(running) == []
    running.quit()


def press(browser: webdriver.Chrome, css: str, until: str) -> None:
    """Tap until it has its effect: the page ignores taps while its list is moving."""

    def done(it: webdriver.Chrome) -> bool:
        if not it.find_elements("css selector", until):
            target = it.find_element("css selector", css)
            it.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)  # not below the tabs
            target.click()
        return bool(it.find_elements("css selector", until))

    wait(browser, done, f"{css} had no effect")


def keep(browser: webdriver.Chrome, folder: Path, name: str) -> None:
    """What was seen, for anyone who wants to look; and nothing is wider than the screen."""
    browser.save_screenshot(str(folder / f"{name}.png"))
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_card_offers_a_grant_in_words_and_the_rules_view_shows_and_ends_it(
    hub: HubProcess, browser: webdriver.Chrome, tmp_path: Path
) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        host.raise_prompt(asking("cargo build --release"))
        press(browser, "[data-prompt] .granting summary", ".granting[open]")
        find(browser, ".granting .spans")
        assert "`cargo build` with these options: -q" in text_of(browser, ".granting")
        told = [item.text for item in browser.find_elements("css selector", ".examples li code")]
        assert "cargo build --release" in told[:3] and "cargo build && rm -rf x" in told[3:] and len(told) == 6
        keep(browser, tmp_path, "card")
        press(browser, "[data-span='5 times']", ".spans button:disabled, .granting .good, [data-settled]")
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        host.raise_prompt(asking("cargo build --quiet"))
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}

        browser.execute_script("location.hash = '#rules'")
        wait_text(browser, "#grants", "`cargo build` with these options: -q")
        wait_text(browser, "#grants", "3 times")
        wait_text(browser, "#rules", "no-rm")
        wait_text(browser, "#decisions", "cargo build --quiet")
        assert text_of(browser, "#tabs [aria-current]") == "Rules"
        keep(browser, tmp_path, "rules")
        press(browser, "#grants .refuse", "#grants .empty")
        assert hub.json("grants", "list", "--json") == []


def test_a_card_shows_who_has_agreed_and_how_many_are_missing(hub: HubProcess, browser: webdriver.Chrome) -> None:
    with FakeHost(hub.home, tool="claude") as host:
        prompt_id = host.raise_prompt(asking("git push origin"))
        wait_text(browser, "[data-prompt] .votes", "2 people must approve (rule two-push)")
        assert not browser.find_elements("css selector", ".granting")
        assert hub.cli("reply", prompt_id, "1").returncode == 0
        wait_text(browser, "[data-prompt] .votes", "Ada approved. One more person must approve")
        press(browser, "[data-prompt] .choice.first", "[data-prompt] .choice.first:disabled, [data-settled]")
        assert host.answer_typing()["answer"] == {"kind": "choice", "value": "1"}
        find(browser, "[data-settled]")
