"""No stream raises an exception or grows the detector.  `python -m tests.torture fuzz_streams` tries a million."""

from __future__ import annotations

import os

import pytest
from tests.support.hostile_streams import attack

from atlasbridge.adapters.dialect_files import available, load_dialect

STREAMS = int(os.environ.get("ATLASBRIDGE_FUZZ", "600"))
SHARDS = 6


@pytest.mark.parametrize("shard", range(SHARDS))
def test_no_stream_raises_and_memory_stays_bounded(shard: int) -> None:
    dialects = [load_dialect(name) for name in available()]
    raised = sum(attack(number, dialects) for number in range(shard, STREAMS, SHARDS))
    assert raised > 0  # streams that never look like a prompt would prove nothing
