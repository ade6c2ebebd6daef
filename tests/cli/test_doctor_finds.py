"""What the doctor finds, and what it mends."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from tests.support.terminal import ATLASBRIDGE

from atlasbridge import __version__
from atlasbridge.cli import doctor
from atlasbridge.cli.doctor import Check, apply_fix, check_home, check_service, check_sessions, check_socket, run_checks
from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.home import Home
from atlasbridge.core.process import hide_memory
from atlasbridge.core.wire import PROTOCOL


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
    assert "cannot be created" in check.detail


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder here into which not even root may write")
def test_whether_a_home_can_be_made_is_tried_and_not_guessed() -> None:
    check = check_home(Home(Path("/proc/nothing-of-ours/ab")))
    assert check.state == "fault" and "cannot be created" in check.detail


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


@pytest.mark.parametrize(
    ("number", "remedy"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "another disk"), (errno.EACCES, "chmod")]
)
def test_the_remedy_fits_why_a_home_cannot_be_written(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    check = check_home(home)
    assert remedy in check.hint
    assert (check.fix is not None) == (number == errno.EACCES)


def as_an_ordinary_user(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    """Root may write everywhere: what it may beyond its own is taken from it."""
    less = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"] if os.getuid() == 0 else []
    environ = {**os.environ, "ATLASBRIDGE_HOME": str(home.root)}
    return subprocess.run(
        [*less, *ATLASBRIDGE, *words], env=environ, capture_output=True, text=True, cwd=home.root.parent
    )


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o500])
def test_a_home_that_is_shut_is_told_and_opened(home: Home, mode: int) -> None:
    home.root.chmod(mode)
    try:
        told = as_an_ordinary_user(home, "doctor")
        assert told.returncode == 1, told.stderr
        assert "cannot be written: Permission denied" in told.stdout
        mended = as_an_ordinary_user(home, "doctor", "--fix")
        assert "fixed: home" in mended.stdout, mended.stderr
    finally:
        home.root.chmod(0o700)
        as_an_ordinary_user(home, "hub", "stop")


def test_what_one_cannot_write_in_the_home_is_told_by_name(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    log = home.root / "hub.log"
    log.write_text("")
    log.chmod(0o000)
    really = os.access
    monkeypatch.setattr(os, "access", lambda path, mode, **rest: Path(path) != log and really(path, mode, **rest))
    check = check_home(home)
    assert (check.state, check.detail) == ("fault", "not yours to write: hub.log")
    mended(check)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_launcher_whose_tool_is_missing_is_a_warning(home: Home) -> None:
    home.config.write_text('[[launchers]]\nname = "x"\ncommand = ["no-such-tool"]\n')
    home.config.chmod(0o600)
    check = doctor.check_launchers(home)
    assert (check.state, check.detail) == ("warning", "not on PATH: no-such-tool (of x)")


def test_a_fix_that_fails_keeps_no_other_from_its_own(home: Home) -> None:
    def fail() -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    assert apply_fix(Check("home", "fault", "x", "", fail)).startswith("cannot be fixed: home")


def test_a_disk_that_is_nearly_full_is_a_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "MB free" in doctor.check_disk(home).detail
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(100, 99, 1))
    check = doctor.check_disk(home)
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
    from atlasbridge.cli.install import service_file

    path = service_file()
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\nExecStart=/opt/old/python -P -m atlasbridge hub start --foreground\n")
    check = check_service(home)
    assert (check.state, check.hint) == ("warning", "atlasbridge hub install")


def test_the_waiting_probe_is_found_by_an_ordinary_user() -> None:
    """The command hides its own memory, which shuts its own files in /proc for everybody but root."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        hide_memory()
        os.write(writer, doctor.check_probe().state.encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as said:
        assert said.read() == b"ok"
    os.waitpid(pid, 0)


def test_lines_are_wrapped_between_words_on_a_terminal_and_whole_for_a_pipe() -> None:
    check = doctor.Check("sqlite", "warning", "a detail that is much longer than the window is wide", "do this")
    assert doctor.render_check(check, 50) == [
        "! sqlite               a detail that is much ",
        "                       longer than the window is ",
        "                       wide",
        "                       → do this",
    ]
    assert doctor.render_check(check, 0)[0].endswith("the window is wide")


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


def test_what_is_well_is_left_alone(home: Home) -> None:
    mended = as_an_ordinary_user(home, "doctor", "--fix")
    assert "fixed" not in mended.stdout and "fixed" not in mended.stderr
    assert lock_holder(home.lock) is None  # a hub that nobody needs is not started


class HubThatSettles:
    """At the first look a channel starts and a session's host looks for this hub; then all is as it stays."""

    def __init__(self, stays: str) -> None:
        self._stays = stays
        self._looks = 0

    def __enter__(self) -> HubThatSettles:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ask(self, op: str) -> dict[str, Any]:
        self._looks += 1
        state = "starting" if self._looks == 1 else "ok"
        status = {"pid": 1, "protocol": PROTOCOL, "version": __version__, "sessions": 1}
        return {**status, "channels": [{"name": "telegram", "state": state}]}

    def request(self, op: str) -> dict[str, Any]:
        return {"sessions": {"1234567890": self._stays if self._looks > 1 else "its host is not connected to the hub"}}


@pytest.mark.parametrize("stays", ["ok", "its host does not answer"])
def test_only_a_state_that_lasts_is_a_fault(home: Home, monkeypatch: pytest.MonkeyPatch, stays: str) -> None:
    monkeypatch.setattr(doctor, "LOOK_AGAIN_S", 0.0)
    monkeypatch.setattr(doctor, "lock_holder", lambda _: 1)
    monkeypatch.setattr(doctor, "HubClient", lambda _: HubThatSettles(stays))
    bad = [check.detail for check in doctor.check_hub(home) if check.state != "ok"]
    assert bad == [stays] * (stays != "ok")
