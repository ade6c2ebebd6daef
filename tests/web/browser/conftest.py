"""A real browser, one for all tests of a file, and a hub beside the test for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from tests.support.browser import open_browser, wait_text
from tests.support.threaded_hub import ThreadedHub


@pytest.fixture(scope="module")
def chromium() -> Iterator[webdriver.Chrome]:
    browser = open_browser()
    yield browser
    browser.quit()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ThreadedHub]:
    running = ThreadedHub(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def browser(chromium: webdriver.Chrome, hub: ThreadedHub) -> Iterator[webdriver.Chrome]:
    """A fresh page that was let in by its link; what it opened besides is closed again."""
    chromium.get_log("browser")
    chromium.get(hub.link())
    wait_text(chromium, "#link", "live")
    yield chromium
    for extra in chromium.window_handles[1:]:
        chromium.switch_to.window(extra)
        chromium.close()
    chromium.switch_to.window(chromium.window_handles[0])
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("data:text/html,done")
