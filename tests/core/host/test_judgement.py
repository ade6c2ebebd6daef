"""What is told to a session before its analysis thread is there is not lost."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from tests.support.session_fakes import Bench

from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.host.analysis import LazyAnalysis
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.tty import Size


def test_what_a_hook_says_before_anybody_can_judge_is_kept(tmp_path: Path) -> None:
    bench = Bench()
    built: list[deque[Any]] = []

    def build(size: Size, events: deque[Any]) -> Any:
        built.append(events)
        raise AssertionError("nobody judges yet")

    analysis = LazyAnalysis(build, Size(), False, lambda loop: None, SessionLog(tmp_path / "log", bench.clock))
    analysis.hook_reported({"kind": "permission", "text": "Bash: ls", "source": "a hook"})
    assert analysis.redraw() == b"" and list(built[0]) == [StructuredEventReceived("permission", "Bash: ls", "a hook")]
