"""Many sessions that ask at random moments: `python -m tests.torture many_sessions [--sessions N]`.

Started by the real command, one after the other; when all are there they begin to ask.  Reports latencies, memory per
session, and whether the hub grew.
"""

from __future__ import annotations

import argparse
import threading
import time
from statistics import mean

from tests.support.arena import Arena, arena
from tests.support.crowd import Crowd, ask_pids, memory_kb, percentiles


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="many_sessions")
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--questions", type=int, default=5)
    parser.add_argument("--starters", type=int, default=2)
    given = parser.parse_args(arguments)
    with arena() as place:
        place.start_hub()
        crowd = Crowd(place, questions=given.questions, pause=max(100, given.sessions * 15), people=8)
        starters = [
            threading.Thread(target=_start, args=(crowd, first, given.sessions, given.starters))
            for first in range(given.starters)
        ]
        samples: list[tuple[int, int, float]] = []
        watching = threading.Event()
        watcher = threading.Thread(target=_watch, args=(place, samples, watching))
        watcher.start()
        began = time.monotonic()
        fault = ""
        try:
            crowd.serve(starters, deadline_s=3600)
        except AssertionError as error:
            fault = str(error)
        finally:
            watching.set()
            watcher.join()
    if fault:
        print(f"many_sessions: FAILED: {fault}")
    took_s, answers = time.monotonic() - began, given.sessions * given.questions
    print(f"many_sessions: {given.sessions} sessions, {answers} answers, {len(crowd.refused)} refused, {took_s:.0f} s")
    print(f"many_sessions: question on the screen to raised: {percentiles(crowd.raise_s)}")
    print(f"many_sessions: reply sent to typed: {percentiles(crowd.reply_s)}")
    _report(samples)
    return 1 if fault else 0


def _report(samples: list[tuple[int, int, float]]) -> None:
    """While (nearly) all sessions are there, from the first look to the last: nothing may grow."""
    most = max((count for count, *_ in samples), default=0)
    full = [sample for sample in samples if sample[0] >= 0.9 * most]
    if full:
        (_, hub_first, host_first), (_, hub_last, host_last) = full[0], full[-1]
        print(f"many_sessions: {most} at once; MB (PSS) per host: {host_first:.1f} at first, {host_last:.1f} at last")
        print(f"many_sessions: hub {hub_first / 1024:.0f} MB at first, {hub_last / 1024:.0f} MB at last")


def _start(crowd: Crowd, first: int, last: int, step: int) -> None:
    for number in range(first, last, step):
        crowd.add(number, real_start=True)


def _watch(place: Arena, samples: list[tuple[int, int, float]], done: threading.Event) -> None:
    """Sessions, the hub's memory in KB, and MB per host, every few seconds."""
    while not done.wait(5):
        hub, hosts = ask_pids(place)
        own = memory_kb([hub])
        shares = memory_kb(hosts[:: max(1, len(hosts) // 50)])
        if own and shares:
            samples.append((len(hosts), own[0], mean(shares) / 1024))
