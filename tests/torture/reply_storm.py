"""As many replies as the hub can take: `python -m tests.torture reply_storm [--sessions N] [--answers N]`.

The hub is real; the sessions are connections that type at once what they are told (`tests/support/many_hosts.py`), so
that nothing but the hub is measured.  Reports replies a second, how long one takes, and the hub's processor time.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time

from atlasbridge.core.daemon.request import HubClient
from tests.benchmarks.measure import cpu_s
from tests.support.arena import Arena, arena
from tests.support.crowd import percentiles
from tests.support.waiting import wait_for

ENOUGH = 200  # replies a second


def main(sessions: int = 1000, answers: int = 5000, people: int = 8) -> int:
    with arena() as place:
        place.start_hub()
        command = [sys.executable, "-m", "tests.support.many_hosts", str(place.home.root), str(sessions)]
        hosts = subprocess.Popen(command, stdin=subprocess.PIPE)
        try:
            wait_for(lambda: place.ask("status")["sessions"] == sessions, "all sessions", 300)
            refused, took_s, replies, spent_s = _storm(place, hosts, answers, people)
        finally:
            hosts.kill()
            hosts.wait()
        whole = bool(place.ask("audit.verify")["verdict"]["ok"])
    rate, each_ms = len(replies) / took_s, spent_s / max(1, len(replies)) * 1000
    print(f"reply_storm: {sessions} sessions, {len(replies)} replies in {took_s:.0f} s, {refused} refused")
    print(f"reply_storm: {rate:.0f} replies a second ({'enough' if rate >= ENOUGH else f'fewer than {ENOUGH}'})")
    print(f"reply_storm: {each_ms:.1f} ms of the hub's processor each, {1000 / each_ms:.0f} a core")
    print(f"reply_storm: reply sent to typed: {percentiles(replies)}")
    if not whole or refused:
        print("reply_storm: FAILED: a reply was refused, or the audit log is broken")
    return 1 if not whole or refused else 0


def _storm(
    place: Arena, hosts: subprocess.Popen[bytes], answers: int, people: int
) -> tuple[int, float, list[float], float]:
    raised: queue.Queue[str] = queue.Queue()
    replies: list[float] = []
    refused: list[str] = []
    over = threading.Event()
    with HubClient(place.home) as listening:
        stream = listening.stream("events", follow=True)

        def listen() -> None:
            for event in stream:
                if event["event"] == "prompt.raised":
                    raised.put(event["prompt_id"])
                if over.is_set():
                    return

        def answer() -> None:
            with HubClient(place.home, timeout_s=120) as hub:
                while len(replies) + len(refused) < answers:
                    prompt_id = raised.get()
                    began = time.monotonic()
                    told = hub.request("reply", prompt_id=prompt_id, value="y")
                    if told["ok"]:
                        replies.append(time.monotonic() - began)
                    else:
                        refused.append(told["reason"])

        threading.Thread(target=listen, daemon=True).start()
        directory = [threading.Thread(target=answer) for _ in range(people)]
        before, began = cpu_s(place.hub_pid), time.monotonic()
        assert hosts.stdin is not None
        hosts.stdin.write(b"go\n")
        hosts.stdin.flush()
        for person in directory:
            person.start()
        for person in directory:
            person.join()
        took_s, spent_s = time.monotonic() - began, cpu_s(place.hub_pid) - before
        over.set()
    return len(refused), took_s, replies, spent_s
