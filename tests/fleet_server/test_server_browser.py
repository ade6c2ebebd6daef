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
        steady = "return performance.now() - movedAt > STEADY_MS"  # a tap right after the list moved is not taken
        await asyncio.to_thread(wait, browser, lambda it: it.execute_script(steady))
        await asyncio.to_thread(button.click)
        await until(lambda: prompt_id in first.typed)
        assert first.typed[prompt_id]["kind"] == "yes" and other_id not in second.typed
        await asyncio.to_thread(wait_text, browser, "#total", "0 questions wait")
        assert await asyncio.to_thread(complaints, browser) == []
    finally:
        await asyncio.to_thread(browser.quit)
    for machine in (one, two):
        await machine.stop()


FILL = """
const [title, given] = arguments;
const form = [...document.querySelectorAll("form")].find((one) => one.querySelector("h3")?.textContent === title);
for (const [name, value] of Object.entries(given)) form.elements[name].value = value;
form.requestSubmit();
"""
PRESS = "[...document.querySelectorAll('td button')].find((one) => one.textContent === arguments[0]).click()"


async def test_an_administrator_looks_after_the_fleet_in_a_browser(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root, "one")
    await people.add(fleet_server.database, "alice", "admin", "test")
    link = f"{fleet_server.url}/#login={await people.login_link(fleet_server.database, 'alice')}"
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
        await asyncio.to_thread(wait_text, browser, "#person", "alice")
        await asyncio.to_thread(browser.get, f"{fleet_server.url}/admin")
        await asyncio.to_thread(wait_text, browser, "#state", "alice")
        await shows("Machines", "one", "connected", "There are none.")
        await fill("Invite a machine", uses="3")
        await once("atlasbridge fleet join 'http")
        await shows("People", "alice")
        await fill("Add a person", name="<b>bert</b>", role="member")
        await asyncio.to_thread(wait_text, browser, "#main", "<b>bert</b>")
        await fill("Add a person", name="@odd", role="member")
        await asyncio.to_thread(wait_text, browser, "#state", "is no name for a person")
        await fill("Change a team", team="backend", person="<b>bert</b>", what="add")
        await asyncio.to_thread(wait_text, browser, "#main", "backend")
        await shows("Rights", "nobody else is allowed anything yet")
        await fill("Allow", holder="@backend", machine="one", folder="/srv", may="see")
        await asyncio.to_thread(wait_text, browser, "#main table", "@backend")
        await press("Take back")
        await asyncio.to_thread(wait_text, browser, "#main", "nobody else is allowed anything yet")
        await shows("Rules", "No rules")
        await fill("Send to all machines", text='[[rule]]\nname = "no"\nverdict = "deny"\ncommand = ["rm", "**"]\n')
        await asyncio.to_thread(wait_text, browser, "#main", "set by alice")
        await shows("Logins", "(this one)")
        await fill("Make a token of yours", name="ci", scope="read")
        await once("abf_")
        await shows("Audit", "RULES_SET")
        await shows("Machines", "one")
        await press("Revoke")
        await asyncio.to_thread(wait_text, browser, "#main", "No machine has joined yet.")
        said = await asyncio.to_thread(complaints, browser)
        assert len(said) == 1 and "409 (Conflict)" in str(said[0])  # the name that is none
    finally:
        await asyncio.to_thread(browser.quit)
    await machine.stop()


# A person aims at a button; the finger comes down up to 300 ms later and up a moment after, and the list changes at any
# moment of it.
TAPS = """
const [count, done] = [arguments[0], arguments[1]];
let now = 10000;
performance.now = () => now;
window.load = () => {};
const hits = [];
window.decide = (prompt, value) => hits.push(prompt.prompt_id);
let seed = 7;
const chance = (most) => { seed = (seed * 1103515245 + 12345) % 2147483648; return seed % most; };
let number = 0;
const prompt = () => ({ machine_id: "m", machine: "box", prompt_id: `p${number += 1}`, folder: "/", label: "",
  tool: "sh", connected: true, may_answer: true, raised_at: new Date().toISOString(),
  body: { type: "yes_no", question: "Go?\\n".repeat(1 + chance(4)), choices: [], constraints: {} } });
const change = () => {
  const list = [...known.prompts];
  if (chance(2) && list.length > 2) list.splice(chance(list.length), 1);
  else list.splice(chance(list.length + 1), 0, prompt());
  known = { prompts: list, total: list.length };
  draw();
};
known = { prompts: [prompt(), prompt(), prompt()], total: 3 };
draw();
const send = (kind, x, y, more) => document.elementFromPoint(x, y)?.dispatchEvent(
  new PointerEvent(kind, { bubbles: true, cancelable: true, ...more }));
const inSight = (one) => one.getBoundingClientRect().bottom < innerHeight && one.getBoundingClientRect().top > 0;
let [wrong, right] = [0, 0];
(async () => {
  for (let turn = 0; turn < count; turn += 1) {
    now += 1000;
    const buttons = [...document.querySelectorAll("#prompts .choices button")].filter(inSight);
    const aim = buttons[chance(buttons.length)];
    const box = aim.getBoundingClientRect();
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const meant = aim.closest("article").dataset.key.split("/")[1];
    const moment = chance(5);
    if (moment === 0) change();
    now += chance(300);
    send("pointerdown", x, y);
    if (moment === 1) change();
    now += chance(200);
    if (moment === 2) change();
    send("pointerup", x, y);
    if (moment === 3) change();
    send("click", x, y, { detail: 1 });
    for (const hit of hits.splice(0)) if (hit === meant) right += 1; else wrong += 1;
    await new Promise((next) => setTimeout(next, 0));
    while (known.prompts.length > 6) { known = { prompts: known.prompts.slice(1), total: 6 }; draw(); }
  }
  done([wrong, right]);
})();
"""


async def test_of_a_thousand_taps_on_a_list_that_moves_none_hits_another_prompt(
    fleet_server: HubApi, root: Path
) -> None:
    await people.add(fleet_server.database, "alice", "admin", "test")
    link = f"{fleet_server.url}/#login={await people.login_link(fleet_server.database, 'alice')}"
    browser = await asyncio.to_thread(open_browser)
    try:
        await asyncio.to_thread(browser.set_script_timeout, 120)
        await asyncio.to_thread(browser.get, link)
        await asyncio.to_thread(wait_text, browser, "#total", "0 questions wait")
        wrong, right = await asyncio.to_thread(browser.execute_async_script, TAPS, 1000)
    finally:
        await asyncio.to_thread(browser.quit)
    assert wrong == 0 and right > 500, (wrong, right)
