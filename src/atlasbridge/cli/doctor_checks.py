"""What `doctor` looks at.  Each check says how it is, and what to do when it is not well; some can be put right."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

from atlasbridge.bootstrap import load_configuration
from atlasbridge.cli.records import verify_audit_offline, versions
from atlasbridge.core.daemon.lock import lock_holder
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.daemon.starter import ensure_hub
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import MAX_SOCKET_PATH, Home
from atlasbridge.core.kin import look_at, trace_line
from atlasbridge.core.store.fault import sqlite_warning
from atlasbridge.core.values import frozen

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)
LEAST_FREE_BYTES = 200 * 1024 * 1024


@frozen
class Check:
    """`state` is "ok", "warning" or "fault"; `fix` puts it right where that is safe."""

    name: str
    state: str
    detail: str
    hint: str = ""
    fix: Callable[[], object] | None = None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "state": self.state, "detail": self.detail, "hint": self.hint}


def run_checks(home: Home) -> Iterator[Check]:
    yield check_python()
    yield check_sqlite()
    yield check_home(home)
    yield check_config(home)
    yield check_config_mode(home)
    yield check_socket(home)
    yield from check_hub(home)
    yield check_audit(home)
    yield check_terminal()
    yield check_probe()
    yield check_ancestry()
    yield check_separation(home)
    yield check_disk(home)


def check_python() -> Check:
    found = ".".join(str(number) for number in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("python", "ok", found)
    return Check("python", "fault", found, "install Python 3.11 or newer")


def check_sqlite() -> Check:
    found = versions()["sqlite"]
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST_SQLITE:
        return Check("sqlite", "fault", found, "use a Python built with SQLite 3.35 or newer")
    warning = sqlite_warning()
    return Check("sqlite", "warning", found, warning) if warning else Check("sqlite", "ok", found)


def check_home(home: Home) -> Check:
    if not home.root.exists():
        return Check("home", "ok", f"{home.root} (made at the first use)")
    status = home.root.stat()
    if status.st_uid != os.getuid():
        return Check("home", "fault", f"{home.root} belongs to another user", "set ATLASBRIDGE_HOME to your own folder")
    if status.st_mode & 0o077:
        return Check("home", "fault", f"others may enter {home.root}", "chmod 700", lambda: home.root.chmod(0o700))
    return Check("home", "ok", str(home.root))


def check_config(home: Home) -> Check:
    try:
        found = load_configuration(home, os.environ)
    except AtlasBridgeError as error:
        return Check("configuration", "fault", str(error), error.hint)
    return Check("configuration", "ok", f"channels: {', '.join(['local', *found.channels])}")


def check_config_mode(home: Home) -> Check:
    if not home.config.exists():
        return Check("configuration file", "ok", "none, all defaults")
    if home.config.stat().st_mode & 0o077:
        return Check("configuration file", "fault", "others may read it", "chmod 600", lambda: home.config.chmod(0o600))
    return Check("configuration file", "ok", str(home.config))


def check_socket(home: Home) -> Check:
    if len(os.fsencode(home.sessions / "01234567.sock")) > MAX_SOCKET_PATH:
        return Check("socket", "fault", "the home folder's path is too long", "set ATLASBRIDGE_HOME to a shorter path")
    if home.socket.exists() and lock_holder(home.lock) is None:
        return Check(
            "socket",
            "warning",
            "left behind by a hub that was killed; the next hub replaces it",
            "",
            lambda: home.socket.unlink(missing_ok=True),
        )
    return Check("socket", "ok", str(home.socket))


def check_hub(home: Home) -> Iterator[Check]:
    if lock_holder(home.lock) is None and home.hub is None:
        yield Check("hub", "ok", "not running (it starts with the first session)", "", lambda: ensure_hub(home))
        return
    try:
        with HubClient(home, timeout_s=5.0) as hub:
            status = hub.ask("status")
    except AtlasBridgeError as error:
        yield Check("hub", "fault", str(error), "restart it with: atlasbridge hub restart")
        return
    yield Check("hub", "ok", f"process {status['pid']}, {status['sessions']} sessions")
    if status.get("alarm"):
        yield Check("audit file", "fault", status["alarm"], "free disk space; the hub tries again by itself")
    for channel in status["channels"]:
        state = "ok" if channel["state"] == "ok" else "fault"
        yield Check(f"channel {channel['name']}", state, channel.get("fault") or channel["state"])


def check_audit(home: Home) -> Check:
    if not home.database.exists():
        return Check("audit log", "ok", "nothing recorded yet")
    try:
        verdict = verify_audit_offline(home)
    except AtlasBridgeError as error:
        return Check("audit log", "fault", str(error), error.hint)
    if verdict["ok"]:
        return Check("audit log", "ok", f"{verdict['count']} entries, whole")
    detail = f"entry {verdict['bad_entry']} of {verdict['where']} {verdict['problem']}"
    return Check("audit log", "fault", detail, "keep a copy of the home folder, then look: atlasbridge audit show")


def check_terminal() -> Check:
    term = os.environ.get("TERM", "")
    if not sys.stdin.isatty():
        return Check("terminal", "ok", "none here; sessions run without raw mode")
    if term in ("", "dumb"):
        return Check("terminal", "warning", f"TERM is {term or 'not set'}", "export TERM=xterm-256color")
    if "utf" not in (sys.stdout.encoding or "").lower():
        return Check("terminal", "warning", f"{term}, encoding {sys.stdout.encoding}", "use a UTF-8 locale")
    return Check("terminal", "ok", term)


def check_probe() -> Check:
    if sys.platform == "linux" and os.access("/proc/self/syscall", os.R_OK):
        return Check("waiting probe", "ok", "the kernel can be asked who waits for the terminal")
    if sys.platform == "linux":
        return Check("waiting probe", "warning", "/proc does not tell; silence is used instead", "")
    return Check("waiting probe", "ok", "what this system offers")


def check_ancestry() -> Check:
    """Without it nobody may decide at the hub's socket: a person could not be told from a session's tool."""
    line = trace_line(os.getpid(), look_at)
    if not line:
        return Check("ancestry", "fault", "the system does not tell where a command comes from", "mount /proc")
    if line[-1].pid > 1 and line[-1].started == 0 and sys.platform == "linux":
        return Check("ancestry", "warning", "processes of other users are hidden (hidepid)", "see SECURITY.md")
    return Check("ancestry", "ok", "a command of a session's tool is told from a person's")


def check_separation(home: Home) -> Check:
    name = "separation"
    if home.hub is not None and home.hub.exists() and home.hub.stat().st_uid != os.getuid():
        return Check(name, "ok", "the hub is another user's: sessions of yours can ask it, and decide nothing")
    return Check(
        name, "ok", "hub and tools are one user's; to keep its store from them: docs/howto/hub-as-another-user.md"
    )


def check_disk(home: Home) -> Check:
    place = home.root
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    detail = f"{free // (1024 * 1024)} MB free"
    if free < LEAST_FREE_BYTES:
        return Check("disk", "fault", detail, "free some space: nothing is typed that cannot be recorded")
    return Check("disk", "ok", detail)
