"""A real browser where things go wrong: somebody else on the port, two who answer at once, a connection that breaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from tests.support import sample_prompt as sample
from tests.support.browser import (
    SHOWN,
    DevTools,
    find,
    kept_shell,
    open_browser,
    phone,
    push_to,
    text_of,
    wait,
    wait_text,
)
from tests.support.moving_list import tap_a_moving_list
from tests.support.rough_network import Impostor, RoughNetwork
from tests.support.threaded_hub import ThreadedHub

from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.values import replace
from atlasbridge.web import access as access_module
from atlasbridge.web.page_files import read_page
from atlasbridge.web.push import render_ask

STATIC = Path(access_module.__file__).parent / "static"
pytestmark = pytest.mark.browser


def own_port(hub: ThreadedHub) -> int:
    return int(hub.url.rpartition(":")[2])


def test_whoever_takes_the_port_gets_nothing_that_it_could_use(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    record = hub.ask(sample.YES_NO)
    find(browser, "[data-value=y]")
    kept_shell(browser)
    impostor = Impostor(own_port(hub), b'{"epoch":"x","proof":"y"}')
    hub.run(hub.hub.stop())
    hub.run(impostor.start())
    wait_text(browser, "#link", "not your hub")
    wait_text(browser, ".login", "Nothing was sent to it")
    assert browser.find_elements("css selector", "[data-prompt]") == []
    hub.run(impostor.stop())
    sent = b"".join(impostor.received)
    assert b"/api/v1/hello" in sent
    assert b"X-AtlasBridge-Proof" not in sent and b"POST" not in sent
    hub.run(hub.hub.restart_after_stop())
    wait_text(browser, "#link", "live")
    find(browser, f"[data-prompt='{record.prompt_id}']")


def test_reloaded_at_a_taken_port_the_page_is_still_ours(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    kept_shell(browser)
    impostor = Impostor(own_port(hub), b"<h1>log in here</h1>")
    hub.run(hub.hub.stop())
    hub.run(impostor.start())
    browser.refresh()
    wait_text(browser, "#link", "not your hub")
    assert "log in here" not in text_of(browser, "body")
    hub.run(impostor.stop())
    hub.run(hub.hub.restart_after_stop())
    wait_text(browser, "#link", "live")


def test_reloaded_while_the_hub_is_away_the_page_says_so_and_recovers(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    kept_shell(browser)
    hub.run(hub.hub.stop())
    browser.refresh()
    wait_text(browser, "#cards", "Not connected")
    assert "Nothing is waiting" not in text_of(browser, "main")
    hub.run(hub.hub.restart_after_stop())
    wait_text(browser, "#link", "live")
    wait_text(browser, "#cards", "Nothing is waiting for you")


def test_a_push_message_is_shown_in_the_language_of_the_page_and_its_button_answers(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    browser.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["notifications"]})
    browser.execute_script("localStorage.setItem('atlasbridge-language', 'es'); location.reload()")
    wait_text(browser, "#link", "en vivo")
    kept_shell(browser)
    session = hub.add_session()
    record = hub.ask(sample.MENU, session)
    message = render_ask(record, session, 0.0).body
    push_to(browser, message)
    shown = [["claude pregunta", "Do you want to proceed?", record.prompt_id]]
    refuse = json.dumps(message["actions"][0])
    with DevTools(browser, "service_worker") as worker:
        wait(browser, lambda _: worker.run(SHOWN) == shown)
        worker.run(f"answer({json.dumps({'tag': record.prompt_id, 'session': record.session_id})}, {refuse})")
        (title, body, _), *others = worker.run(SHOWN)
    assert title == "AtlasBridge" and body.startswith("«No") and others == []
    browser.execute_script("localStorage.removeItem('atlasbridge-language')")


def test_the_page_can_be_installed(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    kept_shell(browser)
    assert browser.execute_cdp_cmd("Page.getInstallabilityErrors", {})["installabilityErrors"] == []


def test_the_worker_keeps_every_file_of_the_page() -> None:
    listed = set(json.loads(read_page()["files.json"]))
    there = {"/" if path.name == "index.html" else f"/{path.name}" for path in STATIC.iterdir()}
    assert listed == there - {"/sw.js"}


def imported_by(*names: str) -> set[str]:
    """These files and all that they import before they begin."""
    known: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        known.add(name)
        named = re.findall(r'^(?:import|export) [^(]*?"/([\w.-]+)";', (STATIC / name).read_text(), re.MULTILINE)
        left += set(named) - known
    return known


def test_every_module_of_the_first_card_is_fetched_at_once_and_no_other() -> None:
    early = re.findall(r'rel="modulepreload" href="/([\w.-]+)"', (STATIC / "index.html").read_text())
    assert early == sorted(imported_by("main.js") - {"main.js"})


def test_the_other_views_are_fetched_right_after_the_first_card_and_not_when_one_is_opened(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    wait_text(browser, "#link", "live")
    others = imported_by("main.js", "others.js") - imported_by("main.js")
    assert imported_by("main.js", "others.js") == {path.name for path in STATIC.glob("*.js")} - {"sw.js"}
    there = "return performance.getEntriesByType('resource').map((one) => new URL(one.name).pathname.slice(1))"
    wait(browser, lambda _: others <= set(browser.execute_script(there)))
    hub.run(hub.hub.stop())
    for view in ("sessions", "history", "audit", "rules", "figures"):
        browser.find_element("css selector", f"#tabs a[href='#{view}']").click()
        find(browser, f"#tabs a[href='#{view}'][aria-current=page]")


def test_who_loses_a_race_is_told_which_answer_was_used_and_by_whom(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    record = hub.ask(sample.YES_NO)
    find(browser, "[data-value=n]")
    hub.hub_api.answers[record.prompt_id] = {
        "kind": "yes", "value": "y", "by": "web:Ada's phone", "at": record.created_at, "source": "operator"
    }  # fmt: skip
    taken = replace(record, state=PromptState.REPLY_RECEIVED, decided_by="web:Ada's phone")
    hub.hub_api.all_prompts[record.prompt_id] = taken

    def refused(it: webdriver.Chrome) -> str:
        find(it, "[data-value=n]").click()  # the page ignores a tap in the moment in which it moved
        return text_of(it, ".word.bad")

    wait(browser, refused, "the refusal was never shown")
    hub.run(hub.hub.move(taken, PromptState.RESOLVED, Receipt("taken", "Taken.", "web:Ada's phone")))
    wait_text(browser, ".card.over .verdict", "“Yes” by Ada's phone")
    wait_text(browser, ".card.over .word.bad", "Your answer “No” was not used. Ada's phone answered “Yes” first.")


@pytest.fixture
def rough(hub: ThreadedHub) -> Iterator[RoughNetwork]:
    network = RoughNetwork(own_port(hub))
    hub.run(network.start())
    yield network
    hub.run(network.stop())


def through(browser: webdriver.Chrome, hub: ThreadedHub, rough: RoughNetwork) -> None:
    browser.get(hub.link().replace(f":{own_port(hub)}/", f":{rough.port}/"))
    wait_text(browser, "#link", "live")


def test_an_answer_whose_receipt_was_lost_is_not_known_and_then_told(
    hub: ThreadedHub, chromium: webdriver.Chrome, rough: RoughNetwork
) -> None:
    through(chromium, hub, rough)
    hub.ask(sample.YES_NO)
    find(chromium, "[data-value=y]")
    rough.lose = b"/reply HTTP"
    chromium.execute_script(
        "window.said = []; new MutationObserver(() => window.said.push(document.body.innerText))"
        ".observe(document.body, {subtree: true, childList: true, characterData: true})"
    )
    wait(chromium, lambda it: it.find_element("css selector", "[data-value=y]").click() or hub.hub.answered)
    wait_text(chromium, ".card.over .verdict", "“Yes” by page (this browser)")
    said = "\n".join(chromium.execute_script("return window.said"))
    assert "does not know yet" in said
    assert "Nothing was sent" not in said
    assert len(hub.hub.answered) == 1
    assert rough.lost >= 1
    assert "was not used" not in text_of(chromium, "main")


def test_an_answer_that_never_arrived_is_said_to_and_can_be_given_again(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    hub.ask(sample.YES_NO)
    find(browser, "[data-value=y]")
    wait_steady(browser)
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/reply"]})
    find(browser, "[data-value=y]").click()
    wait_text(browser, ".word", "does not know yet")
    wait_text(browser, ".word.bad", "did not arrive")
    assert hub.hub.answered == []
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    find(browser, "[data-value=y]").click()
    wait(browser, lambda _: hub.hub.answered)


def wait_steady(browser: webdriver.Chrome) -> None:
    """The page ignores taps in the moment in which its list moved."""
    began = browser.execute_script("return performance.now()")
    wait(browser, lambda it: it.execute_script("return performance.now()") > began + 800)


def test_keys_keep_their_order_on_a_network_that_delays_and_cuts(
    hub: ThreadedHub, chromium: webdriver.Chrome, rough: RoughNetwork
) -> None:
    session = hub.add_session(tool="bash")
    through(chromium, hub, rough)
    chromium.execute_script(f"location.hash = '#session/{session.session_id}'")
    find(chromium, "#typing").click()
    wait(chromium, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    rough.delay_s, rough.cut_share = 0.02, 0.05
    text = "".join(f"{number:04d} " for number in range(400))
    screen = find(chromium, ".screen-box .term")
    screen.click()
    chromium.execute_script(
        """const [node, text] = arguments; let at = 0;
        const next = () => { if (at >= text.length) return;
          const key = text[at++];
          node.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
          setTimeout(next, at % 7 ? 0 : 3); };
        next();""",
        screen,
        text,
    )
    wait(chromium, lambda _: len(typed(hub)) >= len(text), "keys were lost")
    assert typed(hub) == text
    assert rough.cuts > 3


def typed(hub: ThreadedHub) -> str:
    return b"".join(data for _, data, _ in hub.hub_api.typed).decode()


def test_all_keys_reach_the_program_and_tab_leaves_the_screen(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    session = hub.add_session(tool="bash")
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(browser, ".term", "waiting")
    assert not browser.find_element("css selector", ".keybar").is_displayed(), "typing is off"
    find(browser, "#typing").click()
    wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    find(browser, ".screen-box .term").click()
    keys = [Keys.HOME, Keys.END, Keys.DELETE, Keys.PAGE_UP, Keys.PAGE_DOWN, Keys.F1, Keys.F5, Keys.ESCAPE, Keys.ENTER]
    webdriver.ActionChains(browser).send_keys(*keys).key_down(Keys.ALT).send_keys("b").key_up(Keys.ALT).perform()
    webdriver.ActionChains(browser).key_down(Keys.CONTROL).send_keys("c").key_up(Keys.CONTROL).perform()
    wanted = "\x1b[H\x1b[F\x1b[3~\x1b[5~\x1b[6~\x1bOP\x1b[15~\x1b\r\x1bb\x03"
    wait(browser, lambda _: typed(hub) == wanted, f"not {wanted!r}")
    webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
    inside = "return document.activeElement.closest('.screen-box .term') === null"
    assert browser.execute_script(inside)
    field = find(browser, "#typed")
    field.send_keys("ls", Keys.ENTER)
    wait(browser, lambda _: typed(hub) == wanted + "ls\r")


def test_a_session_that_is_still_starting_is_waited_for(hub: ThreadedHub, chromium: webdriver.Chrome) -> None:
    session = hub.add_session(tool="bash")
    hidden = hub.hub_api.all_sessions.pop(session.session_id)
    browser = chromium
    browser.get(hub.link())
    wait_text(browser, "#link", "live")
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(browser, ".head .tag", "starting")
    hub.hub_api.all_sessions[session.session_id] = hidden
    wait_text(browser, ".head .tag", "live")
    wait_text(browser, ".term", "waiting")


def test_a_browser_that_may_only_look_is_offered_nothing_else(hub: ThreadedHub, chromium: webdriver.Chrome) -> None:
    session = hub.add_session()
    hub.ask(sample.MENU, session)
    chromium.get(hub.link("read"))
    wait_text(chromium, "[data-prompt]", "can only view")
    assert chromium.find_elements("css selector", ".choice, .send, .report") == []
    chromium.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(chromium, "main", "cannot type")
    assert chromium.find_elements("css selector", "#typing, .refuse") == []


def test_a_draft_survives_new_prompts_and_a_reload(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.TEXT)
    field = find(browser, ".say input")
    field.send_keys("half a sent")
    top = field.rect["y"] - browser.execute_script("return window.scrollY")
    hub.ask(sample.MENU)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
    assert abs(field.rect["y"] - browser.execute_script("return window.scrollY") - top) < 3, "it moved away"
    browser.refresh()
    wait(browser, lambda it: it.find_element("css selector", ".say input").get_attribute("value") == "half a sent")


def test_thirty_prompts_are_a_list_and_one_card(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    for number in range(30):
        hub.ask(sample.MENU, hub.add_session(label=f"task-{number}"))
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 30)
    phone(browser, 390, 844)
    wait(browser, lambda it: it.execute_script("return document.documentElement.scrollHeight") < 3000, "it is too long")
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    find(browser, ".side input").send_keys("task-17")
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 1)
    find(browser, "[data-row]").click()
    wait_text(browser, "[data-prompt] h2", "task-17")
    wait_steady(browser)
    find(browser, "[data-value='3']").click()
    wait(browser, lambda _: hub.hub.answered)
    assert hub.hub.answered[0][1] == "3"


def test_an_audit_entry_does_not_widen_the_page_on_a_phone(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.hub_api.note("REPLY_RECEIVED", session_id="x" * 90, identity="web:page", detail="y" * 300)
    phone(browser, 390, 844)
    browser.execute_script("location.hash = '#audit'")
    find(browser, "details.entry summary").click()
    wait(browser, lambda it: it.find_element("css selector", "details.entry pre").is_displayed())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


def test_the_question_is_large_and_the_options_are_not(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    text = "Bash command\n  curl -s http://x/y | sh\nDo you want to proceed?\n❯ 1. Yes\n  2. No"
    hub.ask(replace(sample.MENU, excerpt=text))
    find(browser, "[data-prompt]")
    assert text_of(browser, "[data-prompt] .ask") == text
    assert text_of(browser, "[data-prompt] .ask strong") == "Do you want to proceed?"


def test_browsers_are_listed_and_logged_out_one_by_one(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    other = open_browser()
    try:
        other.get(hub.link("answer"))
        wait_text(other, "#link", "live")
        browser.execute_script("location.hash = '#settings'")
        wait(browser, lambda it: len(it.find_elements("css selector", "[data-device]")) == 2)
        find(browser, "[data-device] button.refuse").click()
        wait(browser, lambda it: len(it.find_elements("css selector", "[data-device]")) == 1)
        wait_text(other, ".login", "not logged in")
        wait_text(browser, "#link", "live")
    finally:
        other.quit()


def test_what_still_waits_after_its_time_is_shown_and_can_be_asked_again(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    record = hub.ask(sample.SECRET)
    find(browser, "[data-prompt]")
    hub.run(hub.hub.move(record, PromptState.EXPIRED, Receipt("expired", "Nobody answered in time.", "")))
    wait_text(browser, "[data-late]", "still shows the question")
    assert "Nothing is waiting for you" not in text_of(browser, "main")
    browser.refresh()
    find(browser, "[data-late] button.main").click()
    wait(browser, lambda _: hub.hub_api.asked_again == [record.prompt_id])


@pytest.mark.parametrize("size", [(1100, 900), (390, 844)], ids=["wide", "phone"])
def test_of_a_thousand_taps_on_a_list_that_moves_none_hits_another_prompt(
    hub: ThreadedHub, browser: webdriver.Chrome, size: tuple[int, int]
) -> None:
    phone(browser, *size)
    wrong, right, moved = tap_a_moving_list(browser)
    assert wrong == 0 and right > 400 and moved > 500, (wrong, right, moved)


def test_the_page_speaks_the_readers_language_and_leaves_the_tools_words_alone(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    browser.execute_script("localStorage.setItem('atlasbridge-language', 'de')")
    try:
        browser.refresh()
        wait_text(browser, "#cards", "Nichts wartet auf dich.")
        assert browser.execute_script("return document.documentElement.lang") == "de"
        assert text_of(browser, "#tabs [aria-current]").startswith("Fragen")
        hub.ask(sample.MENU, hub.add_session(label="laden"))
        wait_text(browser, "[data-prompt] h2", "laden fragt")
        assert text_of(browser, ".decide .refuse") == "No", "a choice is the tool's own word"
    finally:
        browser.execute_script("localStorage.removeItem('atlasbridge-language')")


def test_a_session_is_read_as_text_and_typed_into_with_the_keys_of_a_phone(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    phone(browser, 390, 844)
    session = hub.add_session(tool="claude")
    hub.show(session.session_id, [[[row, None, None, 0]] for row in ("❯ mend it", "", "● Done.", "", "❯ ")])
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(browser, ".term", "Done.")
    size = "return parseFloat(getComputedStyle(document.querySelector('.screen-box .term')).fontSize)"
    assert browser.execute_script(size) >= 11, "letters that can be read"
    browser.find_element("xpath", "//button[text()='As text']").click()
    wait_text(browser, ".words", "● Done.")
    assert "❯ \n" not in text_of(browser, ".words")
    find(browser, "#typing").click()
    wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    low = "const box = document.querySelector('.keybar').getBoundingClientRect(); return innerHeight - box.bottom"
    assert 0 <= browser.execute_script(low) < 120, "the keys are in reach of the thumb"
    for face in ("⇧Tab", "Esc", "Ctrl"):
        found = "[...document.querySelectorAll('.keybar button')].find((one) => one.firstChild.data === arguments[0])"
        browser.execute_script(f"{found}.click()", face)
    find(browser, "#typed").send_keys("c")
    wait(browser, lambda _: typed(hub) == "\x1b[Z\x1b\x03", f"typed {typed(hub)!r}")
