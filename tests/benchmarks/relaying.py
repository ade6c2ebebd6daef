"""What a wrapper costs: throughput, complete output, echo of keys, for every peer in turns.

A machine has phases of minutes in which one way of relaying is slower than in others: everything is measured in passes.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.measure import Series, drained, echo, flooded, in_turns, payload, throughput
from tests.benchmarks.peers import Peer

SLOW = {"tmux", "screen", "naive (executor, 1 KB)", "expect", "asciinema", "pexpect"}
_NEAR_IN_SPEED = {"C poll relay", "AtlasBridge", "script(1)"}  # the aims name them: many more rounds
_NEAR_IN_ECHO = {"direct PTY", "C poll relay", "AtlasBridge", "tmux"}
_QUICK_MS, _PERSON_MS = 3, 60  # between two keys
_ROUNDS = 2  # of a pass, at least
_TAIL_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Figures:
    colour: Series
    plain: Series
    echo: Series
    late_echo: Series
    person: Series
    flooded: Series


@dataclass(slots=True)
class Bench:
    tool: str
    folder: Path
    peers: list[Peer]
    env: dict[str, str]

    def payload(self, megabytes: int) -> Path:
        path = self.folder / f"payload-{megabytes}"
        if not path.exists():
            payload(path, megabytes)
        return path

    def measure(self, megabytes: int, passes: int) -> Figures:
        figures = Figures(
            Series(
                f"Coloured text, {megabytes} MB, the terminal drained by another process",
                "MB/s",
                "higher",
                notes=["Peers slower by an order of magnitude get 10 MB."],
            ),
            Series("`yes`, 12 MB", "MB/s", "higher", notes=["Peers slower by an order of magnitude get 3 MB."]),
            Series(f"Echo round trip, a key every {_QUICK_MS} ms, p50", "us", "lower"),
            Series(f"Echo round trip, a key every {_QUICK_MS} ms, p99", "us", "lower"),
            Series(
                f"Echo round trip at a person's pace, a key every {_PERSON_MS} ms, p50",
                "us",
                "lower",
                notes=[
                    "Between two keys the processor sleeps and forgets. What bare Python adds here is the "
                    "interpreter's; AtlasBridge also judges the screen after each key."
                ],
            ),
            Series("Key to its effect on the screen under flood, p50", "us", "lower"),
        )
        for _ in range(passes):
            self._colour(figures.colour, megabytes)
            self._plain(figures.plain)
            self._echo(figures.echo, figures.late_echo)
            self._at_a_persons_pace(figures.person)
            self._flooded(figures.flooded)
        return figures

    def _some(self, names: set[str]) -> list[Peer]:
        return [peer for peer in self.peers if peer.name in names]

    def _colour(self, series: Series, megabytes: int) -> None:
        big, small = self.payload(megabytes), self.payload(10)

        def one(peer: Peer) -> float:
            file = small if peer.name in SLOW else big
            return throughput(self.tool, peer, f"cat {file}", file.stat().st_size, self.env)

        in_turns(_ROUNDS, self.peers, one, series)
        in_turns(_ROUNDS, [peer for peer in self.peers if peer.name not in SLOW], one, series)
        in_turns(6 * _ROUNDS, self._some(_NEAR_IN_SPEED), one, series)

    def _plain(self, series: Series) -> None:
        def one(peer: Peer) -> float:
            size = 3_000_000 if peer.name in SLOW else 12_000_000
            return throughput(self.tool, peer, f"yes | head -c {size}", size, self.env)

        in_turns(_ROUNDS, self.peers, one, series)

    def tails(self, times: int) -> dict[str, tuple[int, int]]:
        """How often all bytes of a program that writes and ends at once reached the terminal."""
        command = ["seq", "1", str(_TAIL_LINES)]
        direct = next(peer for peer in self.peers if peer.name == "direct PTY")
        whole = drained(self.tool, direct, command, self.env)
        found: dict[str, tuple[int, int]] = {}
        for peer in self.peers:
            if peer is direct or peer.redraws:
                continue
            tries = times if peer.name == "AtlasBridge" else min(times, 20)
            runs = [drained(self.tool, peer, command, self.env) for _ in range(tries)]
            found[peer.name] = (runs.count(whole), tries)
        return found

    def _echo(self, half: Series, late: Series) -> None:
        def keys(peer: Peer) -> float:
            samples = sorted(echo(self.tool, peer, 200, _QUICK_MS, self.env))
            late.round = half.round
            late.add(peer.name, samples[int(len(samples) * 0.99)])
            return samples[len(samples) // 2]

        in_turns(2 * _ROUNDS, self.peers, keys, half)
        in_turns(2 * _ROUNDS, self._some(_NEAR_IN_ECHO), keys, half)

    def _at_a_persons_pace(self, series: Series) -> None:
        def keys(peer: Peer) -> float:
            return statistics.median(echo(self.tool, peer, 40, _PERSON_MS, self.env))

        in_turns(_ROUNDS, self._some(_NEAR_IN_ECHO | {"bare Python"}), keys, series)

    def _flooded(self, series: Series) -> None:
        in_turns(_ROUNDS, self.peers, lambda peer: statistics.median(flooded(self.tool, peer, 20, self.env)), series)
