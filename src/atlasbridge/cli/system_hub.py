"""Installs and removes the system setup: the hub runs as a separate user.

That user owns the store, the rules, the tokens, the audit log and the folder of the socket. Other users cannot read or
write there, so a tool that runs as the person cannot decide anything with files or signals.
"""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from atlasbridge.cli.install import quoted
from atlasbridge.core.daemon.request import lock_holder, stop_hub
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_python
from atlasbridge.core.system_setup import PLACE, SystemSetup, read_setup

USER = "atlasbridge"
GROUP = "atlasbridge-people"
FOLDER = Path("/var/lib/atlasbridge")
RUN = Path("/run/atlasbridge")
UNIT = Path("/etc/systemd/system/atlasbridge-hub.service")
BOOT = Path("/etc/cron.d/atlasbridge-hub")
MOVED = ("config.toml", "policy.toml")  # files of the person's hub that move with it: channels with their tokens, rules
SESSION_TABLES = ("session", "detection")  # tables that a person's session reads stay with the person
_PATIENCE_S = 30.0


def install_system(people: tuple[str, ...], sudo_only: bool) -> Iterator[str]:
    """Install and yield a line for each step. A second run adds people and repairs deviations."""
    _need_root()
    refuse_writable_code()
    before = read_setup()
    known = [pwd.getpwuid(uid) for uid in (before.members if before else ()) if _is_user(uid)]
    members = list(dict.fromkeys([*(_person(name) for name in people), *known]))
    if not members:
        raise AtlasBridgeError("no user was given", "give the user whose sessions use the hub: --for USER")
    yield from _make_user()
    owner = pwd.getpwnam(USER)
    for person in members:
        _run("usermod", "-aG", GROUP, person.pw_name)
        yield f"{person.pw_name} is in the group {GROUP}"
    _make_folder(FOLDER, owner, 0o700)
    _make_folder(FOLDER / "sessions", owner, 0o700)
    yield f"folder {FOLDER}: only {USER} can read it"
    for person in members:
        yield from _move_settings(person, owner)
    setup = SystemSetup(
        USER, owner.pw_uid, str(FOLDER), str(RUN / "hub.sock"), tuple(member.pw_uid for member in members)
    )
    _write_config(setup, [member.pw_name for member in members], sudo_only, owner)
    Path(PLACE).parent.mkdir(mode=0o755, exist_ok=True)
    _write(Path(PLACE), setup.render(), 0o644)
    yield f"written: {PLACE}"
    yield from _stop_running(setup)
    yield from _start(setup)
    yield "Check it with: atlasbridge doctor"


def uninstall_system(keep: bool) -> Iterator[str]:
    _need_root()
    setup = read_setup()
    if setup is None:
        yield "this machine has no system hub"
        return
    yield from _stop_running(setup)
    for path in (UNIT, BOOT, Path(PLACE)):
        if path.exists():
            path.unlink()
            yield f"removed: {path}"
    if has_systemd():
        _run("systemctl", "daemon-reload")
    shutil.rmtree(Path(PLACE).parent, ignore_errors=True)
    shutil.rmtree(RUN, ignore_errors=True)
    keep = not (yield from _give_back(setup)) or keep
    if keep:
        os.chown(FOLDER, 0, 0)
        yield f"kept for root: {FOLDER}"
    else:
        shutil.rmtree(FOLDER, ignore_errors=True)
        yield f"removed: {FOLDER}"
    for command, name in (("userdel", USER), ("groupdel", GROUP)):
        if _removed(command, name):
            yield f"removed: the {'user' if command == 'userdel' else 'group'} {name}"
    yield "Running sessions continue; new ones use a hub of their own user again."


def _removed(command: str, name: str) -> bool:
    """Retry, because the last process of a user can take a moment to exit."""
    for _ in range(50):
        done = subprocess.run([command, name], capture_output=True, text=True)
        if done.returncode != 8:  # "is currently used by process"
            return done.returncode == 0
        subprocess.run(["sleep", "0.2"], check=True)
    return False


def start_system(setup: SystemSetup) -> Iterator[str]:
    _need_root()
    yield from _start(setup)


def stop_system(setup: SystemSetup) -> Iterator[str]:
    _need_root()
    yield from _stop_running(setup)


def has_systemd() -> bool:
    """Whether systemd manages this machine: a container has only the command."""
    return Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is not None


def refuse_writable_code() -> None:
    """Root must own the code that the hub's user runs; otherwise a tool could change it."""
    places = {Path(sys.executable).resolve(), Path(sys.prefix).resolve(), Path(__file__).resolve().parents[1]}
    for place in sorted(places):
        for part in (place, *place.parents):
            state = part.stat()
            if state.st_uid != 0 or state.st_mode & (0o022 if not state.st_mode & 0o1000 else 0):
                raise AtlasBridgeError(
                    f"{part} can be changed by another user than root, and the hub would run what is there",
                    "install AtlasBridge for the whole machine first: see docs/howto/hub-as-another-user.md",
                )


def _need_root() -> None:
    if not sys.platform.startswith("linux"):
        raise AtlasBridgeError("the system hub works on Linux only")
    if os.geteuid() != 0:
        raise AtlasBridgeError("this needs root", "run it with sudo")


def _person(name: str) -> pwd.struct_passwd:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        raise AtlasBridgeError(f"there is no user {name!r} here") from None
    if found.pw_uid == 0 or found.pw_name == USER:
        raise AtlasBridgeError(f"{name} is not a regular user", "name your own user: --for USER")
    return found


def _is_user(uid: int) -> bool:
    return any(one.pw_uid == uid for one in pwd.getpwall())


def _make_user() -> Iterator[str]:
    if GROUP not in {one.gr_name for one in grp.getgrall()}:
        _run("groupadd", "--system", GROUP)
        yield f"group {GROUP}"
    if USER not in {one.pw_name for one in pwd.getpwall()}:
        shell = shutil.which("nologin") or "/usr/sbin/nologin"
        _run(
            "useradd", "--system", "--user-group", "--home-dir", str(FOLDER), "--no-create-home", "--shell", shell, USER
        )
        yield f"user {USER}"


def _make_folder(path: Path, owner: pwd.struct_passwd, mode: int, gid: int | None = None) -> None:
    path.mkdir(parents=True, exist_ok=True)
    os.chown(path, owner.pw_uid, owner.pw_gid if gid is None else gid)
    path.chmod(mode)


def _home_of(person: pwd.struct_passwd) -> Path:
    return Path(person.pw_dir) / ".atlasbridge"


def _move_settings(person: pwd.struct_passwd, owner: pwd.struct_passwd) -> Iterator[str]:
    """Move the first person's channels and rules to the hub, so that tools can no longer read the tokens."""
    own = _home_of(person)
    for name in MOVED:
        source, target = own / name, FOLDER / name
        text = None if target.exists() else _as_person(person, "cat", "--", str(source))
        if text is None:
            continue
        _write(target, text, 0o600, owner)
        _as_person(person, "rm", "-f", "--", str(source))
        yield f"moved: {source} to {target}"
        if name == "config.toml" and (kept := _session_part(text)):
            _put(source, kept, person)
    _write(FOLDER / "moved-from", person.pw_name + "\n", 0o600, owner)


def _session_part(text: str) -> str:
    from atlasbridge.cli.config import render_toml

    data = tomllib.loads(text)
    kept = {name: data[name] for name in SESSION_TABLES if isinstance(data.get(name), dict)}
    return "\n".join([*render_toml(kept), ""]) if kept else ""


def _write_config(setup: SystemSetup, people: list[str], sudo_only: bool, owner: pwd.struct_passwd) -> None:
    """Change only our own lines under [hub]; everything else in the file belongs to the person."""
    from atlasbridge.cli.config import change_setting

    path = FOLDER / "config.toml"
    text = path.read_text("utf-8") if path.exists() else ""
    for key, value in (("socket", setup.socket), ("users", people), ("members", [] if sudo_only else people)):
        text = change_setting(text, ("hub", key), value)
    _write(path, text, 0o600, owner)


def _write(path: Path, text: str, mode: int, owner: pwd.struct_passwd | None = None) -> None:
    """Never follow a link, and never make the file readable before its mode is set."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
        if owner is not None:
            os.fchown(file.fileno(), owner.pw_uid, owner.pw_gid)
    os.replace(draft, path)


def _as_person(person: pwd.struct_passwd, *words: str, given: str = "") -> str | None:
    """What a command says that has this person's rights; None: it failed.  A tool can put links into its person's
    folder, and root must not follow them."""
    whose: dict[str, Any] = {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": ()}
    try:
        done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=_PATIENCE_S, **whose)
    except (subprocess.TimeoutExpired, UnicodeDecodeError):
        return None  # no file of ours
    return done.stdout if done.returncode == 0 else None


def _put(path: Path, text: str, person: pwd.struct_passwd) -> bool:
    script = 'umask 077; rm -f -- "$1.new" && cat > "$1.new" && mv -T -- "$1.new" "$1"'
    return _as_person(person, "sh", "-c", script, "sh", str(path), given=text) is not None


def _give_back(setup: SystemSetup) -> Generator[str, None, bool]:
    """False: the settings could not be given back, and are kept."""
    marker = FOLDER / "moved-from"
    name = marker.read_text("utf-8").strip() if marker.exists() else ""
    if not name or name not in {one.pw_name for one in pwd.getpwall()}:
        return True
    from atlasbridge.cli.config import change_setting

    person = pwd.getpwnam(name)
    own = _home_of(person)
    if not own.is_dir():
        return True
    for file in MOVED:
        if not (FOLDER / file).exists():
            continue
        text = (FOLDER / file).read_text("utf-8")
        if file == "config.toml":
            for key in ("socket", "users", "members"):
                text = change_setting(text, ("hub", key))
        if not _put(own / file, text, person):
            yield f"not given back: {own / file} cannot be written as {name}"
            return False
        yield f"given back: {own / file}"
    return True


# the service


def render_unit(setup: SystemSetup) -> str:
    words = " ".join(quoted(word) for word in own_python("atlasbridge.core.daemon", "--foreground"))
    return f"""[Unit]
Description=AtlasBridge hub (separate user)
After=network.target

[Service]
User={setup.user}
ExecStart={words}
ExecReload=/bin/kill -HUP $MAINPID
Environment=ATLASBRIDGE_HOME={setup.home}
RuntimeDirectory={RUN.name}
RuntimeDirectoryMode=0751
UMask=0077
Restart=on-failure
RestartSec=2
# To see which process of another user a connection belongs to; nothing else of root's.
AmbientCapabilities=CAP_SYS_PTRACE
CapabilityBoundingSet=CAP_SYS_PTRACE
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths={setup.home}
ProtectHome=read-only
PrivateTmp=yes

[Install]
WantedBy=multi-user.target
"""


# Without systemd, a root shell restarts the hub after a failure, and ends when the hub exits normally.
_LOOP = 'until "$@"; do sleep 2; done'


def plain_start(setup: SystemSetup) -> list[str]:
    """The same without systemd: setpriv changes the user of the process."""
    less = ["--reuid", setup.user, "--regid", setup.user, "--init-groups", "--no-new-privs"]
    only = [
        "--bounding-set",
        "-all,+sys_ptrace",
        "--inh-caps",
        "-all,+sys_ptrace",
        "--ambient-caps",
        "-all,+sys_ptrace",
    ]
    environ = ["env", "-i", "PATH=/usr/bin:/bin", f"HOME={setup.home}", f"ATLASBRIDGE_HOME={setup.home}"]
    lang = [f"{name}={os.environ[name]}" for name in ("LANG", "LC_ALL", "TZ") if name in os.environ]
    daemon = own_python("atlasbridge.core.daemon", "--foreground")
    return ["sh", "-c", _LOOP, "atlasbridge-system-hub", "setpriv", *less, *only, *environ, *lang, *daemon]


def _start(setup: SystemSetup) -> Iterator[str]:
    if has_systemd():
        _write(UNIT, render_unit(setup), 0o644)
        yield f"written: {UNIT}"
        _run("systemctl", "daemon-reload")
        _run("systemctl", "enable", "--now", UNIT.name)
        yield "the hub runs, and starts with the machine (systemd)"
        return
    _make_folder(RUN, pwd.getpwnam(setup.user), 0o751, grp.getgrnam(GROUP).gr_gid)
    if lock_holder(Home(Path(setup.home)).lock) is None:
        _start_plainly(setup)
    yield f"the hub runs (process {lock_holder(Home(Path(setup.home)).lock)}); there is no systemd here"
    if BOOT.parent.is_dir():
        words = " ".join(own_python("atlasbridge", "hub", "start"))
        _write(BOOT, f"@reboot root {words}\n", 0o644)
        yield f"written: {BOOT} (it starts with the machine)"
    else:
        yield "after a restart of the machine start it with: sudo atlasbridge hub start"


def _start_plainly(setup: SystemSetup) -> None:
    log = Path(setup.home) / "start.log"
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as output:
        subprocess.Popen(
            plain_start(setup), stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", start_new_session=True
        )
    from atlasbridge.core.clock import SystemClock

    clock = SystemClock()
    deadline = clock.now() + _PATIENCE_S
    socket = Path(setup.socket)
    while not (lock_holder(Home(Path(setup.home)).lock) and socket.exists()):
        if clock.now() > deadline:
            said = log.read_text("utf-8", "replace").strip().splitlines()
            raise AtlasBridgeError("the hub did not start", said[-1] if said else f"look into {setup.home}/hub.log")
        subprocess.run(["sleep", "0.1"], check=True)


def _stop_running(setup: SystemSetup) -> Iterator[str]:
    if has_systemd() and UNIT.exists():
        subprocess.run(["systemctl", "disable", "--now", UNIT.name], capture_output=True)
        yield "the service has stopped"
    elif stop_hub(Home(Path(setup.home), Path(setup.socket))):
        yield "the running hub has stopped; sessions continue"


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S)
    if done.returncode:
        raise AtlasBridgeError(f"{' '.join(words[:2])} failed: {(done.stderr or done.stdout).strip()}")
