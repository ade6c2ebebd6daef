"""What the doctor finds, and what it mends."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from atlasbridge.cli import doctor_checks
from atlasbridge.cli.doctor_checks import Check, check_home, check_service, check_sessions, check_socket, run_checks
from atlasbridge.core.home import Home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path / "ab"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    found = Home(tmp_path / "ab")
    found.prepare()
    return found


def mended(check: Check) -> None:
    assert check.fix is not None
    check.fix()


def test_a_home_that_cannot_be_made_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = check_home(Home(tmp_path / "file" / "ab"))
    assert (check.state, bool(check.hint)) == ("fault", True)
    assert "cannot be made" in check.detail


def test_a_home_that_is_a_file_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "ab").write_text("")
    assert "is no folder" in check_home(Home(tmp_path / "ab")).detail


def test_a_home_that_cannot_be_written_is_a_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    check = check_home(home)
    assert check.state == "fault"
    assert "Read-only file system" in check.detail


def test_a_disk_that_is_nearly_full_is_a_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "MB free" in doctor_checks.check_disk(home).detail
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    check = doctor_checks.check_disk(home)
    assert (check.state, check.detail) == ("fault", "0 MB free")
    assert "free some space" in check.hint


def test_sockets_of_killed_sessions_are_found_and_mended(home: Home) -> None:
    stale = home.sessions / "01234567.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(stale))
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(home.sessions / "89abcdef.sock"))
        live.listen()
        check = check_sessions(home)
        assert (check.state, check.detail.split()[0]) == ("warning", "1")
        mended(check)
        assert not stale.exists()
        assert (home.sessions / "89abcdef.sock").exists()
        assert check_sessions(home).state == "ok"


def test_a_socket_of_a_killed_hub_is_found_and_mended(home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
    check = check_socket(home)
    assert check.state == "warning"
    mended(check)
    assert check_socket(home).state == "ok"


def test_a_service_of_another_python_is_a_warning(home: Home) -> None:
    from atlasbridge.cli.service import service_file

    path = service_file()
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/opt/old/python -P -m atlasbridge hub start --foreground\n")
    check = check_service(home)
    assert (check.state, check.hint) == ("warning", "atlasbridge hub install")


def test_every_warning_and_fault_names_a_remedy(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    home.config.write_text("nonsense = [")
    home.config.chmod(0o644)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(home.socket))
    checks = list(run_checks(home))
    bad = [check for check in checks if check.state != "ok"]
    assert {"configuration", "configuration file", "socket"} <= {check.name for check in bad}
    assert [check.name for check in bad if not check.hint] == []
