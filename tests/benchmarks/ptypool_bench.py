"""Figures for ptypool: spawn rate, throughput, and many live PTYs in one process. Prints; asserts nothing.

python tests/benchmarks/ptypool_bench.py [--ptys 1000] [--spawns 200] [--megabytes 50] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import time
from pathlib import Path

from ptypool import PtyHandle, PtyPool, spawn_process

Figures = dict[str, float]


def resident_kb() -> int:
    """Linux only; elsewhere the peak, which is near enough for a growing process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1])


async def measure_spawn_rate(count: int) -> Figures:
    async with PtyPool(1) as pool:
        times = []
        started = time.perf_counter()
        for _ in range(count):
            before = time.perf_counter()
            handle = await pool.spawn("/bin/true")
            times.append(time.perf_counter() - before)
            await handle.wait()
            await pool.kill(handle.id)
        whole = time.perf_counter() - started
    return {"spawns_per_s": count / whole, "spawn_p50_ms": statistics.median(times) * 1000}


async def measure_throughput(megabytes: int) -> Figures:
    """The pool beside a bare blocking read of the same child, in one run."""
    command = ["head", "-c", str(megabytes * 1_000_000), "/dev/zero"]
    started = time.perf_counter()
    process = spawn_process(command)
    try:
        while os.read(process.master_fd, 65536):
            pass
    except OSError:
        bare = time.perf_counter() - started
    os.close(process.master_fd)
    os.waitpid(process.pid, 0)  # noqa: ASYNC222 - nothing else runs
    async with PtyPool(1) as pool:
        started = time.perf_counter()
        handle = await pool.spawn(command[0], command[1:])
        seen = 0
        async for chunk in handle:
            seen += len(chunk)
        pooled = time.perf_counter() - started
    return {"pool_mb_per_s": seen / pooled / 1e6, "bare_mb_per_s": seen / bare / 1e6, "pool_to_bare": bare / pooled}


async def echo_latency_ms(handle: PtyHandle, rounds: int) -> float:
    times = []
    for number in range(rounds):
        line = f"line {number}.".encode()
        before = time.perf_counter()
        await handle.send_line(line)
        seen = b""
        while seen.count(line) < 2:  # the terminal's echo, and cat's own line
            seen += await handle.read()
        times.append(time.perf_counter() - before)
    return statistics.median(times) * 1000


async def measure_many(count: int) -> Figures:
    async with PtyPool(count) as pool:
        alone = await pool.spawn("cat")
        latency_alone = await echo_latency_ms(alone, 50)
        await pool.kill(alone.id)
        before_kb, started = resident_kb(), time.perf_counter()
        handles = [await pool.spawn("cat") for _ in range(count)]
        start_up = time.perf_counter() - started
        grown_kb = resident_kb() - before_kb
        await asyncio.sleep(1)
        cpu = time.process_time()
        await asyncio.sleep(5)
        idle_cpu = (time.process_time() - cpu) / 5
        latency = await echo_latency_ms(handles[count // 2], 50)
        started = time.perf_counter()
        await asyncio.gather(*(echo_latency_ms(handle, 1) for handle in handles))
        all_at_once = time.perf_counter() - started
        closing = time.perf_counter()
    return {
        "ptys": count,
        "start_up_s": start_up,
        "kb_per_pty": grown_kb / count,
        "idle_cpu_percent": idle_cpu * 100,
        "echo_alone_p50_ms": latency_alone,
        "echo_among_all_p50_ms": latency,
        "echo_all_at_once_s": all_at_once,
        "close_all_s": time.perf_counter() - closing,
    }


async def measure_constant_time(count: int) -> Figures:
    """The calls that the document has as O(1), among 1 and among `count` others; the ratio is what counts."""
    figures: Figures = {}
    for others in (1, count):
        async with PtyPool(others + 1) as pool:
            for _ in range(others):
                await pool.spawn("sleep", ["600"])
            times: dict[str, list[float]] = {"active_count": [], "spawn": [], "kill": []}
            for _ in range(50):
                before = time.perf_counter()
                handle = await pool.spawn("sleep", ["600"])
                spawned = time.perf_counter()
                pool.active_count()
                counted = time.perf_counter()
                await pool.kill(handle.id)
                times["spawn"].append(spawned - before)
                times["active_count"].append(counted - spawned)
                times["kill"].append(time.perf_counter() - counted)
            figures |= {f"{name}_among_{others}_us": statistics.median(all_) * 1e6 for name, all_ in times.items()}
    for name in ("active_count", "spawn", "kill"):
        figures[f"{name}_ratio"] = figures[f"{name}_among_{count}_us"] / figures[f"{name}_among_1_us"]
    return figures


def raise_descriptor_limit(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))


async def measure(options: argparse.Namespace) -> dict[str, Figures]:
    return {
        "spawn": await measure_spawn_rate(options.spawns),
        "throughput": await measure_throughput(options.megabytes),
        "many": await measure_many(options.ptys),
        "constant time": await measure_constant_time(min(options.ptys, 200)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ptys", type=int, default=1000)
    parser.add_argument("--spawns", type=int, default=200)
    parser.add_argument("--megabytes", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    raise_descriptor_limit(options.ptys * 2 + 200)
    figures = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    for group, values in figures.items():
        print(group)
        for name, value in values.items():
            print(f"  {name:24} {value:10.3f}")


if __name__ == "__main__":
    main()
