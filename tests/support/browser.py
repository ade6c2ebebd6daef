"""A real browser for the page's tests: Debian's chromium without a window, driven by selenium.

Found by name on the PATH; a machine without it fails these tests with a sentence that says what to install.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from typing import Any
from urllib.request import urlopen

from selenium import webdriver
from selenium.common.exceptions import TimeoutException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from websocket import WebSocket

PATIENCE_S = 30.0
LOOKS_AT_REST = 12  # a twentieth of a second each
HINT = "install chromium and chromium-driver, or leave these tests out with -m 'not browser'"


def open_browser(width: int = 1100, height: int = 900, dark: bool = False) -> webdriver.Chrome:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    assert chromium and driver, f"no chromium or no chromedriver on the PATH: {HINT}"
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.set_script_timeout(PATIENCE_S)
    if dark:
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    return browser


def add_authenticator(browser: webdriver.Chrome) -> None:
    """A chip that unlocks at every touch."""
    options = VirtualAuthenticatorOptions()
    options.transport = VirtualAuthenticatorOptions.Transport.INTERNAL
    options.has_user_verification = True
    options.is_user_verified = True
    options.has_resident_key = True
    browser.add_virtual_authenticator(options)


def phone(browser: webdriver.Chrome, width: int = 360, height: int = 740) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 2, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})


def wait(browser: Any, condition: Callable[[Any], Any], what: str = "") -> Any:
    """Wait for something to be so; elements that vanish while they are looked at do not matter."""
    try:
        return WebDriverWait(browser, PATIENCE_S, 0.05, (WebDriverException,)).until(condition)
    except TimeoutException:
        shown = browser.execute_script("return [location.hash, document.title, document.body.innerText].join(' | ')")
        log = [entry["message"] for entry in browser.get_log("browser")] if hasattr(browser, "get_log") else []
    raise AssertionError(f"{what or 'it never came true'}; the page shows: {shown!r}; its console: {log}")


def still(browser: Any) -> str:
    """What the page shows, but for its clocks: they move by themselves."""
    return re.sub(r"\d+:\d\d", "", text_of(browser, "main"))


def at_rest(browser: Any) -> str:
    """What the page shows once it has come to rest: it ignores taps in the moment in which it moved."""
    looks = [still(browser)]

    def same_for_a_while(it: Any) -> bool:
        looks.append(still(it))
        return len(looks) > LOOKS_AT_REST and len(set(looks[-LOOKS_AT_REST:])) == 1

    wait(browser, same_for_a_while, "the page never came to rest")
    return looks[-1]


def find(browser: Any, css: str) -> WebElement:
    return wait(browser, lambda it: it.find_element(By.CSS_SELECTOR, css), f"nothing matches {css}")


def text_of(browser: Any, css: str) -> str:
    """Read in one step inside the page, so that a redraw cannot come in between."""
    script = "return [...document.querySelectorAll(arguments[0])].map((node) => node.textContent).join('\\n')"
    return str(browser.execute_script(script, css))


def wait_text(browser: Any, css: str, words: str) -> None:
    wait(browser, lambda it: words in text_of(it, css), f"{css} never said {words!r}")


def complaints(browser: webdriver.Chrome) -> list[str]:
    """What the page's console has said: an inline script or a blocked style would stand here."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]


def kept_shell(browser: webdriver.Chrome) -> None:
    """The service worker has all files of the page and controls it."""
    script = """navigator.serviceWorker.ready.then(async () => {
        for (;;) {
          const kept = await caches.open("atlasbridge-shell").then((cache) => cache.match("/shell"));
          if (kept && navigator.serviceWorker.controller) break;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        arguments[0](true);
    })"""
    assert browser.execute_async_script(script)


class DevTools:
    """Chromium's own protocol at a page or a service worker, where the driver has no command for it."""

    def __init__(self, browser: webdriver.Chrome, kind: str) -> None:
        address = browser.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urlopen(f"http://{address}/json/list") as answer:
            targets = json.load(answer)
        self._socket = WebSocket()
        here = str(browser.execute_script("return location.origin"))
        found = next(one for one in targets if one["type"] == kind and one["url"].startswith(here))
        url = found["webSocketDebuggerUrl"]
        self._socket.connect(url, timeout=PATIENCE_S, suppress_origin=True)  # type: ignore[no-untyped-call]
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> DevTools:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": given}))
        while (told := json.loads(self._socket.recv())).get("id") != self._number:
            self.events.append(told)
        assert "error" not in told, told
        return dict(told["result"])

    def event(self, method: str) -> dict[str, Any]:
        while not (found := [one["params"] for one in self.events if one["method"] == method]):
            self.events.append(json.loads(self._socket.recv()))
        return dict(found[-1])

    def run(self, script: str) -> Any:
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")


SHOWN = "registration.getNotifications().then((all) => all.map((one) => [one.title, one.body, one.tag]))"


def push_to(browser: webdriver.Chrome, message: dict[str, Any]) -> None:
    """Deliver a push message as the browser's push service does."""
    origin = str(browser.execute_script("return location.origin"))
    with DevTools(browser, "page") as page:
        page.call("ServiceWorker.enable")
        found = page.event("ServiceWorker.workerRegistrationUpdated")["registrations"]
        mine = next(one for one in found if one["scopeURL"] == f"{origin}/")
        given = {"origin": origin, "registrationId": mine["registrationId"], "data": json.dumps(message)}
        page.call("ServiceWorker.deliverPushMessage", **given)
