"""A real process that writes the store is killed at a random moment: what it had reported is there, and whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from tests.support.ledgers import open_ledger
from tests.support.store_life import find_half

from atlasbridge.core.prompt.model import PromptState

WRITER = """
import sys
from pathlib import Path
from tests.support.ledgers import ME, YES, ask, open_ledger
ledger = open_ledger(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    record = ask(ledger)
    won = ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
    print("claimed", won.prompt_id, flush=True)
    ledger.inject(record.prompt_id)
    print("typed", won.prompt_id, flush=True)
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_killed_writer_leaves_a_whole_store(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root)
    assert writer.stdout is not None
    reports = [writer.stdout.readline() for _ in range(random.randint(1, 25))]
    for _ in range(random.randint(0, 2000)):  # somewhere between two reports, not right after one
        os.getpid()
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    told = [line.split() for line in (*reports, *rest.splitlines(keepends=True)) if line.endswith("\n")]
    ledger = open_ledger(tmp_path)
    for word, prompt_id in (line for line in told if len(line) == 2):
        record = ledger.prompt(prompt_id)
        assert record is not None and ledger.reply(prompt_id) is not None
        assert record.state is PromptState.INJECTED or word == "claimed"
    assert ledger.check() == [] and ledger.prepare_verify()().ok and find_half(ledger) == ""
    ledger.close()
