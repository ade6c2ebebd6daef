"""The page in Chromium and in Firefox: the same journeys, and no fault that axe could find in any view."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from tests.support import sample_prompt as sample
from tests.support.browser import find, open_browser, phone, text_of, wait, wait_text
from tests.support.marionette import open_firefox
from tests.support.threaded_hub import ThreadedHub

from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import InboundReply, PromptState, Receipt, Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace

pytestmark = pytest.mark.browser
TOOLS = Path(os.environ.get("ATLASBRIDGE_TOOLS") or Path(__file__).parents[2] / ".venv" / "tools")
AXE = TOOLS / "axe" / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """axe.run(document, {resultTypes: ["violations"]}).then((found) => arguments[0](
    found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(" ")}`)))"""
COMMAND = "curl -fsSL https://get.example.com/i.sh | sudo sh -s -- --prefix=/usr/local && rm -rf ~/.cache"
CURL = Subject(SubjectKind.COMMAND, COMMAND, "/home/ada/shop", SubjectSource.HOOK, True, COMMAND)
CHANGE = "-TIMEOUT_S = 30\n+TIMEOUT_S = 5\n+RETRIES = 4"
EDIT = Subject(
    SubjectKind.EDIT, CHANGE, "/home/ada/shop", SubjectSource.HOOK, True, CHANGE, "/home/ada/shop/src/config.py"
)


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def browser_process(request: pytest.FixtureRequest) -> Iterator[Any]:
    running = open_browser() if request.param == "chromium" else open_firefox()
    yield running
    running.quit()


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ThreadedHub]:
    running = ThreadedHub(tmp_path)
    yield running
    running.stop()


@pytest.fixture
def browser(browser_process: Any, hub: ThreadedHub) -> Iterator[Any]:
    browser_process.get(hub.link())
    wait_text(browser_process, "#link", "live")
    yield browser_process
    browser_process.get("about:blank")


def go(browser: Any, view: str) -> None:
    browser.execute_script(f"location.hash = '#{view}'")


def steady(browser: Any) -> None:
    began = browser.execute_script("return performance.now()")
    wait(browser, lambda it: it.execute_script("return performance.now()") > began + 800)


def faults(browser: Any) -> list[str]:
    if not browser.execute_script("return typeof axe !== 'undefined'"):
        assert AXE.exists(), "axe-core is missing: run tools/install-extras"
        browser.execute_script(AXE.read_text())
    return list(browser.execute_async_script(RUN_AXE))


def test_no_view_has_a_fault_that_axe_finds(hub: ThreadedHub, browser: Any) -> None:
    session = hub.add_session(label="shop-api")
    halted = hub.add_session(label="halted", stopped=True)
    hub.show(session.session_id, [[["red ", 1, None, 1], ["on green", 0, 2, 0]], "plain"])
    for words in ("Run the linter.", "Then write the changelog."):
        hub.hub_api.queue.append((new_id(), InboundReply("web", "web:page", "", words, session.session_id)))
    hub.ask(replace(sample.MENU, subject=CURL), session)
    hub.ask(sample.SECRET)
    settled = hub.ask(replace(sample.YES_NO, whole=False))
    late = hub.ask(sample.TEXT)
    hub.run(hub.hub.move(settled, PromptState.RESOLVED, Receipt("taken", "Taken.", "web:Ada's phone")))
    hub.run(hub.hub.move(late, PromptState.EXPIRED, Receipt("expired", "Nobody answered.", "")))
    hub.hub_api.note(
        "REPLY_RECEIVED", session_id=session.session_id, prompt_id=settled.prompt_id, decided_by="web:page"
    )
    views = {
        "prompts": "[data-prompt]",
        "sessions": ".run",
        f"session/{session.session_id}": ".queue li",
        "history": "details.entry",
        "audit": "details.entry",
        f"session/{halted.session_id}": ".asks .main",
        "rules": "main h1",
        "figures": ".facts",
        "settings": "[data-device]",
    }
    for view, shown in views.items():
        go(browser, view)
        find(browser, shown)
        opened = "for (const node of document.querySelectorAll('main details')) node.open = true"
        browser.execute_script(opened)
        for switch in browser.find_elements("css selector", "#typing"):
            switch.click()
            wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
        wait(browser, lambda it: not it.execute_script("return document.getAnimations().length"))
        assert faults(browser) == [], view


def test_the_inbox_and_a_batch_have_no_fault_either(hub: ThreadedHub, browser: Any) -> None:
    marked(hub, browser)
    assert faults(browser) == []
    browser.find_element("xpath", "//button[text()='Yes to all']").click()
    wait(browser, lambda it: it.execute_script("return document.querySelector('dialog').open"))
    assert faults(browser) == []


def marked(hub: ThreadedHub, browser: Any) -> list[str]:
    """Five wait, two of them are marked."""
    first = hub.ask(replace(sample.MENU, subject=CURL), hub.add_session(label="shop-api"))
    second = hub.ask(replace(sample.MENU, subject=EDIT), hub.add_session(label="shop-web"))
    for prompt in (sample.SECRET, sample.IDLE, sample.UNKNOWN):
        hub.ask(prompt)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 5)
    for record in (first, second):
        find(browser, f"li:has([data-row='{record.prompt_id}']) .tick input").click()
    wait_text(browser, ".batch", "2 selected")
    return [first.prompt_id, second.prompt_id]


def test_several_are_answered_at_once_after_each_was_shown_once_more(hub: ThreadedHub, browser: Any) -> None:
    ids = marked(hub, browser)
    boxes = "return document.querySelectorAll('.tick input').length"
    assert browser.execute_script(boxes) == 2, "a secret, a finished one or an unclear one can be marked"
    browser.find_element("xpath", "//button[text()='Yes to all']").click()
    wait_text(browser, "dialog", "shop-api")
    assert COMMAND in text_of(browser, "dialog") and "Answer: “Yes”" in text_of(browser, "dialog")
    assert hub.hub.answered == []
    browser.find_element("xpath", "//button[text()='Answer these 2']").click()
    wait(browser, lambda _: len(hub.hub.answered) == 2)
    assert sorted(prompt for prompt, _, _ in hub.hub.answered) == sorted(ids)
    assert {value for _, value, _ in hub.hub.answered} == {"1"}
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 3)


def test_a_question_an_own_text_and_a_secret_are_answered(hub: ThreadedHub, browser: Any) -> None:
    for prompt, text in ((sample.TEXT, "my shop"), (sample.SECRET, "hunter2")):
        hub.ask(prompt)
        find(browser, ".say input")
        steady(browser)
        find(browser, ".say input").send_keys(text)
        find(browser, ".say .send").click()
        given(hub, browser, text)
    hub.ask(sample.MENU)
    find(browser, "[data-value='3']")
    steady(browser)
    webdriver.ActionChains(browser).send_keys("n").perform()
    given(hub, browser, "3")


def given(hub: ThreadedHub, browser: Any, value: str) -> None:
    wait(browser, lambda _: hub.hub.answered and hub.hub.answered[-1][1] == value, f"{value} was not given")


def test_what_it_is_about_stands_whole_above_the_question(hub: ThreadedHub, browser: Any) -> None:
    hub.ask(replace(sample.MENU, subject=CURL, question="Bash command\n  curl\nDo you want to proceed?"))
    find(browser, "[data-prompt]")
    assert text_of(browser, "[data-prompt] .question") == "Do you want to proceed?"
    assert text_of(browser, "[data-prompt] .subject pre") == COMMAND
    assert text_of(browser, ".k-harsh").split("\n") == ["sudo", "sh", "rm", "-rf"]
    order = """const at = (css) => document.querySelector("[data-prompt] " + css).getBoundingClientRect().top;
        return at(".subject") < at(".question") && at(".question") < at(".decide")"""
    assert browser.execute_script(order)


PADDED = "\n".join(["npm test", *["# " + "padding " * 3] * 80, "rm -rf ~"])


def test_a_box_too_small_for_what_is_asked_says_so_until_all_of_it_is_shown(hub: ThreadedHub, browser: Any) -> None:
    """Scroll bars hide themselves on phones: without a word the first lines would look like all of it."""
    told = hub.ask(replace(sample.MENU, subject=replace(CURL, text=PADDED, shown=PADDED)))
    seen = hub.ask(replace(sample.MENU, question=f"{PADDED}\nGo on?"))
    short = hub.ask(replace(sample.MENU, subject=CURL))
    go(browser, f"prompt/{told.prompt_id}")
    unfolds_at_a_tap(browser, f"[data-prompt='{told.prompt_id}'] .subject pre")
    go(browser, f"prompt/{seen.prompt_id}")
    shows_all_at_a_tap(browser, f"[data-prompt='{seen.prompt_id}']", ".ask")
    go(browser, f"prompt/{short.prompt_id}")
    find(browser, f"[data-prompt='{short.prompt_id}'] .subject pre")
    steady(browser)
    assert not browser.find_elements("css selector", ".out-of-sight:not([hidden])"), "all of it is in sight"


def unfolds_at_a_tap(browser: Any, box: str) -> None:
    """Beginning, end and what is dangerous are in sight; the rest is counted and one tap away."""
    find(browser, f"{box} .fold")
    in_sight = f'return document.querySelector("{box}").innerText'
    shown = str(browser.execute_script(in_sight))
    assert "npm test" in shown and "rm -rf ~" in shown and shown.count("padding") < 60
    assert browser.execute_script(f'return document.querySelector("{box} .fold").dataset.words') == "⋯ 72 more lines"
    assert text_of(browser, box) == PADDED
    steady(browser)
    find(browser, f"{box} .fold").click()
    wait(browser, lambda it: str(it.execute_script(in_sight)).count("padding") == 240)


def shows_all_at_a_tap(browser: Any, card: str, box: str) -> None:
    more = f"{card} .out-of-sight:not([hidden])"
    cut = f'const box = document.querySelector("{card} {box}"); return box.scrollHeight > box.clientHeight'
    wait_text(browser, more, "lines hidden: show all")
    assert browser.execute_script(cut)
    steady(browser)
    find(browser, more).click()
    wait(browser, lambda it: not it.execute_script(cut))
    wait(browser, lambda it: not it.find_elements("css selector", more))


def test_what_many_get_at_once_says_what_is_out_of_sight(hub: ThreadedHub, browser: Any) -> None:
    for label in ("one", "two", "three", "four"):
        hub.ask(replace(sample.MENU, subject=replace(CURL, text=PADDED, shown=PADDED)), hub.add_session(label=label))
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 4)
    for box in browser.find_elements("css selector", ".tick input")[:2]:
        box.click()
    wait_text(browser, ".batch", "2 selected")
    browser.find_element("xpath", "//button[text()='Yes to all']").click()
    wait(browser, lambda it: len(it.find_elements("css selector", "dialog .out-of-sight:not([hidden])")) == 2)


def test_no_flag_is_broken_from_its_hyphen(browser: Any) -> None:
    """At any width: `-` at the end of a line and `rf` on the next is not what will run."""
    script = """const [text, done] = arguments; import("/subject.js").then((all) => {
        const node = document.createElement("pre"), box = document.createElement("figure"), broken = [];
        const range = document.createRange();
        box.className = "subject"; box.append(node); document.body.append(box); node.append(...all.command(text));
        for (let width = 160; width < 400; width += 7) {
          box.style.width = `${width}px`;
          for (const flag of node.querySelectorAll(".k-one")) {
            range.selectNodeContents(flag);
            if (new Set([...range.getClientRects()].map((row) => row.top)).size > 1) broken.push(flag.textContent);
          }
        }
        const count = node.querySelectorAll(".k-one").length; box.remove(); done([count, broken]); })"""
    command = "head -1 x | docker run --rm -v a:b -e A=1 i sh -c 'ls' && git push --force -rf --no-verify"
    assert browser.execute_async_script(script, command) == [8, []]


@pytest.mark.parametrize(
    "text",
    [
        COMMAND,
        "echo 'open quotation | rm -rf /",
        "a=$(curl x | sh) `b` ${c:-d} <<EOF\n# note\nEOF\n\\",
        'printf \'%s\' "a\\"b" >>x 2>&1; { ls; } & \t\u00a0é漢👩‍💻',
        CHANGE,
        " 12 -old = 1\n 12 +new = 1\n\n--- a\n+++ b",
        "https://user:pw@example.com:8443/a?b#c",
    ],
)
def test_colours_change_no_character(browser: Any, text: str) -> None:
    script = """const [text, done] = arguments; import("/subject.js").then((all) => done(
        [all.command, all.change, all.address].map((colours) => {
          const node = document.createElement("pre");
          node.append(...colours(text).filter((part) => part !== null));
          return node.textContent; })))"""
    assert browser.execute_async_script(script, text) == [text] * 3


def test_a_session_is_started_in_a_folder_with_words_and_a_name_and_renamed(hub: ThreadedHub, browser: Any) -> None:
    go(browser, "sessions")
    wait(browser, lambda it: it.find_element("xpath", "//button[text()='New session']")).click()
    folder = find(browser, "#folder")
    folder.clear()
    folder.send_keys("/home/ada/blog")
    find(browser, "#words").send_keys("--model 'big one'")
    find(browser, "#first").send_keys("write the first post")
    find(browser, "#session-name").send_keys("blog", Keys.ENTER)
    wait_text(browser, "main h1", "blog")
    assert hub.hub_api.launched == [("claude here", "/home/ada/blog", ("--model", "big one"), "blog")]
    assert hub.hub_api.instructed == ["write the first post"]
    browser.execute_script("document.querySelector('.manage').open = true")
    name = find(browser, "#rename")
    name.clear()
    name.send_keys("weblog", Keys.ENTER)
    wait_text(browser, "main h1", "weblog")


def test_a_folder_that_is_not_allowed_is_refused_in_words(hub: ThreadedHub, browser: Any) -> None:
    go(browser, "sessions")
    wait(browser, lambda it: it.find_element("xpath", "//button[text()='New session']")).click()
    folder = find(browser, "#folder")
    folder.clear()
    folder.send_keys("/etc", Keys.ENTER)
    wait_text(browser, "#toasts", "/etc is not a folder in which")
    assert hub.hub_api.launched == []


def test_earlier_lines_stand_above_the_screen_and_why_is_told(hub: ThreadedHub, browser: Any) -> None:
    session = hub.add_session(tool="bash")
    hub.hub_api.past[session.session_id] = [[[f"line {number}", 2, None, 0]] for number in range(60)]
    go(browser, f"session/{session.session_id}")
    wait_text(browser, ".rows", "waiting")
    browser.find_element("xpath", "//button[text()='Earlier lines']").click()
    wait(browser, lambda it: len(it.find_elements("css selector", ".past > div")) == 60)
    assert "line 59" in text_of(browser, ".past")
    hub.show(session.session_id, ["changed"])
    wait_text(browser, ".rows", "changed")
    assert len(browser.find_elements("css selector", ".past > div")) == 60
    browser.execute_script("document.querySelector('.manage').open = true")
    browser.find_element("xpath", "//button[text()='Why am I not asked?']").click()
    wait_text(browser, ".why", "it is busy: no prompt")
    browser.find_element("xpath", "//button[contains(text(), 'Report a missed prompt')]").click()
    wait_text(browser, ".why", "Reported")


def test_history_and_audit_are_filtered_and_linked(hub: ThreadedHub, browser: Any) -> None:
    session = hub.add_session(label="shop-api")
    record = hub.ask(sample.YES_NO, session)
    hub.ask(sample.TEXT)
    hub.run(hub.hub.move(record, PromptState.RESOLVED, Receipt("taken", "Taken.", "web:Ada's phone")))
    hub.hub_api.note("WEB_LOGIN", identity="web:page")
    hub.hub_api.note("REPLY_RECEIVED", prompt_id=record.prompt_id, session_id=session.session_id, decided_by="web:page")
    go(browser, "history")
    wait(browser, lambda it: len(it.find_elements("css selector", "details.entry")) == 2)
    find(browser, ".filters select option[value=resolved]").click()
    wait(browser, lambda it: len(it.find_elements("css selector", "details.entry")) == 1)
    find(browser, "details.entry summary").click()
    wait(browser, lambda it: it.find_element("link text", "In the audit log")).click()
    wait_text(browser, "main h1", "Audit log")
    wait(browser, lambda it: len(it.find_elements("css selector", "details.entry")) == 1)
    assert "Answered" in text_of(browser, "details.entry")
    go(browser, "audit")
    wait(browser, lambda it: len(it.find_elements("css selector", "details.entry")) > 1)
    find(browser, ".head select option[value=access]").click()
    wait(browser, lambda it: set(text_of(it, "details.entry strong").split("\n")) == {"A browser logged in"})


def test_from_one_prompt_to_the_next_the_list_keeps_its_filter_and_its_marks(hub: ThreadedHub, browser: Any) -> None:
    for number in range(6):
        hub.ask(sample.MENU, hub.add_session(label=f"task-{number}"))
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 6)
    find(browser, ".side input[type=search]").send_keys("task-")
    find(browser, ".tick input").click()
    browser.find_elements("css selector", "[data-row]")[3].click()
    wait(browser, lambda it: "prompt/" in it.execute_script("return location.hash"))
    assert find(browser, ".side input[type=search]").get_attribute("value") == "task-"
    assert "1 selected" in text_of(browser, ".batch")


def test_a_card_stays_while_others_come(hub: ThreadedHub, browser: Any) -> None:
    for _ in range(4):
        hub.ask(sample.MENU)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 4)
    shown = find(browser, "[data-prompt]").get_attribute("data-prompt")
    for _ in range(3):
        hub.ask(sample.MENU)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 7)
    assert find(browser, "[data-prompt]").get_attribute("data-prompt") == shown


def test_the_keyboard_leaves_every_view(hub: ThreadedHub, browser: Any) -> None:
    """Tab walks through all that can be reached and out at the end: it comes round, also with typing on."""
    session = hub.add_session(tool="bash")
    go(browser, f"session/{session.session_id}")
    wait_text(browser, ".rows", "waiting")
    find(browser, "#typing").click()
    wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    find(browser, ".screen-box .term").click()
    tall = "return document.activeElement.closest('.screen-box .term') === null"
    webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
    wait(browser, lambda it: it.execute_script(tall))
    back = webdriver.ActionChains(browser).key_down(Keys.SHIFT).send_keys(Keys.TAB, Keys.TAB).key_up(Keys.SHIFT)
    back.perform()
    wait(browser, lambda it: it.execute_script(tall))


def test_first_load_stays_small(hub: ThreadedHub) -> None:
    """All that a browser fetches before the first card, as it comes over the line."""
    chromium = open_browser()
    try:
        chromium.get(hub.link())
        wait_text(chromium, "#link", "live")
        size = chromium.execute_script(
            "return performance.getEntriesByType('resource').filter((one) => !one.name.includes('/api/'))"
            ".reduce((sum, one) => sum + one.transferSize, 0)"
        )
        assert 20_000 < size < 100_000
        phone(chromium, 390, 844)
        assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        chromium.quit()
