"""`make bench`: everything side by side in one run; writes docs/benchmarks.md and a plot.  `--quick`: less."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks import judging
from tests.benchmarks.fidelity import fidelity_rows
from tests.benchmarks.measure import Series, echo, flooded, in_turns, payload, pss_kb, throughput, wall
from tests.benchmarks.peers import Peer, all_peers, have, instrument
from tests.benchmarks.product import ATLAS, LOOPER, READER, Product, idling, memory, prompt_latencies, wait
from tests.benchmarks.report import machine, plot, table
from tests.support.sessions import host_pids
from tests.support.terminal import Terminal

DOCS = Path(__file__).resolve().parents[2] / "docs"
SLOW = {"tmux", "screen", "naive (executor, 1 KB)", "expect", "asciinema", "pexpect"}


def main() -> int:
    quick = "--quick" in sys.argv
    rounds = 3 if quick else 7
    lines = ["# Benchmarks", "", "Made by `make bench`; every table is one run, peers in turns, medians.", ""]
    with tempfile.TemporaryDirectory(prefix="ab") as folder, Product() as product:
        tool = instrument(Path(folder))
        peers, missing = have(all_peers(tool))
        env = {**product.env, "PATH": os.environ["PATH"]}
        lines += relaying(tool, Path(folder), peers, env, rounds, quick)
        lines += typing(tool, peers, env, rounds)
        lines += starting(tool, env, rounds)
        lines += attached_memory(product)
    lines += detecting(10 if quick else 40)
    lines += resting(5 if quick else 20, (1, 10) if quick else (1, 10, 100))
    lines += ["### Fidelity", "", *fidelity_rows(), ""]
    lines += ["", f"Machine: {machine()}. Missing peers: {', '.join(missing) or 'none'}."]
    (DOCS / "benchmarks.md").write_text("\n".join(lines) + "\n")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def relaying(tool: str, folder: Path, peers: list[Peer], env: dict[str, str], rounds: int, quick: bool) -> list[str]:
    big, small = payload(folder, 20 if quick else 100), folder / "small"
    with big.open("rb") as source:
        small.write_bytes(source.read(10_000_000))
    colour = Series(
        "Coloured text, 100 MB", "MB/s", "higher", notes=["Peers that are slow by an order of magnitude get 10 MB."]
    )
    plain = Series("`yes`", "MB/s", "higher")

    def run_colour(peer: Peer) -> float:
        file = small if peer.name in SLOW else big
        return throughput(tool, peer, f"cat {file}", file.stat().st_size, env)

    in_turns(rounds, peers, run_colour, colour)
    fast = [peer for peer in peers if peer.name not in SLOW]
    in_turns(rounds, fast, lambda peer: throughput(tool, peer, "yes | head -c 30000000", 30_000_000, env), plain)
    plot(colour, DOCS / "images" / "throughput.svg")
    return ["## Pass-through", "", *table(colour), "![throughput](images/throughput.svg)", "", *table(plain)]


def typing(tool: str, peers: list[Peer], env: dict[str, str], rounds: int) -> list[str]:
    half, late, flood = (
        Series("Echo round trip, p50", "us", "lower"),
        Series("Echo round trip, p99", "us", "lower"),
        Series("Key to answer under flood, p50", "us", "lower"),
    )
    silent = set()
    for _ in range(rounds):
        for peer in peers:
            samples = sorted(echo(tool, peer, 200, env))
            half.add(peer.name, samples[len(samples) // 2])
            late.add(peer.name, samples[int(len(samples) * 0.99)])
            pressed = flooded(tool, peer, 20, env)
            if pressed:
                flood.add(peer.name, statistics.median(pressed))
            else:
                silent.add(peer.name)
    if silent:
        flood.notes.append(f"Never showed the answer in the flood: {', '.join(sorted(silent))}.")
    added = half.median("AtlasBridge") - half.median("direct PTY")
    half.notes.append(f"AtlasBridge adds {added:.0f} us to a direct PTY.")
    return ["## Typing", "", *table(half), *table(late), *table(flood)]


def starting(tool: str, env: dict[str, str], rounds: int) -> list[str]:
    series = Series("Start-up, whole run in a terminal", "ms", "lower")
    commands = {
        "`true` in a PTY": ["true"],
        "`atlasbridge run true`": [ATLAS, "run", "true"],
        "`atlasbridge --help`": [ATLAS, "--help"],
        "`atlasbridge status`": [ATLAS, "status"],
        "`atlasbridge approvals --json`": [ATLAS, "approvals", "--json"],
        "`python -c pass`": [sys.executable, "-c", "pass"],
    }
    for _ in range(rounds * 2):
        for name, argv in commands.items():
            series.add(name, wall(argv, tool, env))
    return ["## Start", "", *table(series)]


def attached_memory(product: Product) -> list[str]:
    """Client and host of one attached session, at rest and after a flood."""
    rows = ["### Memory of one attached session (PSS, MB)", "", "| | client | host | together |", "|---|---|---|---|"]
    script = "printf 'first: '; read a; yes | head -c 20000000; printf 'second: '; read b"
    with Terminal([ATLAS, "run", "--", "sh", "-c", script], home=product.home) as terminal:
        for moment, shown in (("at rest", "first:"), ("after 20 MB", "second:")):
            terminal.wait_for(shown)
            host = wait(lambda: host_pids(product.home))[0]
            client_mb, host_mb = pss_kb(terminal.pid) / 1024, pss_kb(host) / 1024
            rows.append(f"| {moment} | {client_mb:.1f} | {host_mb:.1f} | {client_mb + host_mb:.1f} |")
            terminal.type("x\r")
    return [*rows, ""]


def detecting(rounds: int) -> list[str]:
    rows = ["## Detection and replies", "", "| | p50 ms | p99 ms |", "|---|---|---|"]
    for name, source in (("blocked in read", READER), ("event loop", LOOPER)):
        raised, typed = prompt_latencies(source, rounds)
        for what, samples in (
            (f"rest to raised, {name}", sorted(raised)),
            (f"reply to the tool, {name}", sorted(typed)),
        ):
            rows.append(f"| {what} | {statistics.median(samples):.0f} | {samples[int(len(samples) * 0.99)]:.0f} |")
    day = judging.a_busy_day()
    return [
        *rows,
        "",
        f"One judgement of a full screen: {judging.judgement_us():.0f} us. "
        f"24 simulated hours, {day['asked']:.0f} prompts asked, {day['raised']:.0f} raised: "
        f"{day['kb_after_an_hour']:.0f} KB after an hour, {day['kb_at_the_end']:.0f} KB at the end.",
        "",
    ]


def resting(seconds: float, counts: tuple[int, ...]) -> list[str]:
    rows = ["## At rest", "", "| | % of a core | wake-ups a second |", "|---|---|---|"]
    rows += [f"| {name} | {cpu:.2f} | {wakes:.1f} |" for name, (cpu, wakes) in idling(seconds).items()]
    rows += ["", "| sessions | host, MB each (PSS) | hub, MB (PSS) |", "|---|---|---|"]
    rows += [f"| {count} | {host:.1f} | {hub:.1f} |" for count, host, hub in memory(counts)]
    return [*rows, ""]


if __name__ == "__main__":
    sys.exit(main())
