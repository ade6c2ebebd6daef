"""Kills the client (`atlasbridge run`) at a chosen place: the terminal comes back, the tool, once it runs, runs on."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.support.arena import Arena, Fighter, recorder
from tests.support.kill_rounds import ONLY_LOOKS
from tests.support.terminal import Terminal
from tests.support.waiting import wait_for
from tests.support.zygotes import SWITCH, start_zygote

_OF_THE_SESSION = re.compile(r" for (client|rawmode|launch|caller|wakeup|__main__)\.")


class ClientRounds:
    def __init__(self, place: Arena, zygote: bool) -> None:
        self.place = place
        self.environ = {SWITCH: str(int(zygote))}
        if not place.listens():
            place.start_hub()
        if zygote:  # otherwise the first clients fork their hosts, and the later ones do not
            start_zygote(place.home.root)

    def record_life(self) -> list[str]:
        told = Path(self.place.home.root / f"told{self.environ[SWITCH]}")
        terminal, fighter = self._run(f"recorded{self.environ[SWITCH]}", "", str(told))
        with terminal:
            terminal.wait_for("Question 0 of")
            terminal.type("typed\r")
            wait_for(lambda: fighter.received() == ["0\ttyped"], "the typed line")
            terminal.type(b"\x04")
            terminal.wait_for("status=")
        places = [line for line in dict.fromkeys(told.read_text().splitlines()) if not ONLY_LOOKS.search(line)]
        return [place for place in places if _OF_THE_SESSION.search(place)]

    def _run(self, name: str, place: str, told: str = "") -> tuple[Terminal, Fighter]:
        """Under a shell that stays, so that the terminal outlives the client."""
        fighter = Fighter(self.place, name, self.place.home.root / f"{name}.got")
        command = (sys.executable, "-m", "tests.support.killable_client", place, told, "run", "--name", name, "--")
        shell = (
            "bash",
            "-c",
            '"$@"; printf "\r\nstatus=%s\r\n" $?; exec sleep 1000',
            "bash",
            *command,
            *recorder(fighter),
        )
        return Terminal(shell, self.place.home.root, env=self.environ, cwd=Path(__file__).parents[2]), fighter

    def die_at(self, where: str, name: str) -> str:
        """What was left: "nothing" (it died too early), "session", "ended" (with its tool), or "not reached"."""
        terminal, fighter = self._run(name, where)
        with terminal:
            terminal.wait_until(lambda: "status=137" in terminal.text() or "Question 0 of" in terminal.text(), where)
            ended = "status=137" not in terminal.text()
            if ended:  # its place comes only at the end: let the tool end
                terminal.type(b"\x04")
            terminal.wait_for("status=")
            terminal.wait_until(lambda: terminal.settings() == terminal.settings_before, "the old settings")
            if ended:
                return "ended" if "status=137" in terminal.text() else "not reached"
            if set(fighter.tool_pids()) <= {terminal.pid}:  # the shell around it has the same words on its command line
                return "nothing"
            self._goes_on(fighter, name)
            return "session"

    def _goes_on(self, fighter: Fighter, name: str) -> None:
        fighter.session_id = wait_for(lambda: self._known_as(name), "the hub to know the session")
        self.place.answer(fighter, 0, "remotely")
        assert fighter.received() == ["0\tremotely"]
        self.place.ask("kill", session_id=fighter.session_id, force=True)
        wait_for(lambda: not fighter.tool_pids(), "the tool's end")

    def _known_as(self, name: str) -> str:
        found = [item["session_id"] for item in self.place.ask("sessions")["sessions"] if item["label"] == name]
        return found[0] if found else ""
