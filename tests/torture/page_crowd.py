"""The page with very many prompts and sessions: `python -m tests.torture page_crowd [--prompts N] [--sessions N]`.

Time to the first card, what blocks the page while it is scrolled and while more come, and the tab's memory.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from selenium import webdriver

from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace
from tests.support import sample_prompt as sample
from tests.support.browser import open_browser, wait, wait_text
from tests.support.threaded_hub import ThreadedHub

LONG_MS = 100.0
STEPS = 60
MORE = 20
ROWS = "return document.querySelectorAll('[data-row]').length"
STEP = """const done = arguments[0]; document.querySelector(".side").scrollTop += 300; window.scrollBy(0, 60);
requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector(".side").scrollHeight)));"""


def main(prompts: int = 300, sessions: int = 100) -> int:
    with tempfile.TemporaryDirectory() as home:
        hub = ThreadedHub(Path(home))
        browser = open_browser(1280, 900)
        try:
            return measure(hub, browser, prompts, sessions)
        finally:
            browser.quit()
            hub.stop()


def measure(hub: ThreadedHub, browser: Any, prompts: int, sessions: int) -> int:
    browser.execute_cdp_cmd("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    browser.execute_cdp_cmd("Performance.enable", {})
    browser.get(hub.link())
    wait_text(browser, "#link", "live")
    base = heap(browser)
    hosts = [hub.add_session(label=f"task-{number}", cwd=f"/home/ada/{number}") for number in range(sessions)]
    for number in range(prompts):
        words = f"npm run build -- --target {number} && git push origin main"
        about = Subject(SubjectKind.COMMAND, words, "/home/ada", SubjectSource.HOOK, True, words)
        hub.ask(replace(sample.MENU, subject=about), hosts[number % sessions])
    browser.refresh()
    began = time.monotonic()
    wait(browser, lambda it: it.execute_script("return document.querySelector('[data-prompt]') !== null"))
    shown_ms = (time.monotonic() - began) * 1000
    until_listed(browser, prompts)
    browser.set_script_timeout(180)
    scrolled = max(spent(browser, lambda: browser.execute_async_script(STEP)) for _ in range(STEPS))
    came = 0.0
    for number in range(1, MORE + 1):
        came = max(came, spent(browser, partial(one_more, hub, browser, hosts[number], prompts + number)))
    browser.execute_script("location.hash = '#sessions'")
    listed = spent(browser, lambda: wait(browser, lambda it: len(it.find_elements("css selector", ".run")) == sessions))
    print(
        f"page_crowd: {prompts} prompts, {sessions} sessions: first card {shown_ms:.0f} ms after the reload; "
        f"processor time at most: {scrolled:.0f} ms for a step of scrolling, {came:.0f} ms for one more prompt, "
        f"{listed:.0f} ms for the list of sessions; "
        f"heap {heap(browser) / 1e6:.1f} MB (empty page {base / 1e6:.1f} MB), {metric(browser, 'Nodes'):.0f} nodes"
    )
    return 1 if scrolled > LONG_MS else 0


def until_listed(browser: Any, count: int) -> None:
    wait(browser, lambda it: it.execute_script(ROWS) == count)


def one_more(hub: ThreadedHub, browser: Any, host: Any, count: int) -> None:
    hub.ask(sample.MENU, host)
    until_listed(browser, count)


def spent(browser: Any, work: Callable[[], Any]) -> float:
    """Milliseconds of processor time of the page's main thread, so that a busy machine does not count: no task in it
    was longer."""
    before = metric(browser, "TaskDuration")
    work()
    return (metric(browser, "TaskDuration") - before) * 1000


def heap(browser: Any) -> float:
    browser.execute_cdp_cmd("HeapProfiler.enable", {})
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return metric(browser, "JSHeapUsedSize")


def metric(browser: Any, name: str) -> float:
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(item["value"] for item in found if item["name"] == name))


def _shows(count: int, browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script(ROWS) == count)
