"""The page with very many prompts and sessions: `python -m tests.torture page_crowd [--prompts N] [--sessions N]`.

Time to the first card, tasks that block the page while it is scrolled and while more come, and the tab's memory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from selenium import webdriver

from atlasbridge.core.prompt.subject import Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import replace
from tests.support import sample_prompt as sample
from tests.support.browser import open_browser, wait, wait_text
from tests.support.threaded_hub import ThreadedHub

LONG_MS = 100.0
TURNS = 4
ROWS = "return document.querySelectorAll('[data-row]').length"
WATCH = """window.tasks = []; new PerformanceObserver((list) =>
  window.tasks.push(...list.getEntries().map((one) => one.duration))).observe({type: "longtask"});"""
SCROLL = """const done = arguments[0]; const box = document.querySelector(".side"); let down = 0;
const step = () => { down += 1; box.scrollTop += 240; window.scrollBy(0, 120);
  if (down < 60) requestAnimationFrame(step); else done(box.scrollHeight); };
requestAnimationFrame(step);"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="page_crowd")
    parser.add_argument("--prompts", type=int, default=300)
    parser.add_argument("--sessions", type=int, default=100)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        hub = ThreadedHub(Path(home))
        browser = open_browser(1280, 900)
        try:
            return measure(hub, browser, given.prompts, given.sessions)
        finally:
            browser.quit()
            hub.stop()


def measure(hub: ThreadedHub, browser: Any, prompts: int, sessions: int) -> int:
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
    browser.execute_script(WATCH)
    scrolled, came, height = 1e9, 1e9, 0
    for turn in range(1, TURNS + 1):  # the best of them: a busy machine only adds
        browser.execute_script("document.querySelector('.side').scrollTop = 0")
        longest(browser)
        height = browser.execute_async_script(SCROLL)
        scrolled = min(scrolled, longest(browser))
        for number in range(20):
            hub.ask(sample.MENU, hosts[number])
        count = prompts + 20 * turn
        until_listed(browser, count)
        came = min(came, longest(browser))
    browser.execute_script("location.hash = '#sessions'")
    wait(browser, lambda it: len(it.find_elements("css selector", ".run")) == sessions)
    listed = longest(browser)
    print(
        f"page_crowd: {prompts} prompts, {sessions} sessions: first card {shown_ms:.0f} ms after the reload; "
        f"list of {height} pixels; longest task while scrolling {scrolled:.0f} ms, while 20 more came {came:.0f} ms, "
        f"for the list of sessions {listed:.0f} ms; "
        f"heap {heap(browser) / 1e6:.1f} MB (empty page {base / 1e6:.1f} MB), {metric(browser, 'Nodes'):.0f} nodes"
    )
    return 1 if max(scrolled, came) > LONG_MS else 0


def until_listed(browser: Any, count: int) -> None:
    wait(browser, lambda it: it.execute_script(ROWS) == count)


def longest(browser: Any) -> float:
    found = browser.execute_script("const all = window.tasks || []; window.tasks = []; return Math.max(0, ...all)")
    return float(found)


def heap(browser: Any) -> float:
    browser.execute_cdp_cmd("HeapProfiler.enable", {})
    browser.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return metric(browser, "JSHeapUsedSize")


def metric(browser: Any, name: str) -> float:
    browser.execute_cdp_cmd("Performance.enable", {})
    found = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(item["value"] for item in found if item["name"] == name))


def _shows(count: int, browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script(ROWS) == count)
