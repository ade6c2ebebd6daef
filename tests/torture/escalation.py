"""Random lives of prompts on a virtual clock: `python -m tests.torture escalation policy [--lives N]`.

People with quiet hours, channels that fail, a hub that restarts, keys at the terminal, escalation of every shape: every
prompt ends in time, nothing is told twice or too late, nobody is woken or told too often.
"""

from __future__ import annotations

from tests.support.escalation_life import count_lives

ROUND = 50_000


def main(lives: int = 1_000_000, seed: int = 1) -> int:
    lived = 0
    while lived < lives:
        done, wrong = count_lives(seed + lived, min(ROUND, lives - lived))
        lived += done
        if wrong:
            print("\n".join(wrong[:20]))
            return 1
        print(f"escalation policy: {lived} lives so far, nothing wrong", flush=True)
    print(f"escalation policy: {lived} lives, each ended in time, nobody told twice, too late, asleep or too often")
    return 0
