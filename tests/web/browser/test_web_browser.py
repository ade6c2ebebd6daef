"""The page in a real browser: every type of prompt, two tabs, a phone, keys only, a restart, and hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys
from tests.support import sample_prompt as sample
from tests.support.browser import at_rest, complaints, find, phone, still, text_of, wait, wait_text
from tests.support.threaded_hub import ThreadedHub

from atlasbridge.core.policy.effects import with_effects
from atlasbridge.core.prompt.model import (
    Prompt,
    PromptRecord,
    PromptState,
    Receipt,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.values import replace

CONTRAST = (Path(sample.__file__).parent / "contrast.js").read_text()
pytestmark = pytest.mark.browser


@pytest.fixture
def browser(browser: webdriver.Chrome) -> Iterator[webdriver.Chrome]:
    """In the end its console must have stayed clean."""
    yield browser
    found = [line for line in complaints(browser) if "Failed to load resource" not in line and "ERR_" not in line]
    assert found == []


def click(browser: webdriver.Chrome, css: str) -> None:
    """As a person does: when the page has come to rest, since it ignores taps in the moment in which it moved; and
    again until it has an effect."""
    before = at_rest(browser)

    def tapped(it: webdriver.Chrome) -> bool:
        it.find_element("css selector", css).click()
        return still(it) != before

    wait(browser, tapped, f"a tap on {css} had no effect")


def answered(hub: ThreadedHub, browser: webdriver.Chrome) -> str:
    wait(browser, lambda _: hub.hub.answered, "nothing was answered")
    return hub.hub.answered[-1][1]


def test_the_link_vanishes_from_the_address_and_the_cookie_is_out_of_reach(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    assert "link=" not in browser.current_url
    assert browser.execute_script("return document.cookie") == ""


@pytest.mark.parametrize(
    ("prompt", "button", "value"),
    [
        (sample.YES_NO, "[data-value=y]", "y"),
        (sample.YES_NO, "[data-value=n]", "n"),
        (sample.ENTER, "[data-value=enter]", "enter"),
        (sample.MENU, "[data-value='3']", "3"),
        (sample.MENU, "[data-value='1']", "1"),
    ],
    ids=["yes", "no", "enter", "menu-refuse", "menu-yes"],
)
def test_a_button_answers(hub: ThreadedHub, browser: webdriver.Chrome, prompt: Prompt, button: str, value: str) -> None:
    hub.ask(prompt)
    find(browser, button)
    click(browser, button)
    assert answered(hub, browser) == value
    wait_text(browser, ".card.over .stages .done:last-child", "taken")
    wait_text(browser, "#cards", "Nothing is waiting for you")


def test_an_answer_that_holds_for_ever_needs_a_second_tap(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.MENU)
    find(browser, "[data-value='2']")
    click(browser, "[data-value='2']")
    wait_text(browser, ".answer-bar .word", "Press it once more")
    assert hub.hub.answered == []
    click(browser, "[data-value='2']")
    assert answered(hub, browser) == "2"


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        (sample.TEXT, "my shop"),
        (sample.MENU_WITH_TEXT, "neither"),
        (sample.UNKNOWN, "q"),
    ],
    ids=["text", "menu", "unknown"],
)
def test_text_is_sent_by_the_enter_key(hub: ThreadedHub, browser: webdriver.Chrome, prompt: Prompt, text: str) -> None:
    hub.ask(prompt)
    find(browser, ".say input").send_keys(text)
    wait(browser, lambda it: hub.hub.answered or it.find_element("css selector", ".say input").send_keys(Keys.ENTER))
    assert answered(hub, browser) == text


def test_several_lines_are_sent_where_the_tool_takes_them(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.IDLE)
    find(browser, ".say textarea").send_keys("first", Keys.ENTER, "second")
    assert hub.hub.answered == []
    click(browser, ".send")
    assert answered(hub, browser) == "first\nsecond"


def test_a_choice_that_needs_words_leads_to_the_text_field(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.MENU_WITH_TEXT)
    find(browser, "[data-value='2']")
    wait(browser, lambda it: (it.find_element("css selector", "[data-value='2']").click(), in_text_field(it))[1])
    assert hub.hub.answered == []


def in_text_field(browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script("return document.activeElement.matches('.say input')"))


def test_a_secret_is_typed_into_a_hidden_field_and_forgotten(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.SECRET)
    field = find(browser, ".say input")
    assert field.get_attribute("type") == "password"
    field.send_keys("hunter2")
    click(browser, ".send")
    assert answered(hub, browser) == "hunter2"
    kept = "return JSON.stringify({...localStorage}) + JSON.stringify({...sessionStorage}) + document.body.innerText"
    assert "hunter2" not in browser.execute_script(kept)


def test_several_marked_choices_are_sent_together(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.SEVERAL)
    find(browser, "input[type=checkbox]")
    at_rest(browser)
    for value in ("1", "3"):
        find(browser, f"input[type=checkbox][value='{value}']").click()
    click(browser, ".send-marked")
    assert answered(hub, browser) == "1,3"


def test_a_list_can_be_left_without_marking_anything(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.SEVERAL)
    find(browser, "[data-value=c]")
    click(browser, "[data-value=c]")
    assert answered(hub, browser) == "c"


def test_a_refusal_is_told_in_words_and_the_card_can_be_used_again(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    record = hub.ask(sample.YES_NO)
    find(browser, "[data-value=y]")
    hub.hub_api.all_prompts[record.prompt_id] = sample_closed(record)
    click(browser, "[data-value=y]")
    wait_text(browser, ".word.bad", "Too late: answered by telegram:7")
    assert find(browser, "[data-value=y]").is_enabled()


def sample_closed(record: PromptRecord) -> PromptRecord:
    return replace(record, state=PromptState.RESOLVED, decided_by="telegram:7")


def test_answered_elsewhere_says_by_whom(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    record = hub.ask(sample.YES_NO)
    find(browser, "[data-prompt]")
    receipt = Receipt("answered_elsewhere", "Answered by telegram:123.", "telegram:123")
    hub.run(hub.hub.move(record, PromptState.REPLY_RECEIVED, receipt))
    wait_text(browser, ".card.over .who", "by telegram (123)")
    assert browser.find_elements("css selector", "[data-prompt]") == []


@pytest.mark.parametrize("seen_between", [False, True])
def test_a_hook_that_comes_late_improves_the_open_card_and_no_other_stays_in_its_place(
    hub: ThreadedHub, browser: webdriver.Chrome, seen_between: bool
) -> None:
    """The hub asks again under a new id: an answer to what showed less is refused. The page may draw in between."""
    hub.ask(sample.YES_NO, hub.add_session(label="other"), ttl_s=60)
    session, part = hub.add_session(label="build"), replace(sample.MENU, digest="d", whole=False)
    first = hub.ask(part, session)
    browser.execute_script(f"location.hash = '#prompt/{first.prompt_id}'")
    wait_text(browser, "[data-prompt] .warn", "Incomplete")

    gone = Receipt("withdrawn", "It was asked again.")
    browser.execute_script("const now = performance.now(); performance.now = () => now")
    if seen_between:
        hub.run(hub.hub.move(first, PromptState.WITHDRAWN, gone))
        wait_text(browser, "[data-prompt] h2", "other")

    async def told_late() -> PromptRecord:
        if not seen_between:
            await hub.hub.move(first, PromptState.WITHDRAWN, gone)
        return await hub.hub.raise_prompt(session, replace(command("sudo rm -rf build"), digest="d"))

    second = hub.run(told_late())
    wait_text(browser, "[data-prompt] .subject", "sudo rm -rf build")
    wait(browser, lambda it: _is_at(f"prompt/{second.prompt_id}", it))
    wait_text(browser, ".answer-bar .word", "Read it again.")
    assert browser.find_elements("css selector", ".receipt, [data-settled]") == []


def test_a_card_that_goes_by_itself_says_which_session_it_was_of(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.YES_NO, hub.add_session(label="other"))
    gone = hub.ask(sample.MENU, hub.add_session(label="build"))
    browser.execute_script(f"location.hash = '#prompt/{gone.prompt_id}'")
    wait_text(browser, "[data-prompt] h2", "build")
    at_terminal = Receipt("withdrawn", "It was answered at the terminal.")
    hub.run(hub.hub.move(gone, PromptState.WITHDRAWN, at_terminal))
    wait_text(browser, ".receipt", "build: It was answered at the terminal.")
    wait_text(browser, "[data-prompt] h2", "other")


def test_the_soonest_deadline_stands_first_and_the_title_counts(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.YES_NO, hub.add_session(label="later"), ttl_s=600)
    hub.ask(sample.TEXT, hub.add_session(label="sooner"), ttl_s=45)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
    assert browser.title == "(2) AtlasBridge"
    assert text_of(browser, "#badge") == "2"
    browser.refresh()
    wait_text(browser, "[data-prompt] h2", "sooner is asking")
    assert "0:" in text_of(browser, ".line-left.short")


@pytest.mark.parametrize("prompts", [(sample.YES_NO,), (sample.YES_NO, sample.MENU)])
def test_the_first_row_of_the_list_covers_no_heading(
    hub: ThreadedHub, browser: webdriver.Chrome, prompts: tuple[Prompt, ...]
) -> None:
    """With prompts of one kind and of two: the row of kinds above the list is there only for two."""
    phone(browser, 1280, 800)
    for prompt in (*prompts, sample.YES_NO):
        hub.ask(prompt, hub.add_session())
    find(browser, ".inbox h3")
    wait(
        browser,
        lambda found: found.execute_script(
            """return [...document.querySelectorAll('.inbox h3')].every((title) => {
              const box = title.getBoundingClientRect();
              const next = title.nextElementSibling.getBoundingClientRect();
              return box.height > 0 && next.top >= box.bottom - 1;
            })"""
        ),
    )


def test_no_and_yes_are_on_the_screen_however_long_the_command_is(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    for width, height in ((320, 568), (390, 844), (768, 1024), (1280, 720)):
        phone(browser, width, height)
        record = hub.ask(command("\n".join(f"echo line {number}" for number in range(200)) + "\nrm -rf /srv/data"))
        browser.execute_script(f"location.hash = '#prompt/{record.prompt_id}'")
        find(browser, f"[data-prompt='{record.prompt_id}'] .decide")
        seen = browser.execute_script(
            """return ['.decide .refuse', '.decide .first', '.effects', '.subject pre'].map((css) => {
              const box = document.querySelector(css).getBoundingClientRect();
              const on = document.elementFromPoint(box.left + 5, Math.max(box.top, 70) + 5);
              return Boolean(on && (document.querySelector(css).contains(on)));
            })"""
        )
        assert seen == [True, True, True, True], (width, seen)
        assert text_of(browser, ".answer-bar .effects") == "deletes files"
        assert "echo line 100" in text_of(browser, ".subject pre")
        folded = browser.execute_script("return document.querySelector('.folded').checkVisibility()")
        assert folded is False
        hub.run(hub.hub.move(record, PromptState.WITHDRAWN, Receipt("withdrawn", "The tool moved on.", "")))


def test_the_bar_covers_nothing_of_the_card_and_no_word_is_broken_after_its_hyphen(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    always = "Yes, and don't ask again for npm run test:unit -- --coverage"
    menu = sample.MENU.choices
    record = hub.ask(
        replace(command("npm test -- --coverage"), choices=(menu[0], replace(menu[1], label=always), *menu[2:]))
    )
    browser.execute_script(f"location.hash = '#prompt/{record.prompt_id}'")
    for width, height in ((320, 568), (390, 664), (768, 1024), (1280, 800)):
        phone(browser, width, height)
        find(browser, f"[data-prompt='{record.prompt_id}'] .later summary")
        covered, broken = browser.execute_script(
            """const body = document.querySelector('.card-body'), bar = document.querySelector('.answer-bar');
            const range = document.createRange(), covered = [];
            for (body.scrollTop = 0; ; body.scrollTop += 40) {
              const over = body.getBoundingClientRect().bottom - bar.getBoundingClientRect().top;
              if (over > 1 || document.documentElement.scrollHeight > innerHeight) covered.push([body.scrollTop, over]);
              if (body.scrollTop + body.clientHeight >= body.scrollHeight - 1) break;
            }
            return [covered, [...document.querySelectorAll('.k-one')].filter((word) => {
              range.selectNodeContents(word);
              const rows = new Set([...range.getClientRects()].map((row) => row.top));
              return word.textContent.length < 12 && rows.size > 1;
            }).map((word) => word.textContent)];"""
        )
        assert covered == [], (width, covered)
        assert broken == [] and "--coverage" in text_of(browser, ".choice.always .k-one"), (width, broken)


def command(text: str) -> Prompt:
    told = Subject(SubjectKind.COMMAND, text, "/srv/shop", SubjectSource.HOOK, complete=True, shown=text)
    return with_effects(replace(sample.MENU, subject=told), ShellParser())


def test_after_an_answer_its_receipt_is_in_sight_and_the_next_card_follows(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    phone(browser, 390, 844)
    first = hub.ask(sample.MENU, hub.add_session(label="one"), ttl_s=60)
    others = [hub.ask(sample.MENU, hub.add_session(label=f"more-{n}"), ttl_s=600 - n) for n in range(5)]
    wait_text(browser, "[data-prompt] h2", "one is asking")
    click(browser, f"[data-prompt='{first.prompt_id}'] .decide .first")
    wait_text(browser, ".receipt", "“Yes” to one")
    wait_text(browser, ".receipt .done:last-child", "taken")
    find(browser, f"[data-prompt='{others[-1].prompt_id}']")
    top = browser.execute_script("return document.querySelector('.receipt').getBoundingClientRect().top")
    assert 0 <= top < 200
    browser.execute_script("scrollTo(0, 400)")
    still = browser.execute_script("return document.querySelector('.receipt').getBoundingClientRect().top")
    assert 0 <= still < 200, "the receipt scrolled out of sight"
    assert text_of(browser, ".back") == "‹ All 5 prompts"
    find(browser, ".receipt .close")
    click(browser, ".receipt .close")
    assert browser.find_elements("css selector", ".receipt") == []


def test_bash_select_asks_in_words(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(replace(sample.MENU, question="1) Yes\n2) Yes, and don't ask again\n3) No\n#?"))
    wait_text(browser, "[data-prompt] .question", "Which one?")


def test_no_stands_left_of_yes_and_always_stands_apart(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.MENU)
    find(browser, "[data-prompt]")
    assert text_of(browser, ".decide button:first-child.refuse") == "No"
    assert text_of(browser, ".decide button:last-child.first") == "Yes"
    assert "always" in text_of(browser, ".choices [data-value='2'].always")


def test_keys_alone_answer(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    for prompt, key, value in ((sample.YES_NO, "n", "n"), (sample.MENU, "1", "1"), (sample.MENU, "n", "3")):
        count = len(hub.hub.answered)
        hub.ask(prompt)
        find(browser, "[data-prompt]")
        wait(browser, partial(_pressed, hub, key, count))
        assert hub.hub.answered[-1][1] == value
        wait(browser, lambda it: not it.find_elements("css selector", "[data-prompt]"))


def press(browser: webdriver.Chrome, key: str) -> None:
    webdriver.ActionChains(browser).send_keys(key).perform()


def test_a_key_answers_nothing_while_two_prompts_are_open_and_none_is_chosen(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    hub.ask(sample.YES_NO)
    hub.ask(sample.YES_NO)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
    wait(browser, lambda it: (press(it, "y"), it.switch_to.active_element.get_attribute("data-prompt"))[1])
    assert hub.hub.answered == []
    chosen = browser.switch_to.active_element.get_attribute("data-prompt")
    press(browser, "y")
    assert answered(hub, browser) == "y"
    assert hub.hub.answered[0][0] == chosen


def test_a_letter_in_a_text_field_is_text(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.MENU_WITH_TEXT)
    field = find(browser, ".say input")
    field.send_keys("1yn2")
    assert field.get_attribute("value") == "1yn2"
    assert hub.hub.answered == []


def test_two_tabs_see_the_same_and_only_one_answer_counts(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(sample.YES_NO)
    find(browser, "[data-prompt]")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(hub.url)
    find(browser, "[data-value=y]")
    click(browser, "[data-value=y]")
    assert answered(hub, browser) == "y"
    browser.switch_to.window(first)
    wait_text(browser, ".card.over .verdict", "“Yes” by page (this browser)")
    assert browser.find_elements("css selector", "[data-prompt]") == []
    assert len(hub.hub.answered) == 1


def test_the_page_says_that_it_is_cut_off_and_comes_back_after_a_restart(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    hub.run(hub.hub.stop())
    wait_text(browser, "#link", "not connected")
    record = hub.ask(sample.YES_NO)
    hub.run(hub.hub.restart_after_stop())
    wait_text(browser, "#link", "live")
    find(browser, f"[data-prompt='{record.prompt_id}']")
    click(browser, "[data-value=y]")
    assert answered(hub, browser) == "y"


def test_nothing_is_wider_than_a_small_phone(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    phone(browser)
    session = hub.add_session(tool="claude", cwd="/a/very/long/path/" + "x" * 120, label="L" * 60)
    hub.show(session.session_id, ["─" * 200])
    hub.ask(sample.hostile_prompt("W" * 180), session)
    menu = hub.ask(sample.MENU, session)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
    views = ("prompts", "list", "sessions", f"session/{session.session_id}", "history", "audit", "figures", "settings")
    for view in views:
        browser.execute_script(f"location.hash = '#{view}'")
        wait(browser, partial(_is_at, view))
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, view
    browser.execute_script(f"location.hash = '#prompt/{menu.prompt_id}'")
    find(browser, "[data-value='3']")
    small = (
        "return [...document.querySelectorAll('.choice')].filter((it) => it.getBoundingClientRect().height < 44).length"
    )
    assert browser.execute_script(small) == 0
    click(browser, "[data-value='1']")
    assert answered(hub, browser) == "1"


@pytest.mark.parametrize("text", sample.HOSTILE)
def test_hostile_text_is_shown_as_text_in_every_view(hub: ThreadedHub, browser: webdriver.Chrome, text: str) -> None:
    session = hub.add_session(tool=text, cwd=f"/{text}", label=text)
    hub.show(session.session_id, [text, [[text, "red;background:url(x)", "<b>", 0]]])
    hub.ask(sample.hostile_prompt(text), session)
    find(browser, "[data-prompt]")
    assert text_of(browser, "[data-prompt] .ask") == text
    hub.hub_api.note(text, identity=text, detail=text)
    for view in ("sessions", f"session/{session.session_id}", "history", "audit", "figures", "prompts"):
        browser.execute_script(f"location.hash = '#{view}'")
        wait(browser, lambda it: "h1" and it.find_elements("css selector", "main h1"))
        assert browser.execute_script("return window.owned") is None
    find(browser, "[data-prompt]")
    planted = (
        "return document.querySelectorAll('main script, main iframe, main img, main [onerror], main [onload]').length"
    )
    assert browser.execute_script(planted) == 0


def test_a_session_is_watched_typed_into_and_ended(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    session = hub.add_session(tool="bash")
    hub.show(session.session_id, [[["red", 1, None, 1], [" true", "#12ab34", None, 0]]])
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(browser, ".term", "red true")
    colours = [
        browser.execute_script(
            "return getComputedStyle(document.querySelectorAll('.term span')[arguments[0]]).color", at
        )
        for at in (0, 1)
    ]
    assert colours == ["rgb(224, 108, 117)", "rgb(18, 171, 52)"]
    hub.show(session.session_id, ["changed"])
    wait_text(browser, ".term", "changed")
    find(browser, "#typing").click()
    wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    find(browser, "input[aria-label='Text to type']").send_keys("ls")
    browser.find_element("xpath", "//button[text()='Type']").click()
    browser.find_element("xpath", "//button[text()='Enter']").click()
    wait(browser, lambda _: [data for _, data, _ in hub.hub_api.typed] == [b"ls", b"\r"])
    browser.execute_script("document.querySelector('.manage').open = true")
    browser.find_element("xpath", "//button[text()='End session']").click()
    wait(browser, lambda it: it.switch_to.alert).accept()
    wait(browser, lambda _: hub.hub_api.killed == [(session.session_id, False)])
    browser.execute_script("location.hash = '#sessions'; location.reload()")
    wait_text(browser, "main ul[aria-label='ended']", "bash")
    click(browser, "main ul[aria-label='ended'] a")
    wait_text(browser, ".term", "changed")
    wait_text(browser, ".session-head", "ended")


def test_the_empty_rows_of_a_tall_window_are_not_drawn_and_its_last_words_are_in_sight(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    """A tool that hides what does not fit has 240 rows while no terminal is attached."""
    session = hub.add_session(tool="gemini")
    seen = "return [...document.querySelectorAll('.rows > div:not(.cursor)')].filter((line) => !line.hidden).length"
    hub.show(session.session_id, ["Ready."] + [""] * 239)
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait_text(browser, ".term", "Ready.")
    assert browser.execute_script(seen) == 24
    hub.show(session.session_id, [f"line {number}" for number in range(120)] + ["Go on?"] + [""] * 119)
    wait_text(browser, ".term", "Go on?")
    assert browser.execute_script(seen) == 121
    inside = """const box = document.querySelector('.term').getBoundingClientRect();
        const line = document.querySelectorAll('.rows > div')[120].getBoundingClientRect();
        return line.top >= box.top && line.bottom <= box.bottom"""
    assert browser.execute_script(inside)


def test_a_screen_is_sent_only_while_somebody_looks(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    session = hub.add_session(tool="bash")
    browser.execute_script(f"location.hash = '#session/{session.session_id}'")
    wait(browser, lambda _: hub.hub_api.watching == 1)
    browser.execute_script("location.hash = '#prompts'")
    wait(browser, lambda _: hub.hub_api.watching == 0)


def test_not_a_prompt_writes_a_report(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    record = hub.ask(sample.MENU)
    find(browser, "[data-prompt]")
    click(browser, "[data-prompt] .report")
    wait_text(browser, "[data-prompt] .report", "Reported")
    (report,) = (hub.hub_api.home / "reports").glob("*.json")
    assert record.prompt_id in report.read_text()


def test_every_control_has_a_name_and_every_colour_enough_contrast(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    hub.ask(command("sudo rm -rf build"))
    hub.ask(sample.SECRET)
    wait(browser, lambda it: len(it.find_elements("css selector", "[data-row]")) == 2)
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        wait(browser, lambda it: not it.execute_script("return document.getAnimations().length"))
        assert browser.execute_script(CONTRAST) == [], scheme
    nameless = """return [...document.querySelectorAll('button, a, input, [role]')].filter((node) =>
        !(node.textContent.trim() || node.getAttribute('aria-label') || node.labels?.length || node.hidden
          || ['status', 'group', 'timer'].includes(node.getAttribute('role')))).map((node) => node.outerHTML)"""
    assert browser.execute_script(nameless) == []
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_page_without_login_shows_how_to_get_in_and_takes_a_pasted_link(
    hub: ThreadedHub, browser: webdriver.Chrome
) -> None:
    browser.execute_async_script("const gone = indexedDB.deleteDatabase('atlasbridge'); gone.onsuccess = arguments[0]")
    browser.execute_script("location.hash = ''; location.reload()")
    wait_text(browser, ".login", "atlasbridge web")
    find(browser, "#pass").send_keys("http://127.0.0.1/#link=wrong", Keys.ENTER)
    wait_text(browser, ".login .word", "This link is incomplete")
    find(browser, "#pass").clear()
    find(browser, "#pass").send_keys(f"http://127.0.0.1/#link=0123456789ab.{'0' * 64}", Keys.ENTER)
    wait_text(browser, ".login .word", "was used already or has expired")
    find(browser, "#pass").clear()
    find(browser, "#pass").send_keys(hub.link(), Keys.ENTER)
    wait_text(browser, "#link", "live")


def test_a_notification_is_shown_when_the_page_is_out_of_sight(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    browser.execute_cdp_cmd("Browser.grantPermissions", {"origin": hub.url, "permissions": ["notifications"]})
    browser.execute_script("localStorage.setItem('atlasbridge-notify', 'on')")
    wait(browser, lambda it: it.execute_async_script("navigator.serviceWorker.ready.then(() => arguments[0](true))"))
    assert browser.execute_script("return Notification.permission") == "granted"
    hide = "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden', configurable: true})"
    browser.execute_script(hide)
    browser.execute_script(TOLD)
    hub.ask(sample.MENU)
    wait(browser, lambda it: it.execute_script("return window.told"), "no notification was shown")
    shown = """navigator.serviceWorker.ready.then((worker) => worker.getNotifications())
        .then((list) => arguments[0](list.map((item) => item.title + '|' + item.body)))"""
    found = browser.execute_async_script(shown)
    assert found == ["claude asks|Do you want to proceed?"]


# chromium forgets a notification that is asked for before it is drawn: wait for it, then ask once
TOLD = """
const show = ServiceWorkerRegistration.prototype.showNotification;
ServiceWorkerRegistration.prototype.showNotification = function (...words) {
  return show.apply(this, words).then(() => { window.told = true; });
};
"""


def _pressed(hub: ThreadedHub, key: str, count: int, browser: webdriver.Chrome) -> bool:
    press(browser, key)
    return len(hub.hub.answered) > count


def _is_at(view: str, browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script("return location.hash") == f"#{view}")


_MOVED = """
const done = arguments[0];
let moved = 0;
new PerformanceObserver((list) => { for (const shift of list.getEntries()) moved += shift.value; })
  .observe({ type: "layout-shift", buffered: true });
setTimeout(() => done(moved), 300);
"""


@pytest.mark.parametrize("view", ["prompts", "sessions"])
@pytest.mark.parametrize("width", [390, 768, 1350])
def test_nothing_on_the_page_moves_while_it_loads(
    hub: ThreadedHub, browser: webdriver.Chrome, width: int, view: str
) -> None:
    for _ in range(30):
        hub.ask(sample.MENU)
    phone(browser, width, 900)
    browser.get(f"{hub.url}/#{view}")
    browser.refresh()
    wait_text(browser, "#badge", "30")
    at_rest(browser)
    assert browser.execute_async_script(_MOVED) < 0.01


def test_a_page_that_was_left_many_times_is_live_again(hub: ThreadedHub, browser: webdriver.Chrome) -> None:
    """The browser keeps pages for its "back" button: their streams would use up its connections to the hub."""
    for _ in range(8):
        browser.get("about:blank")
        browser.get(hub.url)
        wait_text(browser, "#link", "live")
    browser.back()
    browser.back()
    wait_text(browser, "#link", "live")
