"""Many sessions at once whose tools ask at random moments, and people who answer all of them.

Every answer names the session and the question it is meant for, so that one typed anywhere else shows.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

from tests.support.arena import Arena, Fighter
from tests.support.waiting import wait_for

from atlasbridge.core.clock import parse_iso
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import AtlasBridgeError

TOOL = (
    ": <{gate}; for ((i=0; i<{questions}; i++)); do sleep $((RANDOM % {pause}))e-2;"
    " printf '%s\\n' $EPOCHREALTIME >>{file}.asked;"
    ' IFS= read -r -p "Question $i of {name}: what now? " a; printf "%s\\t%s\\n" "$i" "$a" >>{file}; done'
)


@dataclass
class Directory:
    place: Arena
    questions: int = 2
    pause: int = 50  # hundredths of a second at most between two questions
    people: int = 4
    reply_s: list[float] = field(default_factory=list)
    raise_s: list[float] = field(default_factory=list)
    replied_at: list[float] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    fighters: list[Fighter] = field(default_factory=list)

    @property
    def replies_per_s(self) -> float:
        """Over all of them; how fast they came is the tools' business, unless they ask at once."""
        took_s = max(self.replied_at, default=0.0) - min(self.replied_at, default=0.0)
        return len(self.replied_at) / took_s if took_s else 0.0

    @property
    def gate(self) -> Path:
        """Opening it (a named pipe) lets every tool begin."""
        return self.place.home.root / "gate"

    def __post_init__(self) -> None:
        os.mkfifo(self.gate)

    def add(self, number: int, real_start: bool = False) -> None:
        name = f"n{number}"
        fighter = Fighter(self.place, name, self.place.home.root / f"{name}.got")
        file = shlex.quote(str(fighter.file))
        script = TOOL.format(
            gate=shlex.quote(str(self.gate)), questions=self.questions, pause=self.pause, file=file, name=name
        )
        if real_start:
            words = [
                sys.executable,
                "-m",
                "atlasbridge",
                "run",
                "--detach",
                "--label",
                name,
                "--",
                "bash",
                "-c",
                script,
            ]
            done = subprocess.run(words, env=self.place.environ, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        else:
            self.place.start_session(("bash", "-c", script), name=name)
        self.fighters.append(fighter)

    def serve(self, start: Sequence[threading.Thread] = (), deadline_s: float = 300.0) -> None:
        """Answer everything until all sessions have asked all their questions and ended."""
        with ThreadPoolExecutor(self.people) as people, HubClient(self.place.home) as listening:
            done = threading.Event()

            def listen() -> None:
                for event in listening.stream("events", follow=True):
                    if done.is_set():
                        return
                    if event["event"] == "prompt.raised":
                        people.submit(self._answer, event)

            ear = threading.Thread(target=listen, daemon=True)
            ear.start()
            for thread in start:
                thread.start()
            for thread in start:
                thread.join()
            gate = os.open(self.gate, os.O_RDWR)
            wait_for(self._all_answered, "all answers", deadline_s)
            os.close(gate)
            done.set()
            with HubClient(self.place.home) as last:
                last.ask("ping")
        self._check()

    def _answer(self, event: dict[str, Any]) -> None:
        name, number = _read_question(event["excerpt"])
        raised_at = parse_iso(event["at"])
        asked = Path(f"{self.place.home.root / name}.got.asked").read_text().split()
        self.raise_s.append(raised_at - float(asked[number]))
        began = time.monotonic()
        with HubClient(self.place.home, timeout_s=120) as client:
            answer = client.request("reply", prompt_id=event["prompt_id"], value=f"{name} gets {number}")
        if answer["ok"]:
            self.replied_at.append(time.monotonic())
            self.reply_s.append(self.replied_at[-1] - began)
        else:
            self.refused.append({**answer, "name": name, "number": number})

    def _all_answered(self) -> bool:
        return all(len(fighter.received()) >= self.questions for fighter in self.fighters)

    def _check(self) -> None:
        for fighter in self.fighters:
            wanted = [f"{number}\t{fighter.name} gets {number}" for number in range(self.questions)]
            assert fighter.received() == wanted, (fighter.name, fighter.received())
        wait_for(self._settled, "every session to end")
        assert self.place.ask("audit.verify")["verdict"]["ok"]
        assert self.refused == [], self.refused[:3]

    def _settled(self) -> bool:
        return self.place.ask("status")["sessions"] == 0


def _read_question(excerpt: str) -> tuple[str, int]:
    words = excerpt.split("\n")[-1].split()
    return words[3].rstrip(":"), int(words[1])


def percentiles(values: list[float]) -> str:
    """Median, 95th and 99th percentile and the worst, in milliseconds."""
    if len(values) < 2:
        return "none measured"
    cuts = quantiles(values, n=100)
    return (
        " ".join(
            f"{name} {value * 1000:.0f}"
            for name, value in zip(
                ("p50", "p95", "p99", "max"), (cuts[49], cuts[94], cuts[98], max(values)), strict=True
            )
        )
        + " ms"
    )


def memory_kb(pids: Sequence[int]) -> list[int]:
    """The proportional share of each process that still lives."""
    found = []
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        found += [int(line.split()[1]) for line in lines if line.startswith("Pss:")]
    return found


def ask_pids(place: Arena) -> tuple[int, list[int]]:
    """The hub's process and those of its session hosts."""
    try:
        sessions = place.ask("sessions")["sessions"]
    except AtlasBridgeError:
        return place.hub_pid, []
    return place.hub_pid, [session["host_pid"] for session in sessions]
