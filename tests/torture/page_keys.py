"""Keys from the page through a network that delays and cuts, into a real program: none lost, doubled or out of order.

    python -m tests.torture page_keys [--keys N]

A real hub, a real session, a real browser; a proxy between browser and hub.
"""

from __future__ import annotations

import asyncio
import random
import string
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from tests.support.browser import find, open_browser, wait, wait_text
from tests.support.hubs import HubProcess, hub_process
from tests.support.rough_network import RoughNetwork

PROGRAM = 'stty raw -echo; echo ready; head -c {count} > "{path}"; echo; echo all came; sleep 600'
PRESS = """const [node, text] = arguments; let at = 0; window.pressed = 0;
const next = () => { if (at >= text.length) return;
  for (let many = 1 + at % 5; many && at < text.length; many -= 1) {
    node.dispatchEvent(new KeyboardEvent("keydown", {key: text[at++], bubbles: true, cancelable: true})); }
  window.pressed = at; setTimeout(next, at % 11 ? 1 : 9); };
next();"""


def main(keys: int = 10_000, seed: int = 1) -> int:
    text = "".join(random.Random(seed).choices(string.ascii_letters + string.digits + " .,;", k=keys))
    with hub_process("[channels.web]\nport = 0\n") as hub:
        path = hub.home.root / "typed"
        came, cuts, seconds = attack(hub, path, text)
    wrong = sum(one != other for one, other in zip(came, text, strict=False)) + abs(len(came) - len(text))
    print(f"page_keys: {len(text)} keys, {cuts} cuts, {seconds:.0f} s: {len(came)} came, {wrong} at a wrong place")
    return 1 if wrong else 0


def attack(hub: HubProcess, path: Path, text: str) -> tuple[str, int, float]:
    program = PROGRAM.format(count=len(text), path=path)
    subprocess.run(hub.command("run", "--detach", "--", "bash", "-c", program), env=hub.environ, check=True)
    (session,) = hub.json("ps")
    link = hub.json("web", "--no-open", "--scope", "admin")["links"]["local"]
    port = int(link.split(":")[2].partition("/")[0])
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    rough = RoughNetwork(port)
    asyncio.run_coroutine_threadsafe(rough.start(), loop).result(30)
    browser = open_browser()
    try:
        began = _type(browser, link.replace(f":{port}/", f":{rough.port}/"), session["session_id"], rough, text)
        _until_all_came(path, len(text))
        seconds = time.monotonic() - began
    finally:
        browser.quit()
        asyncio.run_coroutine_threadsafe(rough.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
    return path.read_text(), rough.cuts, seconds


def _type(browser: Any, link: str, session_id: str, rough: RoughNetwork, text: str) -> float:
    browser.get(link)
    wait_text(browser, "#link", "live")
    browser.execute_script(f"location.hash = '#session/{session_id}'")
    wait_text(browser, ".rows", "ready")
    find(browser, "#typing").click()
    wait(browser, lambda it: it.find_element("css selector", ".keybar").is_displayed())
    rough.delay_s, rough.cut_share = 0.04, 0.04
    browser.execute_script(PRESS, find(browser, ".screen-box .term"), text)
    return time.monotonic()


def _until_all_came(path: Path, count: int, patience_s: float = 900.0) -> None:
    """A file that is not full in the end shows what is missing: that is said, not waited for."""
    give_up_at = time.monotonic() + patience_s
    while time.monotonic() < give_up_at and (not path.exists() or path.stat().st_size < count):
        time.sleep(0.2)
