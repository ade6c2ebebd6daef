"""The server's page in a real browser: logged in by a link, a card of each machine, answered with a click."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.browser import complaints, find, open_browser, text_of, wait, wait_text
from tests.support.fleet import HubApi, new_machine, until
from tests.support.sample_prompt import HOSTILE, hostile_prompt

from atlasbridge.core.values import replace
from atlasbridge.fleet.server import people

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


async def test_a_person_answers_for_two_machines_in_a_browser(fleet_server: HubApi, root: Path) -> None:
    one, two = await new_machine(fleet_server, root, "one"), await new_machine(fleet_server, root, "two")
    await people.add(fleet_server.database, "alice", "admin", "test")
    link = f"{fleet_server.url}/#login={await people.login_link(fleet_server.database, 'alice')}"
    first, second = one.sit(cwd="/srv/app", label="deploy"), two.sit(cwd="/etc")
    prompt_id = first.ask()
    other_id = second.ask(replace(hostile_prompt(HOSTILE[0]), digest="h"))
    browser = await asyncio.to_thread(open_browser)
    try:
        await asyncio.to_thread(browser.get, link)
        await asyncio.to_thread(wait_text, browser, "#total", "2 questions wait")
        assert "login" not in await asyncio.to_thread(lambda: browser.current_url)
        shown = await asyncio.to_thread(text_of, browser, "#prompts")
        assert "one · deploy · /srv/app" in shown and "Continue? (y/n)" in shown and "<script>" in shown
        assert not await asyncio.to_thread(browser.execute_script, "return window.owned")
        await asyncio.to_thread(lambda: find(browser, "#filters select").send_keys("one"))
        await asyncio.to_thread(wait_text, browser, "#total", "1 question waits")
        yes = "return [...document.querySelectorAll('.choices button')].find((one) => one.textContent === 'Yes')"
        button = await asyncio.to_thread(wait, browser, lambda it: it.execute_script(yes))
        await asyncio.to_thread(button.click)
        await until(lambda: prompt_id in first.typed)
        assert first.typed[prompt_id]["kind"] == "yes" and other_id not in second.typed
        await asyncio.to_thread(wait_text, browser, "#total", "0 questions wait")
        assert await asyncio.to_thread(complaints, browser) == []
    finally:
        await asyncio.to_thread(browser.quit)
    for machine in (one, two):
        await machine.stop()
