"""Questions without a terminal while things die: the caller, the hub, or both, at any moment.

Each caller asks a question that names its own answer, so an answer given to another is seen at once.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from random import Random
from typing import Any

from tests.support.hubs import HubProcess, wait_until

from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable


def open_prompts(hub: HubProcess) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = hub.ask("prompts")["prompts"]
    except (HubUnavailable, AtlasBridgeError):
        return []
    return found


def answer_what_is_open(hub: HubProcess) -> None:
    """Each question gets the word that it names; a hub that is just dying is asked again later."""
    for prompt in open_prompts(hub):
        word = prompt["excerpt"].split()[-1].rstrip("?")
        try:
            hub.ask("reply", prompt_id=prompt["prompt_id"], value=word, as_text=True)
        except AtlasBridgeError:
            continue  # it ended meanwhile, or the hub did


def ask_many(hub: HubProcess, count: int) -> None:
    """All at once: every caller gets its own answer."""
    callers = [hub.popen("ask", f"Say w{number}?", "--text", "--ttl", "10m") for number in range(count)]
    while any(caller.poll() is None for caller in callers):
        answer_what_is_open(hub)
    for number, caller in enumerate(callers):
        out, err = caller.communicate()
        assert (out, caller.returncode) == (f"w{number}\n", 0), (number, out, err)


def kill_rounds(hub: HubProcess, rounds: int, chance: Random) -> Counter[str]:
    """Kill -9 of hub or caller somewhere in the life of a question; counts how the questions ended."""
    ended: Counter[str] = Counter()
    for number in range(rounds):
        caller = hub.popen("ask", f"Say w{number}?", "--text", "--ttl", "10m")
        victim = chance.choice(["hub", "caller", "hub", "none"])
        after_answer = chance.random() < 0.5
        wait_until(lambda: bool(open_prompts(hub)))
        if after_answer:
            answering = subprocess.Popen(
                hub.command("reply", open_prompts(hub)[0]["prompt_id"], f"w{number}", "--text"),
                env=hub.environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        _kill(victim, hub, caller, chance)
        if victim == "hub":
            hub.start()
        while caller.poll() is None:
            answer_what_is_open(hub)
        if after_answer:
            answering.wait()
        out, _ = caller.communicate()
        if victim == "caller" and caller.returncode < 0:
            assert out in ("", f"w{number}\n"), out
            ended["caller killed"] += 1
        else:
            assert (out, caller.returncode) == (f"w{number}\n", 0), (number, victim, out, caller.returncode)
            ended[f"answered, {victim} killed"] += 1
        wait_until(lambda: not open_prompts(hub))
    return ended


def _kill(victim: str, hub: HubProcess, caller: subprocess.Popen[str], chance: Random) -> None:
    """At once or a little later: somewhere between the claim and the handing over."""
    pause = chance.choice([0.0, 0.0, 0.005, 0.02, 0.1])
    try:
        caller.wait(pause) if pause else None
    except subprocess.TimeoutExpired:
        pass
    if victim == "hub" and hub.pid:
        hub.kill_9()
    elif victim == "caller" and caller.poll() is None:
        os.kill(caller.pid, 9)
