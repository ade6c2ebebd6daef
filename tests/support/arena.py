"""A place to fight in: one home, hubs that can be killed anywhere, real sessions whose tool writes down what it reads.

The person here is patient: an answer that was not acknowledged is sent again, as a person would.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.hubs import NO_WEB, short_home
from tests.support.sessions import end_all, end_sessions
from tests.support.waiting import DEADLINE_S, wait_for

from atlasbridge.core.daemon.request import ALREADY_RUNNING, HubClient, lock_holder
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home

RECORDER = (
    'i=0; while IFS= read -r -p "Question $i of {name}: what now? " a;'
    ' do printf "%s\\t%s\\n" "$i" "$a" >>{file}; i=$((i+1)); done'
)


@dataclass
class Fighter:
    """A session with a tool that asks one question after the other, for ever."""

    arena: Arena
    name: str
    file: Path
    session_id: str = ""

    def has_received(self, count: int) -> bool:
        return len(self.received()) >= count

    def received(self) -> list[str]:
        """What the tool has read, line by line: number of the question, tab, answer."""
        try:
            return self.file.read_text(errors="surrogateescape").split("\n")[:-1]
        except FileNotFoundError:
            return []

    def tool_pids(self) -> list[int]:
        """The processes of its tool, found by the file they write."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if str(self.file).encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
        return found

    def open_prompt(self) -> dict[str, Any] | None:
        for prompt in self.arena.ask("prompts")["prompts"]:
            if prompt["session_id"] == self.session_id:
                return dict(prompt)
        return None

    def question(self, number: int) -> dict[str, Any] | None:
        """The open prompt, if it is the one that asks this question."""
        prompt = self.open_prompt()
        rows = prompt["excerpt"].split("\n") if prompt else []  # a long one begins with what is asked
        return prompt if any(f"Question {number} of" in row for row in (*rows[:1], *rows[-1:])) else None


def recorder(fighter: Fighter) -> tuple[str, ...]:
    """The tool's command."""
    return ("bash", "-c", RECORDER.format(name=fighter.name, file=shlex.quote(str(fighter.file))))


class Arena:
    def __init__(self, home: Home, config: str = NO_WEB, preload: Path | None = None) -> None:
        self.home = home
        self.witness = home.root / "died"  # which calls hubs died at
        self.ready = str(home.root / "ready")
        os.mkfifo(self.ready)
        home.config.write_text(config)
        home.config.chmod(0o600)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
        self.environ = {**kept, "ATLASBRIDGE_HOME": str(home.root), "ATLASBRIDGE_SESSION_ZYGOTE": "0"}
        self._nursery = subprocess.Popen(
            [sys.executable, "-m", "tests.support.killable_hub"],
            env={**self.environ, **({"LD_PRELOAD": str(preload)} if preload else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        )
        self.fighters: list[Fighter] = []

    def order(self, **order: Any) -> int:
        """A new process from the nursery."""
        assert self._nursery.stdin and self._nursery.stdout
        self._nursery.stdin.write(json.dumps(order).encode() + b"\n")
        self._nursery.stdin.flush()
        return int(self._nursery.stdout.readline())

    def close(self) -> None:
        end_sessions(self.home.root)
        self.kill_hub()
        assert self._nursery.stdin and self._nursery.stdout
        self._nursery.stdin.close()
        self._nursery.wait(60)
        self._nursery.stdout.close()
        end_all(self.home.root)  # a session whose hub was killed may just have started another

    # hubs

    @property
    def hub_pid(self) -> int:
        return lock_holder(self.home.lock) or 0

    def start_hub(self, die_at: str = "", tell: Path | None = None, place: int = 0) -> int:
        """The process of the new hub; returns when it listens, or when it is dead.

        Sessions whose hub died start one themselves after a while: that is as good, unless a mortal one is wanted.
        """
        mortal = bool(die_at or tell or place)
        while True:
            pid = self.order(
                kind="hub",
                die_at=die_at,
                tell=str(tell or ""),
                place=place,
                witness=str(self.witness),
                ready=self.ready,
            )
            with open(self.ready, "rb") as pipe:
                verdict = pipe.readline()  # nothing: it died before it listened
            if ALREADY_RUNNING.encode() not in verdict:
                return pid
            if mortal:
                self.kill_hub()
            elif wait_for(lambda: self.listens() or not self.hub_pid, "the other hub to listen") and self.hub_pid:
                return self.hub_pid

    def listens(self) -> bool:
        try:
            with HubClient(self.home, timeout_s=DEADLINE_S) as client:
                return bool(client.request("ping")["ok"])
        except AtlasBridgeError:
            return False

    def kill_hub(self) -> None:
        pid = self.hub_pid
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: lock_holder(self.home.lock) != pid, "the hub's death")

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        with HubClient(self.home, timeout_s=DEADLINE_S) as client:
            return client.ask(op, **fields)

    def reply(self, prompt_id: str, value: str, **fields: Any) -> dict[str, Any] | None:
        """The hub's answer, or None when it died over it."""
        try:
            with HubClient(self.home, timeout_s=DEADLINE_S) as client:
                return client.request("reply", prompt_id=prompt_id, value=value, **fields)
        except AtlasBridgeError:
            return None

    def entries(self, **wanted: Any) -> list[dict[str, Any]]:
        return list(self.ask("audit", limit=10_000, **wanted)["entries"])

    def events(self, name: str) -> list[dict[str, Any]]:
        """What the hub remembers of this kind."""
        with HubClient(self.home, timeout_s=DEADLINE_S) as client:
            return [event for event in client.stream("events") if event["event"] == name]

    # sessions

    def start_session(self, command: tuple[str, ...] = (), name: str = "", **order: Any) -> Fighter:
        name = name or f"s{len(self.fighters)}"
        fighter = Fighter(self, name, self.home.root / f"{name}.got")
        out = self.home.root / f"{name}.out"
        words = ["--detach", "--label", name, "--ttl", "86400", "--", *(command or recorder(fighter))]
        starter = self.order(kind="session", arguments=words, out=str(out), **order)
        wait_for(lambda: not exists(starter), "the session to start")
        fighter.session_id = out.read_text().strip()  # empty: it did not come so far
        self.fighters.append(fighter)
        return fighter

    # the person

    def answer(self, fighter: Fighter, number: int, value: str, deadline_s: float = DEADLINE_S) -> str:
        """Answer this question until the tool has it; a dead hub is started again.  Returns the prompt's last id."""
        give_up_at = time.monotonic() + deadline_s
        prompt_id = ""
        while len(fighter.received()) <= number:
            assert time.monotonic() < give_up_at, f"question {number} was never answered: {fighter.received()}"
            if not self.listens():
                self.start_hub()
            try:
                prompt = fighter.question(number)
            except AtlasBridgeError:
                continue
            if prompt is None or prompt["state"] not in ("created", "routed", "awaiting_reply"):
                time.sleep(0.005)
                continue
            prompt_id = prompt["prompt_id"]
            answer = self.reply(prompt_id, value)
            if answer is not None and not answer["ok"]:
                time.sleep(0.05)  # the session is not connected yet, or somebody was faster
        return prompt_id


@contextmanager
def arena(config: str = NO_WEB, preload: Path | None = None) -> Iterator[Arena]:
    with short_home() as home:
        place = Arena(home, config, preload)
        try:
            yield place
        finally:
            place.close()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
