"""What a person is told to type in another terminal."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from atlasbridge.cli.environment import own_name


def test_a_host_of_the_zygote_names_the_command_and_not_the_zygote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "atlasbridge"
    command.parent.mkdir()
    command.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "zygote.py")])
    assert own_name() == "bin/atlasbridge"
    command.unlink()
    assert own_name() == "zygote.py"
