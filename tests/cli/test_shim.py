"""Typing a tool's name runs it under AtlasBridge, once, and the way around it works."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from atlasbridge.cli.install import shim_command as command
from atlasbridge.core.errors import AtlasBridgeError


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tool `agent` on PATH that says how it was called, and the scripts' folder before it."""
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "ab"))
    tool = tmp_path / "bin" / "agent"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "agent got: $*"\necho "PATH=$PATH"\ncommand -v agent\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/ab/shims:{tool.parent}:/usr/bin:/bin")
    for name in ("ATLASBRIDGE_BYPASS", "IN_ATLASBRIDGE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def invoke(*words: str) -> Result:
    return CliRunner().invoke(command, list(words), standalone_mode=False)


def on_a_terminal(words: list[str], **environ: str) -> str:
    """What a program prints that was started on a terminal."""
    master, slave = pty.openpty()
    child = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **environ})
    os.close(slave)
    said = b""
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            break
        if not data:
            break
        said += data
    os.close(master)
    child.wait()
    return said.decode(errors="replace").replace("\r\n", "\n")


def fake_python(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for AtlasBridge: says how it was called, then runs the tool as `run` would."""
    script = house / "python"
    script.write_text('#!/bin/sh\necho "wrapped: $*"\nshift 5\nexec "$@"\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


def test_the_name_runs_the_tool_under_atlasbridge_once(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(house, monkeypatch)
    assert invoke("add", "agent").exit_code == 0
    said = on_a_terminal(["agent", "--flag", "two words"])
    assert "wrapped: -P -m atlasbridge run -- agent --flag two words" in said
    assert "agent got: --flag two words" in said
    assert said.count("wrapped:") == 1
    assert str(house / "ab/shims") not in said, "nothing inside finds the script again"
    assert str(house / "bin/agent") in said


@pytest.mark.parametrize("name", ["ATLASBRIDGE_BYPASS", "IN_ATLASBRIDGE"])
def test_the_tool_itself_runs_when_it_is_asked_for_or_inside_a_session(
    house: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fake_python(house, monkeypatch)
    invoke("add", "agent")
    said = on_a_terminal(["agent", "x"], **{name: "1"})
    assert "agent got: x" in said
    assert "wrapped" not in said


def test_a_pipe_gets_the_tool_itself(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_python(house, monkeypatch)
    invoke("add", "agent")
    done = subprocess.run(["agent", "-p", "task"], capture_output=True, text=True)
    assert done.stdout.startswith("agent got: -p task")


def test_without_atlasbridge_the_tool_still_starts(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(house / "gone" / "python"))
    invoke("add", "agent")
    assert "agent got: x" in on_a_terminal(["agent", "x"])


def test_without_the_tool_the_script_says_so_and_does_not_call_itself(house: Path) -> None:
    assert "not on PATH yet" in invoke("add", "absent-tool").output
    done = subprocess.run(["absent-tool"], capture_output=True, text=True)
    assert done.returncode == 127
    assert "only its AtlasBridge shim was found" in done.stderr


def test_the_list_says_whether_path_finds_the_script_first(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    invoke("add", "agent")
    row = json.loads(invoke("list", "--json").output)[0]
    assert (row["tool"], row["real"], row["first"]) == ("agent", str(house / "bin/agent"), True)
    monkeypatch.setenv("PATH", f"{house}/bin:/usr/bin:/bin")
    assert json.loads(invoke("list", "--json").output)[0]["first"] is False
    assert f"{house}/bin/agent comes first" in " ".join(invoke("list").output.split())
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "not on PATH" in invoke("list").output
    assert "export PATH=" in invoke("add", "agent").output


def test_scripts_are_removed_and_nothing_else(house: Path) -> None:
    invoke("add", "agent", "other")
    stranger = house / "ab/shims/mine"
    stranger.write_text("#!/bin/sh\n")
    assert "removed" in invoke("remove", "agent").output
    invoke("remove")
    assert [path.name for path in (house / "ab/shims").iterdir()] == ["mine"]
    assert isinstance(invoke("remove", "agent").exception, AtlasBridgeError)
    assert isinstance(invoke("add", "mine").exception, AtlasBridgeError)
    assert stranger.read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize("name", ["../x", "a b", "-x", "a;b", ""])
def test_a_name_that_is_none_is_refused(house: Path, name: str) -> None:
    assert invoke("add", "--", name).exception is not None


def test_the_first_script_makes_a_home_that_is_nobody_elses(house: Path) -> None:
    assert invoke("add", "agent").exception is None
    assert (house / "ab").stat().st_mode & 0o777 == 0o700
    assert os.access(house / "ab" / "shims" / "agent", os.X_OK)
