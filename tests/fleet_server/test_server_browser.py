"""The server's page in a real browser: logged in by a link, a card of each machine, answered with a click."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.support.browser import complaints, find, open_browser, text_of, wait, wait_text
from tests.support.fleet import HubApi, new_machine, until
from tests.support.moving_list import tap_a_moving_list
from tests.support.sample_prompt import HOSTILE, hostile_prompt

from atlasbridge.core.values import replace
from atlasbridge.fleet.server import people

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


async def link_for(server: HubApi, name: str) -> str:
    await people.add(server.database, name, "admin", "test")
    return f"{server.url}/#login={await people.login_link(server.database, name)}"


async def test_a_person_answers_for_two_machines_in_a_browser(fleet_server: HubApi, root: Path) -> None:
    one, two = await new_machine(fleet_server, root, "one"), await new_machine(fleet_server, root, "two")
    first, second = one.sit(cwd="/srv/app", label="deploy"), two.sit(cwd="/etc")
    prompt_id = first.ask()
    other_id = second.ask(replace(hostile_prompt(HOSTILE[0]), digest="h"))
    browser = await asyncio.to_thread(open_browser)
    try:
        await asyncio.to_thread(browser.get, await link_for(fleet_server, "alice"))
        await asyncio.to_thread(wait, browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
        assert "login" not in await asyncio.to_thread(lambda: browser.current_url)
        shown = await asyncio.to_thread(text_of, browser, "main")
        assert "deploy" in shown and "Continue? (y/n)" in shown and "<script>" in shown
        assert not await asyncio.to_thread(browser.execute_script, "return window.owned")
        row = f"[data-row$='{prompt_id}']"
        assert "one · " in await asyncio.to_thread(text_of, browser, row)
        await asyncio.to_thread(lambda: find(browser, row).click())
        card = f"[data-prompt$='{prompt_id}']"
        await asyncio.to_thread(find, browser, card)
        tapped = f"{card} [data-value=y]"
        await asyncio.to_thread(
            wait, browser, lambda it: first.typed or it.find_element("css selector", tapped).click()
        )
        await until(lambda: prompt_id in first.typed)
        assert first.typed[prompt_id]["kind"] == "yes" and other_id not in second.typed
        await asyncio.to_thread(wait_text, browser, ".receipt", "deploy")
        await asyncio.to_thread(find, browser, f"[data-prompt$='{other_id}']")
        for view, shown_there in (("sessions", "deploy"), ("machines", "connected")):
            await asyncio.to_thread(browser.execute_script, f"location.hash = '#{view}'")
            await asyncio.to_thread(wait_text, browser, "main", shown_there)
        assert await asyncio.to_thread(complaints, browser) == []
    finally:
        await asyncio.to_thread(browser.quit)
    for machine in (one, two):
        await machine.stop()


async def test_of_a_thousand_taps_on_a_list_that_moves_none_hits_another_prompt(
    fleet_server: HubApi, root: Path
) -> None:
    browser = await asyncio.to_thread(open_browser)
    try:
        await asyncio.to_thread(browser.get, await link_for(fleet_server, "alice"))
        await asyncio.to_thread(wait_text, browser, "#link", "live")
        wrong, right, moved = await asyncio.to_thread(tap_a_moving_list, browser)
    finally:
        await asyncio.to_thread(browser.quit)
    assert wrong == 0 and right > 500 and moved > 500, (wrong, right, moved)
