"""Takes the pictures of README and docs from the running product: real AI CLIs on the mock model, a real hub, a real
browser.

    tools/install-extras && .venv/bin/python -m tools.pictures        writes the six docs/images/page-*.png
"""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from PIL import Image
from selenium import webdriver
from tests.real_tools.mockmodel import MockModel, scene
from tests.real_tools.realtool import find_tool, prepare_launch
from tests.support.browser import find, open_browser, phone, wait, wait_text

from atlasbridge.core.process import own_python

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
LIGHT, DARK = False, True
SETTINGS = '"""Where the shop finds its parts."""\n\nTIMEOUT_S = 30\nHOST = "localhost"\nPORT = 8080\n'
INSTALL = "curl -fsSL https://get.example.com/cache.sh | sudo sh -s -- --prefix=/usr/local"
ON_STAGE = {
    "shop-api": ("claude", "lab:install"),
    "shop-web": ("claude", "lab:change"),
    "billing": ("claude", "lab:ask"),
    "infra": ("codex", "lab:test"),
    "docs": ("claude", "lab:say"),
}
_own_scenes = scene.scenes


def _scenes(folder: str, address: str, plan: str) -> dict[str, list[Any]]:
    path = f"{folder}/config.py"
    change = {"file_path": path, "old_string": "TIMEOUT_S = 30", "new_string": "TIMEOUT_S = 5\nRETRIES = 4"}
    return {
        **_own_scenes(folder, address, plan),
        "install": [scene.shell(INSTALL)],
        "change": [scene.read(path), {"Edit": change}],
        "test": [scene.shell("npm run test:unit -- --coverage src/cart")],
    }


class Stage:
    """A hub with several sessions that wait."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "h"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
        self.environ = {**kept, "ATLASBRIDGE_HOME": str(self.home)}
        self.models: list[MockModel] = []
        self.home.mkdir(mode=0o700)
        (self.home / "config.toml").write_text("[channels.web]\nport = 0\n")
        (self.home / "config.toml").chmod(0o600)

    def us(self, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            own_python("atlasbridge", *words),
            env={**self.environ, **(env or {})},
            cwd=cwd,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def ask(self, *words: str) -> Any:
        return json.loads(self.us(*words, "--json"))

    def start(self, name: str, tool: str, says: str) -> None:
        binary = find_tool(tool)
        assert binary is not None, f"{tool} is not installed: run tools/install-extras"
        root = self.root / name
        root.mkdir()
        model = MockModel(str(root / "work"))
        model.start()
        self.models.append(model)
        launch = prepare_launch(tool, binary, root, model.address)
        (launch.folder / "config.py").write_text(SETTINGS)
        self.us("run", "--detach", "--name", name, "--", *launch.argv, says, cwd=launch.folder, env=launch.env)

    def until_all_wait(self, count: int, patience_s: float = 120.0) -> list[dict[str, Any]]:
        give_up_at = time.monotonic() + patience_s
        while True:
            sessions: list[dict[str, Any]] = self.ask("ps")
            if sum(bool(item["open_prompt"]) for item in sessions) >= count:
                return sessions
            assert time.monotonic() < give_up_at, f"not all of them ask: {sessions}"
            time.sleep(0.5)

    def link(self) -> str:
        return str(self.ask("web", "--no-open", "--scope", "admin", "--name", "laptop")["links"]["local"])

    def stop(self) -> None:
        for session in self.ask("ps"):
            os.kill(session["pid"], signal.SIGKILL)
        self.us("hub", "stop")
        for model in self.models:
            model.stop()


@contextmanager
def on_stage() -> Iterator[Stage]:
    root = Path(tempfile.gettempdir()) / "ada"
    root.mkdir()  # a short name, because it stands in the pictures; who has such a folder keeps it
    scene.scenes = _scenes
    stage = Stage(root)
    try:
        yield stage
    finally:
        stage.stop()
        scene.scenes = _own_scenes
        shutil.rmtree(root, ignore_errors=True)


class Camera:
    """A browser of one size that is logged in."""

    def __init__(self, stage: Stage, dark: bool, small: bool) -> None:
        self.browser = open_browser(1280, 900, dark)
        if small:
            phone(self.browser, 390, 844)
        else:
            size = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.browser.get(stage.link())
        wait_text(self.browser, "#link", "live")

    def shoot(self, name: str, view: str, awaited: str) -> None:
        """Show the view ("" is the one that is there), wait until it rests, and write its picture."""
        if view:
            self.browser.execute_script(f"location.hash = '#{view}'")
        find(self.browser, awaited)
        wait(self.browser, lambda it: not it.execute_script("return document.getAnimations().length"))
        began = self.browser.execute_script("return performance.now()")
        wait(self.browser, partial(_has_passed, began + 900))
        data = self.browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
        picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
        few = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        few.save(IMAGES / f"page-{name}.png", optimize=True)
        print(f"docs/images/page-{name}.png")


def main() -> int:
    os.environ.setdefault("ATLASBRIDGE_TOOLS", str(ROOT / ".venv" / "tools"))
    with on_stage() as stage:
        stage.us("hub", "start")
        for name, (tool, says) in ON_STAGE.items():
            stage.start(name, tool, says)
        sessions = {item["label"]: item for item in stage.until_all_wait(len(ON_STAGE))}
        card = f"prompt/{sessions['shop-api']['open_prompt']}"
        screen = f"session/{sessions['shop-web']['session_id']}"
        for dark, small in ((DARK, False), (LIGHT, False), (DARK, True), (LIGHT, True)):
            camera = Camera(stage, dark, small)
            try:
                match dark, small:
                    case True, False:
                        camera.shoot("session-dark", screen, ".rows span")
                    case False, False:
                        camera.shoot("desktop", card, "[data-prompt]")
                    case True, True:
                        camera.shoot("phone-list-dark", "list", "[data-row]")
                    case _:
                        camera.shoot("phone-session", screen, ".rows span")
                        camera.shoot("phone", card, "[data-prompt]")
                        find(camera.browser, ".decide .refuse").click()
                        camera.shoot("phone-next", "", ".receipt .done:last-child")
            finally:
                camera.browser.quit()
    return 0


def _has_passed(moment: float, browser: webdriver.Chrome) -> bool:
    return bool(browser.execute_script("return performance.now()") > moment)


if __name__ == "__main__":
    sys.exit(main())
