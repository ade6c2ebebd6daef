"""One measurement each: throughput, echo, keys under flood, start-up.  All through the C instrument."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks.peers import Peer

MARK = "@@THE-END-OF-THE-PAYLOAD@@"


@dataclass(slots=True)
class Series:
    """The samples of one figure for each peer, by the round in which they were taken."""

    title: str
    unit: str
    better: str  # "higher" or "lower"
    samples: dict[str, dict[int, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    round: int = 0

    def add(self, peer: str, value: float) -> None:
        self.samples.setdefault(peer, {})[self.round] = value

    def median(self, peer: str) -> float:
        return statistics.median(self.samples[peer].values())

    def ratio(self, peer: str, base: str) -> float:
        """Within one round, in which the machine is one and the same; the median of all rounds."""
        return statistics.median(self._ratios(peer, base))

    def doubt(self, peer: str, base: str) -> float:
        """How far chance may have moved that median: its standard error, 1.25 of a standard deviation over the root
        of the number, and half of the middle is 0.67 of one."""
        ratios = self._ratios(peer, base)
        return 1.86 * _half_of_the_middle(ratios) / math.sqrt(len(ratios))

    def _ratios(self, peer: str, base: str) -> list[float]:
        return [a / b for a, b in self._pairs(peer, base)]

    def added(self, peer: str, base: str) -> float:
        """The difference, taken in the same way."""
        return statistics.median(a - b for a, b in self._pairs(peer, base))

    def _pairs(self, peer: str, base: str) -> list[tuple[float, float]]:
        one, other = self.samples[peer], self.samples[base]
        return [(one[n], other[n]) for n in one.keys() & other.keys()]

    def spread(self, peer: str) -> float:
        """Relative to the median: the machine's noise."""
        return _half_of_the_middle(self.samples[peer].values()) / (self.median(peer) or 1)


def _half_of_the_middle(samples: Iterable[float]) -> float:
    """Half of what the middle 50 % of the samples span."""
    values = sorted(samples)
    quarter = len(values) // 4
    middle = values[quarter : len(values) - quarter]
    return (middle[-1] - middle[0]) / 2


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ab") as folder:
        yield Path(folder)


def payload(path: Path, megabytes: int) -> None:
    """Coloured text as a build log has it."""
    words = ["compiling", "linking", "testing", "packing", "caching", "fetching", "warning", "error", "note", "done"]
    lines = []
    for i in range(2000):
        word = words[i % len(words)]
        colour = 31 + i % 6
        lines.append(
            f"\033[{colour}m{word:>10}\033[0m \033[1msrc/module_{i:04d}.c\033[0m: step {i * 7919 % 1000} of 1000\n"
        )
    block = "".join(lines).encode()
    with path.open("wb") as out:
        for _ in range(megabytes * 1_000_000 // len(block) + 1):
            out.write(block)


def throughput(tool: str, peer: Peer, producer: str, size: int, env: dict[str, str]) -> float:
    """MB/s of what `producer` writes, from the first byte at the terminal to the mark after the last.

    A peer that draws a screen of its own may draw the mark in two pieces: it is given another try."""
    for _ in range(3 if peer.redraws else 1):
        seconds = _drained_s(tool, peer, producer, env)
        if seconds > 0:
            return size / 1e6 / seconds
    raise RuntimeError(f"{peer.name}: the end mark never reached the terminal")


def _drained_s(tool: str, peer: Peer, producer: str, env: dict[str, str]) -> float:
    with scratch() as folder:
        command = ["sh", "-c", f"{producer}; printf '{MARK}'; sleep 0.4"]
        run = subprocess.run(
            [tool, "drain", MARK, *peer.argv(command, folder)],
            env=env,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    return float(json.loads(run.stdout)["seconds"])


def drained(tool: str, peer: Peer, command: list[str], env: dict[str, str]) -> tuple[int, str]:
    """How many bytes reached the terminal, and their checksum."""
    with scratch() as folder:
        argv = [tool, "drain", MARK, *peer.argv(command, folder)]
        run = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=True)
    found = json.loads(run.stdout)
    return int(found["bytes"]), str(found["sum"])


def echo(tool: str, peer: Peer, rounds: int, gap_ms: int, env: dict[str, str]) -> list[float]:
    """Round trips of single keys in microseconds."""
    return _typed(tool, peer, "mirror", rounds, gap_ms * 1000, env)


def flooded(tool: str, peer: Peer, rounds: int, env: dict[str, str]) -> list[float]:
    """Microseconds from a key to its effect on the screen while the program floods it."""
    return _typed(tool, peer, "flood", rounds, 0, env)


def _typed(tool: str, peer: Peer, inner: str, rounds: int, gap_us: int, env: dict[str, str]) -> list[float]:
    with scratch() as folder:
        argv = [tool, "echo", str(rounds), str(gap_us), *peer.argv([tool, inner], folder)]
        run = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=120, check=False)
    samples = [float(v) for v in json.loads(run.stdout or "[]")]
    if not samples:
        raise RuntimeError(f"{peer.name}: no key was answered by `{inner}`: {run.stdout} {run.stderr[-300:]}")
    return samples


def wall(argv: list[str], tool: str, env: dict[str, str]) -> float:
    """Milliseconds of a whole run in a terminal, by the instrument's clock: waiting with a limit sees only steps."""
    run = subprocess.run([tool, "drain", MARK, *argv], env=env, capture_output=True, text=True, timeout=60, check=True)
    return float(json.loads(run.stdout)["whole"]) * 1e3


def in_turns(rounds: int, peers: list[Peer], one: Callable[[Peer], float], series: Series) -> None:
    """Every peer once per round, in a rotating order, so that drift hits all alike."""
    for _ in range(rounds):
        series.round += 1
        first = series.round % len(peers)
        for peer in peers[first:] + peers[:first]:
            series.add(peer.name, one(peer))


def pss_kb(pid: int) -> int:
    """Proportional set size: shared pages are shared out among their users."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))


def cpu_s(pid: int) -> float:
    """Processor time of all threads, by the scheduler's clock: ticks are too coarse for what idles."""
    tasks = os.listdir(f"/proc/{pid}/task")
    return sum(int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0]) for task in tasks) / 1e9


def wakeups(pid: int) -> int:
    """Voluntary context switches of all threads: how often the process went to sleep and was woken."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        text = Path(f"/proc/{pid}/task/{task}/status").read_text()
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("voluntary_ctxt"))
    return total
