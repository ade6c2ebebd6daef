"""A million streams made to confuse the detector: `python -m tests.torture fuzz_streams [--streams N] [--first N]`.

No exception, no excerpt that is too long, no buffer that grows, no stream that takes long, no memory that stays.
Stream by stream it is `tests/support/hostile_streams.py`; a number in a failure gives the stream again.
"""

from __future__ import annotations

import gc
import resource
import time

from atlasbridge.adapters.dialect_files import available, load_dialect
from tests.support.hostile_streams import attack

ROUND = 20_000
SLOWEST_S = 2.0  # of processor time, for one stream
GROWTH_KB = 40_000


def main(
    streams: int = 1_000_000,
    first: int = 0,  # number of the first stream: shards begin elsewhere
) -> int:
    dialects = [load_dialect(name) for name in available()]
    raised, slowest, slowest_number, settled_kb = 0, 0.0, 0, 0
    for number in range(first, first + streams):
        begin = time.process_time()
        try:
            raised += attack(number, dialects)
        except Exception as error:  # whatever it is, the number is what matters
            print(f"fuzz_streams: stream {number} FAILED: {type(error).__name__}: {error}")
            return 1
        spent = time.process_time() - begin
        if spent > slowest:
            slowest, slowest_number = spent, number
        done = number - first + 1
        if done % ROUND == 0:
            gc.collect()
            peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            settled_kb = settled_kb or peak_kb
            report = f"{done} streams, {raised} prompts, slowest {slowest * 1000:.0f} ms, {peak_kb // 1024} MB"
            print(f"fuzz_streams: {report}, {time.process_time():.0f} s of processor", flush=True)
            if peak_kb - settled_kb > GROWTH_KB:
                print(f"fuzz_streams: memory grew by {(peak_kb - settled_kb) // 1024} MB")
                return 1
    if slowest > SLOWEST_S:
        print(f"fuzz_streams: stream {slowest_number} took {slowest:.1f} s")
        return 1
    print(f"fuzz_streams: {streams} streams, {raised} prompts raised, slowest {slowest * 1000:.0f} ms; no exception")
    return 0
