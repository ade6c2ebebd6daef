"""A machine of a server as a process of its own: a real hub with its store and link, and sessions driven from within.

`python -m tests.support.member HOME SESSIONS PAUSE_S`: each session asks, and asks again a moment after it was
answered.  What was raised and typed goes to HOME/typed.log before anybody hears of it, as a host that outlives its hub
would remember it; killed and started again, the sessions go on where they were.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import random
import sys
from pathlib import Path
from typing import Any

from tests.support.fleet import YES_NO, Machine, Sitter

import atlasbridge.core.fleet_wire as fleet_wire
import atlasbridge.fleet.member.channel as link
import atlasbridge.fleet.member.joining as joining
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.service import Hub
from atlasbridge.core.errors import StoreError
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.values import replace
from atlasbridge.fleet.member.membership import read_membership

AGAIN_S = 0.05
LOG_BYTES = 32 * 1024 * 1024  # most of it is never touched


class Driven(Sitter):
    """Asks again and again; remembers in a file."""

    def __init__(self, hub: Hub, session_id: str, log: Log, pause_s: float) -> None:
        self._log, self._pause_s = log, pause_s
        self._name, self._known = session_id, log.sessions.get(session_id, {})
        self._greeted = self._greeting = self._linked = False
        super().__init__(hub)

    def connect(self, hub: Hub) -> None:
        """Says hello until the hub can write it down."""
        if not self._greeted:
            self.record = replace(
                self.record, session_id=self._name, pid=os.getppid(), host_pid=os.getppid()
            )  # outlives this
            self.session_id = self._name
            self.typed = {prompt_id: {} for prompt_id in self._known.get("typed", ())}
            if prompt_id := self._known.get("open"):
                self.open = {"prompt_id": prompt_id, "prompt": encode_prompt(self._prompt(prompt_id))}
            self._greeted = True
            if self.open is None:
                self._later()
        self._greeting = True
        try:
            super().connect(hub)
            self._linked = True
        except StoreError:
            asyncio.get_running_loop().call_later(AGAIN_S, self.connect, hub)
        finally:
            self._greeting = False

    def close(self) -> None:
        """The hub hangs up, as it does when it cannot write down what it heard: a host comes again."""
        self._linked = False
        if not self._greeting:
            asyncio.get_running_loop().call_later(AGAIN_S, self.connect, self._hub)

    def _later(self) -> None:
        asyncio.get_running_loop().call_later(self._pause_s * random.uniform(0.5, 1.5), self.ask_next)

    def _prompt(self, prompt_id: str) -> Any:
        return replace(YES_NO, digest=prompt_id, excerpt=f"Continue with {prompt_id[:8]}? (y/n)")

    def ask_next(self) -> None:
        prompt_id = new_id()
        self.open = {"prompt_id": prompt_id, "prompt": encode_prompt(self._prompt(prompt_id))}
        self._log.write("R", self.session_id, prompt_id)
        if not self._linked:
            return  # what was typed before must be told first: the next hello has both
        try:
            self._hub.sessions.handle(self, {"m": "raise", **self.open})  # type: ignore[arg-type]
        except StoreError:
            self.close()

    def hear(self, kind: str, **fields: Any) -> None:
        if kind == "renew" and self.open is not None and self.open["prompt_id"] == fields["prompt_id"]:
            asyncio.get_running_loop().call_soon(self.ask_next)
        super().hear(kind, **fields)

    def type_answer(self, prompt_id: str, answer: dict[str, str], hub: Hub) -> None:
        fresh = prompt_id not in self.typed and self.open is not None and self.open["prompt_id"] == prompt_id
        if fresh:
            self._log.write("T", self.session_id, prompt_id, answer["kind"])
        try:
            super().type_answer(prompt_id, answer, hub)
        except StoreError:
            self.close()
        if fresh:
            self._later()


class Log:
    """In mapped memory: it outlives this process, and no full disk stops it, as none stops a host that remembers."""

    def __init__(self, path: Path) -> None:
        self.sessions: dict[str, dict[str, Any]] = {}
        lines = read_lines(path) if path.exists() else []
        for line in lines:
            kind, session, prompt_id, *_ = line.split()
            known = self.sessions.setdefault(session, {"typed": [], "open": None})
            if kind == "R":
                known["open"] = prompt_id
            else:
                known["typed"].append(prompt_id)
                known["open"] = None
        with path.open("ab+") as file:
            file.truncate(LOG_BYTES)
            self._map = mmap.mmap(file.fileno(), LOG_BYTES)
        self._end = sum(len(line) + 1 for line in lines)

    def write(self, *words: str) -> None:
        line = " ".join(words).encode() + b"\n"
        self._map[self._end : self._end + len(line)] = line
        self._end += len(line)


def read_lines(path: Path) -> list[str]:
    """Whole lines: anyone who wrote may have been killed over the next."""
    return path.read_bytes().rstrip(b"\0").decode().split("\n")[:-1]


async def live(root: Path, sessions: int, pause_s: float) -> None:
    membership = read_membership(root)
    assert membership is not None
    machine = Machine(Home(root), membership, SystemClock())
    log = Log(root / "typed.log")
    await machine.start()
    names = [*log.sessions, *(new_id() for _ in range(sessions - len(log.sessions)))]
    sitters = []
    for number, name in enumerate(names):
        sitters.append(Driven(machine.hub, name, log, pause_s))
        if number % 20 == 0:
            await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.Event().wait()


def be_impatient(dead_s: float) -> None:
    """A link that is silent for so long is given up; nobody waits for minutes here."""
    for module in (fleet_wire, link, joining):
        vars(module)["DEAD_S"] = dead_s
    vars(link).update(BEAT_S=dead_s / 3, LAST_RETRY_S=2.0, SENT_AWAY_S=2.0)


if __name__ == "__main__":
    be_impatient(float(os.environ.get("MEMBER_DEAD_S", "50")))
    asyncio.run(live(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
