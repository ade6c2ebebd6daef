"""A person elsewhere, who uses the commands: sees prompts by `events --json`, answers by `reply`, ends by `kill`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.support import warm
from tests.support.terminal import ATLASBRIDGE
from tests.support.waiting import wait_for

from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home


class Operator:
    def __init__(self, home: Path) -> None:
        self._environ = {**os.environ, "ATLASBRIDGE_HOME": str(home)}
        self._home = home

    def command(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        if words and warm.may_fork(words, self._environ):
            return warm.run_command(words, self._environ, stdin)
        return subprocess.run([*ATLASBRIDGE, *words], env=self._environ, input=stdin, capture_output=True, text=True)

    def events(self) -> list[dict[str, Any]]:
        """Everything that is open now, as the event stream tells it."""
        done = self.command("events", "--json")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def sessions(self) -> list[dict[str, Any]]:
        done = self.command("ps", "--json")
        return list(json.loads(done.stdout)) if done.returncode == 0 else []

    def open_prompt(self) -> dict[str, Any]:
        """Waits for a prompt to be raised."""
        return wait_for(lambda: self.approvals() if self._is_asked() else None, "a prompt")[0]

    def _is_asked(self) -> bool:
        """Without a process for each look."""
        try:
            with HubClient(Home(self._home)) as hub:
                return bool(hub.ask("prompts")["prompts"])
        except HubUnavailable:
            return False  # it is started by the session

    def start_hub(self) -> None:
        warm.start_hub(self._environ)

    def approvals(self) -> list[dict[str, Any]]:
        done = self.command("approvals", "--json")
        return list(json.loads(done.stdout)) if done.returncode == 0 and done.stdout.strip() else []

    def reply(self, prompt_id: str, value: str, *more: str, stdin: str = "") -> tuple[int, dict[str, Any]]:
        done = self.command("reply", prompt_id, value, "--json", *more, stdin=stdin)
        return done.returncode, json.loads(done.stdout)

    def hub_pid(self) -> int:
        text = (self._home / "hub.lock").read_text().strip()
        return int(text)
