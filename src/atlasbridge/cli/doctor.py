"""`atlasbridge doctor`: checks this machine and prints what to do."""

from __future__ import annotations

import errno
import io
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from atlasbridge import __version__
from atlasbridge.bootstrap import describe_adapters, load_configuration, updated_dialects
from atlasbridge.cli.columns import fold, terminal_cols
from atlasbridge.cli.hub import describe_unasked
from atlasbridge.cli.install import default_folder, real_tool, service_file, shims
from atlasbridge.cli.printing import echo, home, json_option, print_json
from atlasbridge.config.session import hide_secrets, is_secret_name
from atlasbridge.core.daemon.request import HINT, HubClient, compare_version, lock_holder
from atlasbridge.core.distribution import COMMAND, NAME, others
from atlasbridge.core.errors import AtlasBridgeError, DialectError
from atlasbridge.core.home import MAX_SOCKET_PATH, Home
from atlasbridge.core.hub_connection import (
    SUFFIX,
    Stranger,
    connect_loopback,
    has_unix_sockets,
    left_address,
    read_pass,
)
from atlasbridge.core.peer import is_inside, look_at, own_uid, trace_ancestry
from atlasbridge.core.prompt.redact import redact_outgoing
from atlasbridge.core.schema import write as to_json
from atlasbridge.core.store.database import engine_version, read_schema, sqlite_warning
from atlasbridge.core.store.verify import verify_home
from atlasbridge.core.system_setup import read_setup
from atlasbridge.core.values import frozen

# The checks of `doctor`. Each reports a state and what to do about a problem; some can fix it.

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35)
LOOKS, LOOK_AGAIN_S = 10, 0.3
LEAST_FREE_BYTES = 200 * 1024 * 1024


@frozen
class Check:
    """`state` is "ok", "warning" or "fault"; `fix` repairs the problem if that is safe."""

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
    yield from check_name()
    yield check_home(home)
    if _can_be_entered(home.root):  # checked again, because it could have been fixed in the meantime
        yield from check_inside(home)
    else:
        yield Check("everything else", "warning", "not checked: the home folder cannot be read", "see above")
    yield check_terminal()
    yield check_probe()
    yield check_ancestry()
    yield check_disk(home)
    yield check_service(home)


def check_inside(home: Home) -> Iterator[Check]:
    """Checks that need read access to the home folder."""
    yield check_config(home)
    yield check_config_mode(home)
    yield check_socket(home)
    yield check_sessions(home)
    yield from check_hub(home)
    yield check_audit(home)
    yield check_separation(home)
    yield check_tools()
    yield from check_adapters(home)
    yield from check_running_adapters(home)
    yield check_launchers(home)


def _can_be_entered(root: Path) -> bool:
    return not os.path.lexists(root) or (root.is_dir() and os.access(root, os.R_OK | os.X_OK))


def check_python() -> Check:
    found = ".".join(str(number) for number in sys.version_info[:3])
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("python", "ok", found)
    return Check("python", "fault", found, "install Python 3.11 or newer")


def versions() -> dict[str, str]:
    return {
        "atlasbridge": __version__,
        "python": platform.python_version(),
        "sqlite": ".".join(str(number) for number in engine_version()),
        "platform": platform.platform(),
    }


def check_sqlite() -> Check:
    found = versions()["sqlite"]
    if engine_version() < OLDEST_SQLITE:
        return Check("sqlite", "fault", found, "use a Python built with SQLite 3.35 or newer")
    # no action is needed, because only the hub writes
    return Check("sqlite", "ok", f"{found}; no other program should write its database" if sqlite_warning() else found)


def check_name() -> Iterator[Check]:
    """An unrelated package in the registry has the same name, command and import name."""
    found = others()
    for other in found:
        yield Check("name", "fault", other, "remove it, then install this one again (docs/install.md)")
    if not found:
        yield Check("name", "ok", f"{NAME} {versions()['atlasbridge']}, {shutil.which(COMMAND) or sys.argv[0]}")


def check_home(home: Home) -> Check:
    if not os.path.lexists(home.root):
        return _check_creatable(home.root)
    if not home.root.is_dir():
        return Check("home", "fault", f"{home.root} is no folder", "move it away, or set ATLASBRIDGE_HOME")
    status = home.root.stat()
    if status.st_uid != own_uid():
        return Check("home", "fault", f"{home.root} belongs to another user", "set ATLASBRIDGE_HOME to your own folder")
    if os.name != "nt" and status.st_mode & 0o077:
        return Check("home", "fault", f"other users can enter {home.root}", "chmod 700", lambda: home.root.chmod(0o700))
    if error := _fault_of_writing(home.root):
        return _unwritable(home.root, error)
    return _check_files(home.root)


def _unwritable(root: Path, error: OSError) -> Check:
    """Only a wrong mode can be fixed here; a full or read-only disk needs a person."""
    detail = f"{root} cannot be written: {error.strerror}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return Check("home", "fault", detail, f"chmod u+rwx {root}", lambda: root.chmod(0o700))
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return Check("home", "fault", detail, "free some space there" if full else "set ATLASBRIDGE_HOME to another disk")


def _check_files(root: Path) -> Check:
    """Find files that this user cannot read and write, for example of a hub that was once started as root."""
    # check the permissions of the link itself, if the system supports that
    links = os.access not in os.supports_follow_symlinks
    shut = [path for path in sorted(root.iterdir()) if not os.access(path, os.R_OK | os.W_OK, follow_symlinks=links)]
    if not shut:
        return Check("home", "ok", str(root))
    detail = f"not yours to write: {', '.join(path.name for path in shut)}"
    if any(path.lstat().st_uid != own_uid() for path in shut):
        return Check("home", "fault", detail, f"sudo chown -R {own_uid()} {root}")
    return Check("home", "fault", detail, "atlasbridge doctor --fix", lambda: _open_all(shut))


def _open_all(paths: list[Path]) -> None:
    for path in paths:
        path.chmod(0o700 if path.is_dir() else 0o600)


def _check_creatable(root: Path) -> Check:
    place = root.parent
    while not place.exists():
        place = place.parent
    error = _fault_of_writing(place)
    if error is None:
        return Check("home", "ok", f"{root} (created at the first use)")
    why = f"{place} is not writable ({error.strerror})"
    return Check("home", "fault", f"{root} cannot be created: {why}", "set ATLASBRIDGE_HOME to your own")


def _fault_of_writing(root: Path) -> OSError | None:
    """Try to write, because a read-only or full disk shows only then."""
    try:
        with tempfile.TemporaryFile(dir=root) as file:
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error
    return None


def check_tools() -> Check:
    """Find shims whose tool no longer exists."""
    lost = [path.name for path in shims(default_folder()) if real_tool(path.name, default_folder()) is None]
    if lost:
        return Check("shims", "warning", f"not on PATH: {', '.join(lost)}", f"atlasbridge shim remove {' '.join(lost)}")
    return Check("shims", "ok", f"{len(list(shims(default_folder())))} installed")


def check_running_adapters(home: Home) -> Iterator[Check]:
    """For each running session: the status of its external adapter, and its errors."""
    try:
        with HubClient(home) as hub:
            sessions = hub.ask("sessions")["sessions"]
    except AtlasBridgeError:
        return  # `check_hub` reports it
    for session in sessions:
        told = session.get("adapter") or {}
        name = f"adapter of {session['tool']} ({session['session_id'][:8]})"
        if told.get("fault"):
            yield Check(name, "fault", str(told["fault"]), "fix the adapter; the session continues without it")
        elif told.get("context"):
            context = (f"{key}={value}" for key, value in told["context"].items() if key != "session_id")
            yield Check(name, "ok", ", ".join(context))


def check_adapters(home: Home) -> Iterator[Check]:
    """Report each broken adapter separately, and the others in one line with the installed tools."""
    found = describe_adapters(home)
    broken = [item for item in found if item["health"] != "ok"]
    for item in broken:
        yield Check(f"adapter {item['name']}", "fault", item["health"], f"fix or remove it: {item['from']}")
    here = [item["name"] for item in found if item["installed"] and item not in broken]
    tools = f"on PATH: {', '.join(here)}" if here else "none of their tools is on PATH (any program can be run)"
    yield Check("adapters", "ok", f"{len(found) - len(broken)} work; {tools}")
    yield from check_updates(home)


def check_updates(home: Home) -> Iterator[Check]:
    """Rules that came apart from a release, and whose key has signed them."""
    try:
        state = updated_dialects(home)
    except DialectError as error:
        yield Check("updated rules", "fault", str(error), "remove the file; the packaged rules are used")
        return
    if state["dialects"]:
        named = ", ".join(f"{name} (serial {known['serial']})" for name, known in sorted(state["dialects"].items()))
        keys = {known["key"][:8] for known in state["dialects"].values()}
        yield Check("updated rules", "ok", f"{named}; signed by {', '.join(sorted(keys))}; from {state['source']}")


def check_launchers(home: Home) -> Check:
    """Check that the launchers' commands exist: a person who starts a session remotely cannot see the error."""
    try:
        launchers = load_configuration(home, os.environ).general.launchers
    except AtlasBridgeError:
        return Check("launchers", "ok", "not checked: see the configuration")
    lost = {item.name: item.command[0] for item in launchers if item.command and not shutil.which(item.command[0])}
    if not lost:
        return Check("launchers", "ok", f"{len(launchers)} configured")
    detail = f"not on PATH: {', '.join(f'{command} (of {name})' for name, command in lost.items())}"
    return Check("launchers", "warning", detail, "install the tool, or name it with its whole path in [[launchers]]")


def check_sessions(home: Home) -> Check:
    """Find sockets and port files of sessions whose host was killed."""
    sockets = [*home.sessions.glob("*.sock"), *home.sessions.glob(f"*{SUFFIX}")] if home.sessions.is_dir() else []
    stale = [path for path in sockets if not _listens(path)]
    if not stale:
        return Check("session sockets", "ok", "none left behind")
    detail = f"{len(stale)} left behind by sessions that were killed"
    return Check("session sockets", "warning", detail, "atlasbridge doctor --fix", lambda: _unlink_all(stale))


def _listens(path: Path) -> bool:
    issued = read_pass(path) if path.suffix == SUFFIX else None
    if issued is None and (path.suffix == SUFFIX or not has_unix_sockets()):
        return False
    try:
        if issued is not None:
            connect_loopback(issued, 2.0).close()
            return True
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(2.0)
            link.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError, Stranger):
        return False
    except OSError:
        return True  # uncertain, so leave it alone
    return True


def _unlink_all(paths: list[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def check_service(home: Home) -> Check:
    path = service_file()
    if not path.exists():
        return Check("service", "ok", "none; the hub starts on demand (to start it at login: atlasbridge hub install)")
    if sys.executable not in path.read_text("utf-8", "replace"):
        return Check("service", "warning", f"{path} starts the hub of another Python", "atlasbridge hub install")
    return Check("service", "ok", str(path))


def check_config(home: Home) -> Check:
    try:
        found = load_configuration(home, os.environ)
    except AtlasBridgeError as error:
        return Check("configuration", "fault", str(error), error.hint)
    return Check("configuration", "ok", f"channels: {', '.join(['local', *found.channels])}")


def check_config_mode(home: Home) -> Check:
    if not home.config.exists():
        return Check("configuration file", "ok", "none, all defaults")
    if os.name != "nt" and home.config.stat().st_mode & 0o077:
        return Check(
            "configuration file", "fault", "other users can read it", "chmod 600", lambda: home.config.chmod(0o600)
        )
    return Check("configuration file", "ok", str(home.config))


def check_socket(home: Home) -> Check:
    if has_unix_sockets() and len(os.fsencode(home.sessions / "01234567.sock")) > MAX_SOCKET_PATH:
        return Check("socket", "fault", "the home folder's path is too long", "set ATLASBRIDGE_HOME to a shorter path")
    address = left_address(home.socket)
    if address is not None and lock_holder(home.lock) is None:
        return Check(
            "socket",
            "warning",
            "left behind by a hub that was killed; the next hub replaces it",
            "atlasbridge doctor --fix",
            lambda: address.unlink(missing_ok=True),
        )
    return Check("socket", "ok", str(address or home.socket))


def check_hub(home: Home) -> Iterator[Check]:
    if lock_holder(home.lock) is None and home.hub is None:
        yield Check("hub", "ok", "not running (it starts with the first session)")
        return
    try:
        with HubClient(home) as hub:
            status, health = _settled(hub)
    except AtlasBridgeError as error:
        yield Check("hub", "fault", str(error), "restart it with: atlasbridge hub restart")
        return
    said = compare_version(status)
    count = status["sessions"]
    detail = f"process {status['pid']}, {count} {'session' if count == 1 else 'sessions'}"
    yield Check("hub", "warning", said, HINT) if said else Check("hub", "ok", detail)
    if status.get("alarm"):
        yield Check("audit file", "fault", status["alarm"], "free disk space; the hub retries automatically")
    for entry in status.get("unasked", ()):
        told = f"atlasbridge audit show --event TYPED_UNASKED; atlasbridge kill {str(entry.get('session_id', ''))[:8]}"
        yield Check("typed without an answer", "fault", describe_unasked(entry), told)
    for session_id, state in health.items():
        if state != "ok":
            yield Check(f"session {session_id[:8]}", "fault", state, "look at its processes: atlasbridge ps --json")
    for channel in status["channels"]:
        state = "ok" if channel["state"] == "ok" else "fault"
        remedy = "" if state == "ok" else "see: atlasbridge logs --hub, and atlasbridge config check"
        yield Check(f"channel {channel['name']}", state, channel.get("fault") or channel["state"], remedy)


def _settled(hub: HubClient) -> tuple[dict[str, Any], dict[str, str]]:
    """The hub's status, and the state of each session. A session that ends just now, a host that looks for the next hub
    and a channel that starts are no faults: only a state that lasts is one."""
    for _ in range(LOOKS):
        status = hub.ask("status")
        health: dict[str, str] = hub.request("health").get("sessions", {})
        is_starting = any(channel["state"] == "starting" for channel in status["channels"])
        if not is_starting and all(state == "ok" for state in health.values()):
            break
        time.sleep(LOOK_AGAIN_S)
    return status, health


def check_audit(home: Home) -> Check:
    if not home.database.exists():
        return Check("audit log", "ok", "nothing recorded yet")
    try:
        verdict = to_json(verify_home(home.root))
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
    """Look at a child, as a session host does: this command hides its own memory, and so its own files in /proc."""
    name = "waiting probe"
    if sys.platform != "linux":
        return Check(name, "ok", "what this system offers")
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin and child.stdout
        child.stdin.write(b".")
        child.stdout.read(1)  # now it runs: the kernel also hides a program that is only starting
        try:
            Path(f"/proc/{child.pid}/syscall").read_text()
        except OSError as error:
            detail = f"the kernel does not say which process reads the terminal ({error.strerror}); silence decides"
            return Check(
                name, "warning", detail, "mount /proc, and allow users to read /proc/PID/syscall of their processes"
            )
    return Check(name, "ok", "the kernel says which process reads the terminal")


def check_ancestry() -> Check:
    """Without process ancestry the hub refuses decisions at its socket, because it cannot tell a person from a
    session's tool."""
    ancestry = trace_ancestry(os.getpid(), look_at)
    if not ancestry:
        hint = "mount /proc" if sys.platform == "linux" else "answer on the page or in a chat"
        return Check("ancestry", "fault", "the system does not show which process started a command", hint)
    if ancestry[-1].pid > 1 and ancestry[-1].started == 0 and sys.platform == "linux":
        return Check("ancestry", "warning", "processes of other users are hidden (hidepid)", "see SECURITY.md")
    if is_inside(ancestry):
        hint = "use a terminal of your own; a limit on file locks (ulimit -Hx) counts as a session's mark"
        return Check(
            "ancestry", "warning", "this terminal was started inside a session, so its commands cannot answer", hint
        )
    return Check("ancestry", "ok", "the hub can tell your commands from those of a session's tool")


def setup_user() -> str:
    setup = read_setup()
    return setup.user if setup else "?"


def check_separation(home: Home) -> Check:
    name = "separation"
    if home.system:
        return Check(name, "ok", f"system setup: the hub runs as {setup_user()}; your tools cannot read its files")
    if home.hub is not None and home.hub.exists() and home.hub.stat().st_uid != own_uid():
        return Check(name, "ok", "another user runs the hub: your sessions can ask it, and cannot answer")
    return Check(
        name, "ok", "the hub runs as you, like your tools; to separate them: sudo atlasbridge hub install --system"
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


NAME_COLS = 20
_MARKS = {"ok": "✓", "warning": "!", "fault": "✗"}


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Fix what can be fixed safely.")
@json_option
def command(fix: bool, as_json: bool) -> int:
    """Check this machine and say what to do.  Exit status 1 if something is wrong."""
    if fix:
        for check in run_checks(home()):
            if check.fix is not None:
                click.echo(apply_fix(check), err=as_json)
    checks = list(run_checks(home()))
    if as_json:
        print_json([check.to_json() for check in checks])
    else:
        click.echo("\n".join(line for check in checks for line in render_check(check, terminal_cols())))
    return 1 if any(check.state == "fault" for check in checks) else 0


def render_check(check: Check, cols: int) -> list[str]:
    """Wrapped between words on a terminal; 0: whole lines, for a pipe."""
    room = max(cols - NAME_COLS - 4, 20) if cols else 0
    rows = fold(check.detail, room) if room else [check.detail]
    rows += [f"→ {check.hint}"] if check.state != "ok" and check.hint else []
    return [
        f"{_MARKS[check.state]} {check.name:{NAME_COLS}} {rows[0]}",
        *(f"{'':{NAME_COLS + 3}}{row}" for row in rows[1:]),
    ]


def apply_fix(check: Check) -> str:
    """A failed fix does not stop the others."""
    assert check.fix is not None
    try:
        check.fix()
    except (OSError, AtlasBridgeError) as error:
        return f"cannot be fixed: {check.name} ({error})"
    return f"fixed: {check.name} ({check.detail})"


# `atlasbridge debug bundle`: collects the files for a bug report, and verifies that no known secret is in them.


LOG_TAIL_BYTES = 1_000_000
SHORTEST_SECRET = 4  # shorter values occur everywhere


@click.group("debug")
def debug_command() -> None:
    """Collect information for a bug report."""


@debug_command.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("atlasbridge-debug.tar.gz"))
def bundle(output: Path) -> None:
    """Write logs, schema and the configuration without secrets into one file.  It contains no prompt and no answer."""
    secrets = known_secrets(home(), dict(os.environ))
    members = {name: redact_outgoing(text, tuple(secrets)) for name, text in collect(home()).items()}
    refuse_leaks(members, secrets)
    write(output, members)
    echo(f"written to {output}: {', '.join(sorted(members))}")


def collect(place: Home) -> dict[str, str]:
    members = {
        "versions.json": _json(versions()),
        "doctor.json": _json([check.to_json() for check in run_checks(place)]),
        "config.json": _json(_config(place)),
        "schema.sql": read_schema(place.database) if place.database.exists() else "",
        "files.json": _json(_files(place)),
    }
    for path in sorted(place.root.glob("hub.log*")) + sorted(place.sessions.glob("*.log")):
        members[f"logs/{path.name}"] = _tail(path)
    return members


def known_secrets(place: Home, environ: dict[str, str]) -> set[str]:
    """All values whose names look like secrets, from the environment and from the effective configuration."""
    found = {value for name, value in environ.items() if is_secret_name(name)}
    try:
        found |= _secret_values({"channels": dict(load_configuration(place, environ).channels)}, "")
    except AtlasBridgeError:
        pass  # an invalid configuration is reported by its error only, never by its content
    return {value for value in found if len(value) >= SHORTEST_SECRET}


def _secret_values(data: Any, name: str) -> set[str]:
    if isinstance(data, dict):
        return set().union(*(_secret_values(value, str(key)) for key, value in data.items()), set())
    if isinstance(data, list | tuple):
        return set().union(*(_secret_values(item, name) for item in data), set())
    return {str(data)} if data and is_secret_name(name) else set()


def refuse_leaks(members: dict[str, str], secrets: set[str]) -> None:
    """Raise an error if a secret is found; then nothing is written."""
    for name, text in members.items():
        if any(secret in text for secret in secrets):
            raise AtlasBridgeError(f"a secret would have been written into {name}", "please report this as a bug")


def write(output: Path, members: dict[str, str]) -> None:
    output.touch(mode=0o600)
    with tarfile.open(output, "w:gz") as archive:
        for name, text in sorted(members.items()):
            data = text.encode()
            info = tarfile.TarInfo(f"atlasbridge-debug/{name}")
            info.size, info.mode = len(data), 0o600
            archive.addfile(info, io.BytesIO(data))


def _config(place: Home) -> Any:
    try:
        found = load_configuration(place, os.environ)
    except AtlasBridgeError as error:
        return {"error": str(error)}
    general = found.general.model_dump(mode="json")
    general["launchers"] = [{**launcher, "command": _program(launcher["command"])} for launcher in general["launchers"]]
    return hide_secrets({**general, "channels": dict(found.channels)})


def _program(words: list[str]) -> list[str]:
    """Keep only the program, because arguments can contain anything."""
    return [Path(words[0]).name, *([f"({len(words) - 1} more words)"] if words[1:] else [])]


def _files(place: Home) -> list[dict[str, Any]]:
    return [
        {"name": str(path.relative_to(place.root)), "mode": oct(path.stat().st_mode), "bytes": path.stat().st_size}
        for path in sorted(place.root.rglob("*"))
        if not path.is_symlink()
    ]


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LOG_TAIL_BYTES))
        return file.read().decode(errors="replace")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
