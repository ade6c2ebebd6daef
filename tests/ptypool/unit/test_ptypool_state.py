"""A session's state on disk: private, complete, and refused when it is not what we wrote."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from ptypool import PtyInternalError
from ptypool.session import HistoryEntry, SessionState

STATE = SessionState(
    "bash", "/usr", {"A": "x\ny", "RAW": os.fsdecode(b"\xff")}, (HistoryEntry("cd /usr", 0, "/usr", 0.25),)
)


def test_a_saved_state_is_loaded_as_it_was(tmp_path: Path) -> None:
    STATE.save(tmp_path / "s.json")
    assert SessionState.load(tmp_path / "s.json") == STATE


def test_a_saved_state_is_for_its_owner_only(tmp_path: Path) -> None:
    old_mask = os.umask(0)
    try:
        STATE.save(tmp_path / "s.json")
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "s.json").stat().st_mode) == 0o600


def test_saving_leaves_no_draft_behind(tmp_path: Path) -> None:
    STATE.save(tmp_path / "s.json")
    STATE.save(tmp_path / "s.json")
    assert os.listdir(tmp_path) == ["s.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 1}', '{"version": 99, "shell": "bash"}'])
def test_a_file_that_is_no_session_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(PtyInternalError, match="no saved session"):
        SessionState.load(tmp_path / "s.json")


def test_a_history_with_foreign_fields_is_refused(tmp_path: Path) -> None:
    STATE.save(tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text())
    document["history"][0]["extra"] = 1
    (tmp_path / "s.json").write_text(json.dumps(document))
    with pytest.raises(PtyInternalError, match="extra"):
        SessionState.load(tmp_path / "s.json")
