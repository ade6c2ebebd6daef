"""Debian's Firefox without a window, driven by selenium's own classes over Marionette, the protocol that Firefox speaks
itself: no geckodriver is needed, which Debian does not have."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.remote_connection import RemoteConnection

HINT = "install firefox-esr, or leave these tests out with -m 'not browser'"
START_S = 60.0
RENAMED = {
    "newSession": "NewSession",
    "get": "Navigate",
    "w3cExecuteScript": "ExecuteScript",
    "w3cExecuteScriptAsync": "ExecuteAsyncScript",
    "quit": "DeleteSession",
    "refresh": "Refresh",
    "getCurrentUrl": "GetCurrentURL",
    "w3cGetActiveElement": "GetActiveElement",
    "getActiveElement": "GetActiveElement",
    "clickElement": "ElementClick",
    "sendKeysToElement": "ElementSendKeys",
    "clearElement": "ElementClear",
    "actions": "PerformActions",
    "clearActionState": "ReleaseActions",
    "w3cGetCurrentWindowHandle": "GetWindowHandle",
    "w3cGetWindowHandles": "GetWindowHandles",
    "screenshot": "TakeScreenshot",
    "w3cAcceptAlert": "AcceptAlert",
    "w3cDismissAlert": "DismissAlert",
    "w3cGetAlertText": "GetAlertText",
    "w3cSetWindowRect": "SetWindowRect",
    "setWindowRect": "SetWindowRect",
}


class Marionette(RemoteConnection):
    """What selenium asks, as a packet `length:[0, id, name, parameters]` on Firefox's own socket."""

    def __init__(self, port: int) -> None:
        super().__init__(client_config=ClientConfig(f"http://127.0.0.1:{port}", keep_alive=False))
        self._socket = _connect(port)
        self._number = 0
        self._receive()  # its greeting

    def execute(self, command: str, params: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in params.items() if name not in ("sessionId", "wdc")}
        name = RENAMED.get(command, command[0].upper() + command[1:])
        self._number += 1
        packet = json.dumps([0, self._number, f"WebDriver:{name}", given]).encode()
        self._socket.sendall(b"%d:%s" % (len(packet), packet))
        _, _, error, result = self._receive()
        if error:
            return {"status": 500, "value": json.dumps({"value": error})}
        if command in ("newSession", "executeCdpCommand"):
            return {"status": 0, "value": result}
        wrapped = isinstance(result, dict) and set(result) == {"value"}
        return {"status": 0, "value": result["value"] if wrapped else result}

    def _receive(self) -> Any:
        head = b""
        while not head.endswith(b":"):
            head += self._some(1)
        if head.startswith(b"{"):
            raise AssertionError(f"not a packet: {head!r}")
        return json.loads(self._some(int(head[:-1])))

    def _some(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self._socket.recv(count - len(data))
            assert piece, "Firefox has gone"
            data += piece
        return data

    def close(self) -> None:
        self._socket.close()


def _connect(port: int) -> socket.socket:
    until = time.monotonic() + START_S
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=120)
        except OSError:
            assert time.monotonic() < until, "Firefox did not open its port"
            time.sleep(0.1)


class Firefox(webdriver.Remote):
    def __init__(self, width: int, height: int, dark: bool) -> None:
        binary = shutil.which("firefox-esr") or shutil.which("firefox")
        assert binary, f"no firefox-esr on the PATH: {HINT}"
        self._folder = Path(tempfile.mkdtemp(prefix="ab-firefox-"))
        port = _free_port()
        wanted: dict[str, Any] = {
            "marionette.port": port,
            "ui.systemUsesDarkTheme": int(dark),
            "datareporting.policy.dataSubmissionEnabled": False,
            "browser.shell.checkDefaultBrowser": False,
            "browser.startup.page": 0,
            "app.update.enabled": False,
            "toolkit.telemetry.reportingpolicy.firstRun": False,
            "network.captive-portal-service.enabled": False,
            "network.connectivity-service.enabled": False,
        }
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in wanted.items()]
        (self._folder / "user.js").write_text("\n".join(lines))
        words = [binary, "--headless", "--marionette", "--no-remote", "--profile", str(self._folder)]
        size = ["--width", str(width), "--height", str(height)]
        self._process = subprocess.Popen([*words, *size], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._wire = Marionette(port)
            super().__init__(command_executor=self._wire, options=webdriver.FirefoxOptions())
        except BaseException:  # whatever went wrong, no browser stays behind
            self._process.kill()
            self._process.wait()
            raise

    def quit(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._wire.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def open_firefox(width: int = 1100, height: int = 900, dark: bool = False) -> Firefox:
    browser = Firefox(width, height, dark)
    browser.set_script_timeout(30)
    return browser
