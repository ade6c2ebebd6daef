"""The hub as a service, and what takes it away again; all in a home of the test's own."""

from __future__ import annotations

import plistlib
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from atlasbridge.cli import hub, system_hub
from atlasbridge.cli.install import (
    install_service,
    quoted,
    render_unit,
    service_file,
    shim_command,
    uninstall_command,
    uninstall_service,
)
from atlasbridge.core.home import Home
from atlasbridge.core.system_setup import SystemSetup

SETUP = SystemSetup("atlasbridge", 990, "/var/lib/atlasbridge", "/run/atlasbridge/hub.sock")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A person with nothing yet, on a machine whose service manager does not answer."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "ab"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Home(tmp_path / "ab")


def fake_systemctl(tmp_path: Path) -> Path:
    """Answers as a user's manager does, and keeps what it was told."""
    told = tmp_path / "told"
    script = tmp_path / "bin" / "systemctl"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\necho "$*" >> {shlex.quote(str(told))}\n')
    script.chmod(0o755)
    return told


def test_the_unit_is_written_where_systemd_looks_and_starts_this_very_program(house: Home) -> None:
    lines = list(install_service(house, now=True, platform="linux"))
    path = service_file("linux")
    assert path == Path(str(house.root.parent)) / ".config/systemd/user/atlasbridge-hub.service"
    text = path.read_text()
    assert f"ExecStart={quoted(sys.executable)} -P -m atlasbridge hub start --foreground" in text
    assert f'Environment="ATLASBRIDGE_HOME={house.root}"' in text
    assert any("systemctl --user enable --now" in line for line in lines)


def test_a_manager_that_answers_is_told(house: Home, tmp_path: Path) -> None:
    told = fake_systemctl(tmp_path)
    list(install_service(house, now=True, platform="linux"))
    assert "--user enable --now atlasbridge-hub.service" in told.read_text()
    list(uninstall_service(platform="linux"))
    assert "--user disable --now atlasbridge-hub.service" in told.read_text()
    assert not service_file("linux").exists()


def test_what_systemd_would_read_as_its_own_signs_is_quoted(tmp_path: Path) -> None:
    text = render_unit(Home(tmp_path / "a b%h$x"))
    assert f'"ATLASBRIDGE_HOME={tmp_path}/a b%%h$$x"' in text


@pytest.mark.parametrize("render", [lambda: render_unit(Home(Path("/h"))), lambda: system_hub.render_unit(SETUP)])
def test_a_program_in_a_folder_with_a_blank_is_one_word(
    render: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/opt/my tools/python")
    assert 'ExecStart="/opt/my tools/python" -P -m' in render()


def test_the_agent_of_macos_is_a_property_list(house: Home) -> None:
    list(install_service(house, now=False, platform="darwin"))
    agent = plistlib.loads(service_file("darwin").read_bytes())
    assert agent["ProgramArguments"][-3:] == ["hub", "start", "--foreground"]
    assert agent["EnvironmentVariables"]["ATLASBRIDGE_HOME"] == str(house.root)
    assert agent["KeepAlive"] == {"SuccessfulExit": False}


def test_removing_what_is_not_there_says_so(house: Home) -> None:
    assert list(uninstall_service("linux")) == ["the hub is no service here"]


def invoke(command: object, *words: str) -> Result:
    return CliRunner().invoke(command, list(words), standalone_mode=False)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform != "linux", reason="a unit of systemd")
def test_uninstall_takes_away_what_was_made_and_says_what_it_left(house: Home) -> None:
    assert invoke(hub.command, "install", "--later").exit_code == 0
    assert invoke(shim_command, "install", "sometool").exit_code == 0
    house.root.joinpath("audit.log").write_text("")
    house.root.joinpath("web.json").write_text("{}")
    house.root.joinpath("notes of mine").write_text("")
    house.root.joinpath("run").mkdir()
    dry = invoke(uninstall_command, "--dry-run").output
    assert f"would be removed: {service_file()}" in dry
    assert service_file().exists() and (house.root / "shims" / "sometool").exists()
    done = invoke(uninstall_command).output
    assert not service_file().exists()
    assert not (house.root / "shims" / "sometool").exists()
    assert not (house.root / "web.json").exists()
    assert (house.root / "audit.log").exists()
    left = {line.removeprefix("left: ") for line in done.splitlines() if line.startswith("left: /")}
    assert left == {str(path) for path in house.root.iterdir()}  # all of it is told
    assert {path.name for path in house.root.iterdir()} == {"audit.log", "notes of mine"}
    assert "left: the program itself" in done
    assert f"removed: {house.root}" in invoke(uninstall_command, "--records").output
    assert not house.root.exists()


def test_the_unit_is_accepted_by_systemd_where_it_is_there(house: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    import shutil

    if shutil.which("systemd-analyze") is None:
        assert "[Install]" in render_unit(house)
        return
    path = house.root.parent / "atlasbridge-hub.service"
    path.write_text(render_unit(house))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(path)], capture_output=True, text=True)
    assert "atlasbridge-hub.service:" not in done.stderr, done.stderr
