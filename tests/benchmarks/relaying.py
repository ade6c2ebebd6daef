"""What a wrapper costs: throughput, complete output, echo of keys, for every peer in turns."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.measure import Series, drained, echo, flooded, in_turns, payload, throughput
from tests.benchmarks.peers import Peer

SLOW = {"tmux", "screen", "naive (executor, 1 KB)", "expect", "asciinema", "pexpect"}
_TAIL_LINES = 20_000


@dataclass(slots=True)
class Bench:
    tool: str
    folder: Path
    peers: list[Peer]
    env: dict[str, str]
    rounds: int

    def payload(self, megabytes: int) -> Path:
        path = self.folder / f"payload-{megabytes}"
        if not path.exists():
            payload(path, megabytes)
        return path

    def colour(self, megabytes: int) -> Series:
        big, small = self.payload(megabytes), self.payload(10)
        title = f"Coloured text, {megabytes} MB, the terminal drained by another process"
        series = Series(title, "MB/s", "higher", notes=["Peers slower by an order of magnitude get 10 MB."])

        def one(peer: Peer) -> float:
            file = small if peer.name in SLOW else big
            return throughput(self.tool, peer, f"cat {file}", file.stat().st_size, self.env)

        in_turns(self.rounds, self.peers, one, series)
        fast = [peer for peer in self.peers if peer.name not in SLOW]  # near each other: more rounds
        in_turns(3 * self.rounds + 1, fast, one, series)
        return series

    def plain(self) -> Series:
        series = Series("`yes`, 12 MB", "MB/s", "higher", notes=["Peers slower by an order of magnitude get 3 MB."])

        def one(peer: Peer) -> float:
            size = 3_000_000 if peer.name in SLOW else 12_000_000
            return throughput(self.tool, peer, f"yes | head -c {size}", size, self.env)

        in_turns(self.rounds, self.peers, one, series)
        return series

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

    def echo(self) -> tuple[Series, Series, Series]:
        half, late, flood = (
            Series("Echo round trip, p50", "us", "lower"),
            Series("Echo round trip, p99", "us", "lower"),
            Series("Key to its effect on the screen under flood, p50", "us", "lower"),
        )

        def keys(peer: Peer) -> float:
            samples = sorted(echo(self.tool, peer, 200, self.env))
            late.add(peer.name, samples[int(len(samples) * 0.99)])
            return samples[len(samples) // 2]

        in_turns(2 * self.rounds + 1, self.peers, keys, half)
        in_turns(self.rounds, self.peers, lambda peer: statistics.median(flooded(self.tool, peer, 20, self.env)), flood)
        return half, late, flood
