"""Many sessions that ask at random moments: `python -m tests.torture many_sessions [--sessions N] [--at-once]`.

Started by the real command, one after the other, each host forked by the zygote (`--plain`: without it); when all are
there they begin to ask.  Reports latencies, memory per session, replies a second, the hub's processor time for each,
and whether the hub grew.  `--at-once`: nobody waits between two questions, which is as much as the hub can take.
"""

from __future__ import annotations

import threading
import time
from statistics import mean

from tests.benchmarks.measure import cpu_s
from tests.support.arena import Arena, arena
from tests.support.crowd import Directory, ask_pids, memory_kb, percentiles
from tests.support.zygotes import SWITCH, parent_of, start_zygote, zygotes

RAISED_S, TYPED_S = 0.300, 0.250  # what 99 of 100 are to take at most, on a machine without other work


def main(
    sessions: int = 1000,
    questions: int = 5,
    starters: int = 2,
    people: int = 8,
    plain: bool = False,
    at_once: bool = False,
) -> int:
    with arena() as place:
        place.start_hub()
        if not plain:
            del place.environ[SWITCH]
            start_zygote(place.home.root, place.environ)
        pause = 1 if at_once else max(100, sessions * 15)
        crowd = Directory(place, questions=questions, pause=pause, people=people)
        starting = [
            threading.Thread(target=_start, args=(crowd, first, sessions, starters)) for first in range(starters)
        ]
        samples: list[tuple[int, int, float]] = []
        watching = threading.Event()
        watcher = threading.Thread(target=_watch, args=(place, samples, watching))
        watcher.start()
        began, spent_s = time.monotonic(), 0.0
        fault = ""
        try:
            crowd.serve(starting, deadline_s=3600)
            spent_s = cpu_s(place.hub_pid)
        except AssertionError as error:
            fault = str(error)
        finally:
            watching.set()
            watcher.join()
    if fault:
        print(f"many_sessions: FAILED: {fault}")
    took_s, answers = time.monotonic() - began, sessions * questions
    print(f"many_sessions: {sessions} sessions, {answers} answers, {len(crowd.refused)} refused, {took_s:.0f} s")
    print(f"many_sessions: question on the screen to raised: {_judged(crowd.raise_s, RAISED_S)}")
    print(f"many_sessions: reply sent to typed: {_judged(crowd.reply_s, TYPED_S)}")
    print(f"many_sessions: {crowd.replies_per_s:.0f} replies a second; processor time of the hub, for all of a session")
    print(f"many_sessions: needs of it, {spent_s / max(1, answers) * 1000:.1f} ms per question")
    _report(samples)
    return 1 if fault else 0


def _judged(times_s: list[float], aim_s: float) -> str:
    late = sum(time_s > aim_s for time_s in times_s)
    verdict = "as wanted" if late * 100 <= len(times_s) else "too many"
    return f"{percentiles(times_s)}; over {aim_s * 1000:.0f} ms: {late} of {len(times_s)}, {verdict}"


def _report(samples: list[tuple[int, int, float]]) -> None:
    """While (nearly) all sessions are there, from the first look to the last: nothing may grow."""
    most = max((count for count, *_ in samples), default=0)
    full = [sample for sample in samples if sample[0] >= 0.9 * most]
    if full:
        (_, hub_first, host_first), (_, hub_last, host_last) = full[0], full[-1]
        print(f"many_sessions: {most} at once; MB (PSS) per host: {host_first:.1f} at first, {host_last:.1f} at last")
        print(f"many_sessions: hub {hub_first / 1024:.0f} MB at first, {hub_last / 1024:.0f} MB at last")


def _start(crowd: Directory, first: int, last: int, step: int) -> None:
    for number in range(first, last, step):
        crowd.add(number, real_start=True)


def _watch(place: Arena, samples: list[tuple[int, int, float]], done: threading.Event) -> None:
    """Sessions, the hub's memory in KB, and MB per host, every few seconds."""
    told = False
    while not done.wait(5):
        hub, hosts = ask_pids(place)
        own = memory_kb([hub])
        shares = memory_kb(hosts[:: max(1, len(hosts) // 50)])
        if own and shares:
            samples.append((len(hosts), own[0], mean(shares) / 1024))
        if hosts and not told:
            told = True
            known = zygotes(place.home.root)
            by_zygote = sum(_parent(pid) in known for pid in hosts)
            print(f"many_sessions: {by_zygote} of the first {len(hosts)} hosts were forked by a zygote", flush=True)


def _parent(pid: int) -> int:
    try:
        return parent_of(pid)
    except OSError:
        return 0  # it has ended meanwhile
