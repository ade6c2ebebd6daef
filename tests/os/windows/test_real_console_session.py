"""A whole session on a real console of Windows: asked by the program, answered by a command, typed once.

The person's console is a pseudo-console, too.  The job on Windows runs this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import wait_for

from atlasbridge.core.daemon.request import HubLock, lock_holder
from atlasbridge.core.system import lives

pytestmark = pytest.mark.skipif(
    sys.platform != "win32", reason="ConPTY is there on Windows only; the Windows job runs this"
)
ASK = "a = input('Overwrite the file? [y/N] '); print('got=' + a); b = input('Your name: '); print('then=' + b)"


class Place:
    def __init__(self, home: Path) -> None:
        self.environ = {**os.environ, "ATLASBRIDGE_HOME": str(home), "ATLASBRIDGE_CHANNELS_WEB_ENABLED": "false"}
        self.home = home

    def cli(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "atlasbridge", *words]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, encoding="utf-8")

    def json(self, *words: str) -> Any:
        done = self.cli(*words, "--json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else None


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path / "home")
    yield made
    made.cli("hub", "stop")


def test_the_hub_starts_answers_and_stops(place: Place) -> None:
    started = place.cli("hub", "start")
    assert started.returncode == 0, started
    assert place.json("hub", "status")["pid"] > 0
    assert (place.home / "hub.tcp").exists()
    assert place.cli("hub", "stop").returncode == 0
    assert not (place.home / "hub.tcp").exists()


def test_a_lock_is_held_by_one_and_its_file_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "hub.lock"
    first, second = HubLock(path), HubLock(path)
    assert first.acquire() and not second.acquire()
    assert lock_holder(path) == os.getpid()
    first.release()
    assert lock_holder(path) is None and second.acquire()
    second.release()


def test_a_process_lives_until_it_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert lives(os.getpid()) and lives(child.pid)
    child.communicate(b"\n")
    assert not lives(child.pid)


class Shown:
    """A console with a program on it, and all that it has shown."""

    def __init__(self, place: Place, *words: str) -> None:
        import winpty

        command = [sys.executable, "-m", "atlasbridge", *words]
        self.console = winpty.PtyProcess.spawn(command, env=place.environ, dimensions=(24, 100))
        self._parts: list[str] = []
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        try:
            while True:
                self._parts.append(self.console.read(4096))
        except EOFError:
            return

    def wait_for(self, text: str) -> None:
        wait_for(lambda: text in "".join(self._parts), text, 90)

    def wait_end(self) -> None:
        wait_for(lambda: not self.console.isalive(), "the end")


def test_a_question_is_raised_answered_elsewhere_and_typed_once(place: Place) -> None:
    shown = Shown(place, "run", "--backend", "conpty", "--", sys.executable, "-c", ASK)
    (prompt,) = wait_for(lambda: place.json("approvals"), "a question")
    assert prompt["type"] == "yes_no" and "Overwrite the file?" in prompt["excerpt"]
    done = place.cli("reply", prompt["prompt_id"], "y")
    assert done.returncode == 0, done
    shown.wait_for("got=y")
    assert place.cli("reply", prompt["prompt_id"], "y").returncode == 3
    shown.console.write("Ada\r")
    shown.wait_for("then=Ada")
    shown.wait_end()


def test_a_session_without_a_console_is_attached_left_and_attached_again(place: Place) -> None:
    words = ("run", "--backend", "conpty", "--detach", "--no-hub", "--", sys.executable, "-c", ASK)
    started = place.cli(*words)
    assert started.returncode == 0, started
    first = Shown(place, "attach")
    first.wait_for("Overwrite the file?")
    first.console.write("y\r")
    first.wait_for("got=y")
    first.console.write("\x1dd")
    first.wait_end()
    second = Shown(place, "attach")
    second.wait_for("Your name:")
    second.console.write("Ada\r")
    second.wait_for("then=Ada")
    second.wait_end()
