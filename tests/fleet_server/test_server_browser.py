"""The server's page in a real browser: logged in by a link, a card of each machine, answered with a click."""

from __future__ import annotations

import asyncio
import json
import shlex
from pathlib import Path

import pytest
from selenium import webdriver
from tests.fleet_server.test_server_page import asks
from tests.support.browser import (
    SHOWN,
    DevTools,
    add_authenticator,
    complaints,
    find,
    kept_shell,
    open_browser,
    phone,
    push_to,
    text_of,
    wait,
    wait_text,
)
from tests.support.fleet import HubApi, new_machine, until
from tests.support.moving_list import tap_a_moving_list
from tests.support.sample_prompt import HOSTILE, hostile_prompt

from atlasbridge.core.values import replace
from atlasbridge.fleet.server import machines, people
from atlasbridge.web.push import ASKS, SECRET

pytestmark = pytest.mark.browser
KEPT_LANGUAGE = """caches.open("atlasbridge-shell").then((cache) => cache.match("/language"))
    .then((found) => found?.text()).then(arguments[0])"""


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
        await asyncio.to_thread(browser.execute_script, "location.hash = '#sessions'")
        first_of = "location.hash = document.querySelector(\"main a[href^='#session/']\").hash"
        await asyncio.to_thread(find, browser, "main a[href^='#session/']")
        await asyncio.to_thread(browser.execute_script, first_of)
        await asyncio.to_thread(wait_text, browser, ".session-head", "live")
        assert "atlasbridge web" not in await asyncio.to_thread(text_of, browser, "main"), "a hub's command at a fleet"
        assert await asyncio.to_thread(complaints, browser) == []
    finally:
        await asyncio.to_thread(browser.quit)
    for machine in (one, two):
        await machine.stop()


async def test_the_page_of_a_fleet_is_installed_and_answers_from_a_push_message(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root, "one")
    sitter = machine.sit(label="deploy")
    prompt_id = sitter.ask()
    where = f"{machine.membership.machine_id}.{prompt_id}"
    browser = await asyncio.to_thread(open_browser)

    def follow(link: str) -> None:
        browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["notifications"]})
        browser.get(link)
        wait_text(browser, "#link", "live")
        browser.execute_script("localStorage.setItem('atlasbridge-language', 'de'); location.hash = '#settings'")
        browser.refresh()
        kept_shell(browser)
        wait(browser, lambda it: it.execute_async_script(KEPT_LANGUAGE) == "de")
        assert browser.execute_cdp_cmd("Page.getInstallabilityErrors", {})["installabilityErrors"] == []
        find(browser, "#s-push")
        given = {"title": ASKS, "note": SECRET, "values": {"name": "one: deploy"}, "body": "", "tag": where}
        push_to(browser, given)
        shown = [["one: deploy fragt", "Es fragt nach einem Geheimnis.", where]]
        session = f"{machine.membership.machine_id}.{sitter.record.session_id}"
        with DevTools(browser, "service_worker") as worker:
            wait(browser, lambda _: worker.run(SHOWN) == shown)
            worker.run(f"answer({json.dumps({'tag': where, 'session': session})}, {{ value: 'y', title: 'Ja' }})")
            assert worker.run(SHOWN)[0][1].startswith("„Ja“: ")

    try:
        await asyncio.to_thread(follow, await link_for(fleet_server, "alice"))
        await until(lambda: prompt_id in sitter.typed)
        assert sitter.typed[prompt_id]["kind"] == "yes"
        assert await asyncio.to_thread(complaints, browser) == []
    finally:
        await asyncio.to_thread(browser.quit)
    await machine.stop()


SIGNED = '[[rule]]\nname = "signed"\nverdict = "ask"\nproof = "passkey"\ncommand = ["git", "push", "**"]\n'


async def test_a_person_signs_with_a_passkey_that_the_machine_accepts(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, "one")
    link = (await link_for(fleet_server, "alice")).replace("127.0.0.1", "localhost")
    digest = await machines.set_rules(fleet_server.database, SIGNED, "test")
    fleet_server.context.wakeups.tell(f"job:{machine.membership.machine_id}")
    used = "SELECT 1 FROM machines WHERE policy = %s AND policy_fault = ''"

    async def is_used() -> bool:
        return bool(await fleet_server.database.rows(used, digest))

    await until(is_used)
    sitter = machine.sit(label="deploy")
    browser = await asyncio.to_thread(open_browser)

    def enrol() -> str:
        add_authenticator(browser)
        browser.get(link)
        wait_text(browser, "#link", "live")
        browser.execute_script("location.hash = '#settings'")
        find(browser, "#passkey-name").send_keys("laptop")
        assert browser.find_elements("css selector", "#passkey-code") == []
        find(browser, "#passkey-add").click()
        wait_text(browser, "#passkey-panel .word", "Added laptop.")
        find(browser, "#passkeys summary").click()
        command = text_of(browser, "#passkeys .accept")
        browser.execute_script("location.hash = '#prompts'")
        wait_text(browser, ".proof", "sign it with your passkey")
        return str(command)

    def press(says: str) -> None:
        """Until it is typed, or the card says why not: the page ignores taps while its list is moving."""

        def pressed(it: webdriver.Chrome) -> bool:
            if sitter.typed or (says and says in text_of(it, "[data-prompt] .word.bad:not(.proof)")):
                return True
            for button in it.find_elements("css selector", "[data-prompt] [data-value='1']:enabled"):
                button.click()
            return False

        wait(browser, pressed, says or "it was not typed")

    try:
        push = sitter.ask(asks("git push"))
        command = await asyncio.to_thread(enrol)
        await asyncio.to_thread(press, "not enrolled")
        assert sitter.orders == []
        *_, who, page, key = shlex.split(command)
        machine.hub.replies.passkeys.accept(who, page, key, "laptop", "cli:local")
        await asyncio.to_thread(press, "")
        assert sitter.typed[push]["value"] == "1" and sitter.orders == [push]
        told = await asyncio.to_thread(complaints, browser)  # the browser's own word for each refused tap
        assert [one for one in told if "/reply" not in one or "409" not in one] == []
    finally:
        await asyncio.to_thread(browser.quit)
    await machine.stop()


FILL = """
const [title, given] = arguments;
const form = [...document.querySelectorAll("form")].find((one) => one.querySelector("h3")?.textContent === title);
for (const [name, value] of Object.entries(given)) form.elements[name].value = value;
form.requestSubmit();
"""
BEYOND = """
const parts = [...document.querySelectorAll("main :is(td, button, input, select)")];
return parts.filter((one) => one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML);
"""
PRESS = "[...document.querySelectorAll('td button')].find((one) => one.textContent === arguments[0]).click()"


async def test_an_administrator_looks_after_the_fleet_in_a_browser(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, "one")
    link = await link_for(fleet_server, "alice")
    browser = await asyncio.to_thread(open_browser)

    async def shows(section: str, *words: str) -> None:
        await asyncio.to_thread(browser.execute_script, f"location.hash = '#{section}'")
        await asyncio.to_thread(wait_text, browser, "main h2", section)
        for word in words:
            await asyncio.to_thread(wait_text, browser, "#main", word)

    async def fill(title: str, **given: str) -> None:
        await asyncio.to_thread(browser.execute_script, FILL, title, given)

    async def once(words: str) -> None:
        await asyncio.to_thread(wait_text, browser, "#once", words)
        await asyncio.to_thread(browser.execute_script, "document.querySelector('#once button').click()")

    async def press(label: str) -> None:
        await asyncio.to_thread(browser.execute_script, PRESS, label)
        await asyncio.to_thread(browser.execute_script, "document.querySelector('#sure button[value=yes]').click()")

    try:
        await asyncio.to_thread(browser.get, link)
        await asyncio.to_thread(wait_text, browser, "#link", "live")
        await asyncio.to_thread(browser.get, f"{fleet_server.url}/admin")
        await asyncio.to_thread(wait_text, browser, "#state", "alice")
        await shows("Machines", "one", "connected", "None.")
        await fill("Invite a machine", uses="3")
        await once("atlasbridge fleet join 'http")
        await shows("People", "alice")
        await fill("Add a person", name="<b>bert</b>", role="member")
        await asyncio.to_thread(wait_text, browser, "#main", "<b>bert</b>")
        await fill("Add a person", name="@odd", role="member")
        await asyncio.to_thread(wait_text, browser, "#state", "is not a valid name for a person")
        await fill("Change a team", team="backend", person="<b>bert</b>", what="add")
        await asyncio.to_thread(wait_text, browser, "#main", "backend")
        await shows("Rights", "Nobody else has rights yet")
        await fill("Allow", holder="@backend", machine="one", folder="/srv", may="see")
        await asyncio.to_thread(wait_text, browser, "#main table", "@backend")
        await press("Remove")
        await asyncio.to_thread(wait_text, browser, "#main", "Nobody else has rights yet")
        await shows("Rules", "No rules")
        await fill("Send to all machines", text='[[rule]]\nname = "no"\nverdict = "deny"\ncommand = ["rm", "**"]\n')
        await asyncio.to_thread(wait_text, browser, "#main", "set by alice")
        await shows("Logins", "(this one)")
        await fill("Create a token", name="ci", scope="read")
        await once("abf_")
        await shows("Audit", "RULES_SET")
        await asyncio.to_thread(phone, browser, 390)
        for section, word in (("Audit", "RULES_SET"), ("People", "bert"), ("Machines", "connected")):
            await shows(section, word)
            assert await asyncio.to_thread(browser.execute_script, BEYOND) == []
        await press("Revoke")
        await asyncio.to_thread(wait_text, browser, "#main", "No machine has joined yet.")
        said = await asyncio.to_thread(complaints, browser)
        assert said == [one for one in said if "409 (Conflict)" in one]
    finally:
        await asyncio.to_thread(browser.quit)
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
