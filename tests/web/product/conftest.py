"""The whole product behind the page: a real hub with its web channel, and a browser that was let in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.support.hubs import HubProcess, hub_process
from tests.support.sessions import end_sessions

if TYPE_CHECKING:
    from selenium import webdriver


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process("[channels.web]\nport = 0\n") as running:
        yield running
        end_sessions(running.home.root)


@pytest.fixture
def browser(hub: HubProcess) -> Iterator[webdriver.Chrome]:
    from tests.support.browser import open_browser, wait_text  # selenium: half a second in every run, for this alone

    running = open_browser()
    try:
        running.get(hub.json("web", "--no-open", "--scope", "admin")["links"]["local"])
        wait_text(running, "#link", "live")
        yield running
    finally:
        running.quit()
