"""What a person is told to type in another terminal."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from atlasbridge.cli.run import own_name


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
    assert own_name() == shlex.quote(str(command))
    command.unlink()
    assert own_name() == shlex.quote(str(tmp_path / "zygote.py"))


@pytest.mark.parametrize(
    ("folder", "typed"),
    [("src/atlasbridge", "~/src/atlasbridge/bin/atlasbridge"), ("my projects", "'{home}/my projects/bin/atlasbridge'")],
)
def test_the_command_works_from_any_folder(
    folder: str, typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / folder / "bin" / "atlasbridge"
    command.parent.mkdir(parents=True)
    command.write_text("#!/bin/sh\necho here\n")
    command.chmod(0o755)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(command.parent / "python"))
    assert own_name() == typed.format(home=tmp_path)
    done = subprocess.run(["bash", "-c", own_name()], cwd="/", capture_output=True, text=True, check=True)
    assert done.stdout == "here\n"
