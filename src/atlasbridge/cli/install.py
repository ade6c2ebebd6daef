"""`atlasbridge shim`: makes the plain name of a tool run it under AtlasBridge."""

from __future__ import annotations

import os
import plistlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from atlasbridge.cli.printing import Renaming, echo, home, json_option, print_json, print_table
from atlasbridge.cli.run import needs_unix
from atlasbridge.core.daemon.request import HubClient, lock_holder, stop_hub
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.process import own_python

# The script that precedes a tool on PATH, so that its name runs `atlasbridge run`. It first removes its own folder from
# PATH, so that AtlasBridge and the tool never find the script again. It cannot call itself, and nothing inside a
# session is wrapped twice.

MARK = "# made by: atlasbridge shim install"
_SCRIPT = """#!/bin/sh
{mark} {tool}
# ATLASBRIDGE_BYPASS=1 runs the tool itself; so does a pipe, and a session that is AtlasBridge's already.
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd -P)
rest=
old_ifs=$IFS
IFS=:
for folder in $PATH; do
    place=$(CDPATH= cd -- "${{folder:-.}}" 2>/dev/null && pwd -P)
    [ "$place" = "$here" ] || rest=${{rest:+$rest:}}$folder
done
IFS=$old_ifs
PATH=$rest
export PATH
if ! command -v {tool} >/dev/null 2>&1; then
    echo "{plain}: only its AtlasBridge shim was found on PATH, not the tool" >&2
    exit 127
fi
if [ -n "$ATLASBRIDGE_BYPASS" ] || [ -n "$IN_ATLASBRIDGE" ] || [ ! -t 0 ] || [ ! -t 1 ] || [ ! -x {python} ]; then
    exec {tool} "$@"
fi
IN_ATLASBRIDGE=1
export IN_ATLASBRIDGE
exec {words} run -- {tool} "$@"
"""


def render_shim(tool: str) -> str:
    words = own_python("atlasbridge")
    return _SCRIPT.format(
        mark=MARK,
        tool=shlex.quote(tool),
        plain=tool,
        python=shlex.quote(words[0]),
        words=" ".join(shlex.quote(word) for word in words),
    )


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
folder_option = click.option("--folder", type=click.Path(path_type=Path), help="The folder of the scripts.")


@click.group("shim", cls=Renaming, renamed={"install": "add", "uninstall": "remove"})
def shim_command() -> None:
    """Run a tool under AtlasBridge when you type its name: small scripts that come before the tools on PATH."""


@shim_command.command("add")
@click.argument("tools", nargs=-1, required=True)
@folder_option
def add_shims(tools: tuple[str, ...], folder: Path | None) -> None:
    """Add a script for each of these tools.  ATLASBRIDGE_BYPASS=1 runs the tool itself."""
    needs_unix("shim add", "start the tool with: atlasbridge run --backend conpty TOOL")
    if folder is None:
        home().prepare()
    place = folder or default_folder()
    place.mkdir(parents=True, exist_ok=True, mode=0o755)
    for tool in tools:
        _check(tool, place)
        path = place / tool
        path.write_text(render_shim(tool), "utf-8")
        path.chmod(0o755)
        click.echo(f"written: {path}")
        if real_tool(tool, place) is None:
            click.echo(f"  {tool} itself is not on PATH yet")
    if first := _hidden(tools, place):
        found = f"{first} is found before the script" if os.path.isabs(first) else "the scripts are not on PATH"
        echo(f"{found}: put their folder first on PATH, in your shell's profile:")
        click.echo(f'  export PATH="{place}:$PATH"')


@shim_command.command("remove")
@click.argument("tools", nargs=-1)
@folder_option
def remove_shims(tools: tuple[str, ...], folder: Path | None) -> None:
    """Remove the scripts of these tools, or all of them."""
    place = folder or default_folder()
    removed = [path for path in shims(place) if not tools or path.name in tools]
    for path in removed:
        path.unlink()
        click.echo(f"removed: {path}")
    missing = set(tools) - {path.name for path in removed}
    if missing:
        raise AtlasBridgeError(
            f"there is no script for {', '.join(sorted(missing))}", "list them with: atlasbridge shim list"
        )
    if not removed:
        click.echo("there are no scripts")


@shim_command.command("list")
@folder_option
@json_option
def list_shims(folder: Path | None, as_json: bool) -> None:
    """List the scripts, the tools behind them, and whether PATH finds the script first."""
    place = folder or default_folder()
    rows = [
        (path.name, str(path), real_tool(path.name, place) or "", not _hidden((path.name,), place))
        for path in shims(place)
    ]
    if as_json:
        print_json([dict(zip(("tool", "script", "real", "first"), row, strict=True)) for row in rows])
    else:
        shown = [(*row[:3], _place_on_path(row[0], place)) for row in rows]
        print_table(("tool", "script", "tool itself", "state"), shown, "no scripts")


def default_folder() -> Path:
    return home().root / "shims"


def shims(folder: Path) -> Iterator[Path]:
    """Our own scripts in the folder; other files are ignored."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink() and MARK in path.read_text("utf-8", "replace")[:200]:
            yield path


def real_tool(tool: str, folder: Path) -> str | None:
    places = [place for place in os.environ.get("PATH", "").split(os.pathsep) if not _same(place, folder)]
    return shutil.which(tool, path=os.pathsep.join(places))


def _same(place: str, folder: Path) -> bool:
    return os.path.realpath(place or ".") == os.path.realpath(folder)


def _hidden(tools: tuple[str, ...], folder: Path) -> str:
    """The first tool that PATH finds before its script; "" if there is none."""
    for tool in tools:
        found = shutil.which(tool)
        if found is None or not _same(os.path.dirname(found), folder):
            return found or tool
    return ""


def _place_on_path(tool: str, folder: Path) -> str:
    first = _hidden((tool,), folder)
    return f"{first} comes first" if os.path.isabs(first) else "not on PATH" if first else "first on PATH"


def _check(tool: str, folder: Path) -> None:
    if not _NAME.fullmatch(tool):
        raise AtlasBridgeError(f"{tool!r} is not a valid name for a tool", "use the name as you type it: claude")
    path = folder / tool
    if path.exists() and path not in list(shims(folder)):
        raise AtlasBridgeError(f"{path} exists and was not made by AtlasBridge", "choose another place with --folder")


# The hub as a login service: a systemd user unit, or a launchd agent on macOS.
#
# It only writes the file, and notifies the service manager if that is available.


UNIT = "atlasbridge-hub.service"
AGENT = "io.atlasbridge.hub"
_PATIENCE_S = 20.0


def service_file(platform: str = sys.platform) -> Path:
    home = Path(os.path.expanduser("~"))
    if platform == "darwin":
        return home / "Library" / "LaunchAgents" / f"{AGENT}.plist"
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "systemd" / "user" / UNIT


def render_unit(home: Home) -> str:
    """A hub that exits because another one runs has succeeded, and is not restarted."""
    words = " ".join(quoted(word) for word in own_python("atlasbridge", "hub", "start", "--foreground"))
    return f"""[Unit]
Description=AtlasBridge hub
Documentation=man:atlasbridge(1)

[Service]
ExecStart={words}
ExecReload=/bin/kill -HUP $MAINPID
Environment={quoted(f"ATLASBRIDGE_HOME={home.root}")}
UMask=0077
KillMode=process
Restart=on-failure
RestartSec=2

[Install]
WantedBy=default.target
"""


def render_agent(home: Home) -> str:
    return plistlib.dumps(
        {
            "Label": AGENT,
            "ProgramArguments": list(own_python("atlasbridge", "hub", "start", "--foreground")),
            "EnvironmentVariables": {"ATLASBRIDGE_HOME": str(home.root)},
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "Umask": 0o077,
            "AbandonProcessGroup": True,
            "StandardErrorPath": str(home.log),
        }
    ).decode()


def install_service(home: Home, now: bool, platform: str = sys.platform) -> Iterator[str]:
    """Install the service and yield a line for each step."""
    path = service_file(platform)
    text = render_agent(home) if platform == "darwin" else render_unit(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    yield f"written: {path}"
    commands = _start_commands(path, now, platform)
    if not _answers(platform):
        yield "run these commands after the next login, when the service manager answers:"
        yield from (f"  {' '.join(words)}" for words in commands)
        return
    if now and stop_hub(home):
        yield "the running hub has stopped; sessions continue"
    for words in commands:
        yield f"{' '.join(words)}: {_run_and_describe(words)}"


def uninstall_service(platform: str = sys.platform) -> Iterator[str]:
    path = service_file(platform)
    if not path.exists():
        yield "the hub is no service here"
        return
    if _answers(platform):
        for words in _stop_commands(path, platform):
            yield f"{' '.join(words)}: {_run_and_describe(words)}"
    path.unlink()
    yield f"removed: {path}"


def _start_commands(path: Path, now: bool, platform: str) -> list[list[str]]:
    if platform == "darwin":
        return [["launchctl", "load", "-w", str(path)]]
    return [["systemctl", "--user", "daemon-reload"], ["systemctl", "--user", "enable", *(["--now"] * now), UNIT]]


def _stop_commands(path: Path, platform: str) -> list[list[str]]:
    if platform == "darwin":
        return [["launchctl", "unload", "-w", str(path)]]
    return [["systemctl", "--user", "disable", "--now", UNIT]]


def _answers(platform: str) -> bool:
    """Whether a service manager runs for this login: containers and some ssh sessions have only the command."""
    if platform == "darwin":
        return shutil.which("launchctl") is not None
    return (
        shutil.which("systemctl") is not None
        and _run_and_describe(["systemctl", "--user", "show-environment"]) == "done"
    )


def _run_and_describe(words: list[str]) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"failed ({error})"
    return "done" if done.returncode == 0 else f"failed ({(done.stderr or done.stdout).strip()})"


def quoted(word: str) -> str:
    """Quote for systemd: `%` starts a specifier, and `$` a variable."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{plain}"' if plain != word or " " in word or "=" in word else word


# `atlasbridge uninstall`: removes everything that AtlasBridge created on this machine, and lists what remains.


RUNTIME = (
    *("hub.sock", "hub.tcp", "hub.lock", "hub.starting", "hub.version", "web.json", "web.shown", "open.html"),
    *("sessions", "run"),
)


@click.command("uninstall")
@click.option("--dry-run", is_flag=True, help="Only show what would be done.")
@click.option("--records", is_flag=True, help="Also remove the home folder: configuration, history, audit log.")
def uninstall_command(dry_run: bool, records: bool) -> None:
    """Stop the hub, and remove its service, the shims and temporary files. Your records stay, except with --records."""
    _refuse_while_sessions_run()
    would = "would be " if dry_run else ""
    place = home()
    if lock_holder(place.lock) is not None:
        if not dry_run:
            stop_hub(place)
        click.echo(f"{would}stopped: the hub")
    if service_file().exists():
        if dry_run:
            click.echo(f"would be removed: {service_file()}")
        else:
            for line in uninstall_service():
                click.echo(line)
    made = _made(place.root, records)
    for path in made:
        if not dry_run:
            _remove(path)
        click.echo(f"{would}removed: {path}")
    for path in () if records else _left(place.root, made):
        click.echo(f"left: {path}")
    click.echo(
        "left: the program itself; remove it as you installed it (pipx uninstall, uv tool uninstall, pip uninstall)"
    )


def _made(root: Path, records: bool) -> list[Path]:
    if records:
        return [root] if root.exists() else []
    scripts, folder = list(shims(default_folder())), default_folder()
    if scripts and set(folder.iterdir()) == set(scripts):
        scripts.append(folder)
    return [*scripts, *(path for name in RUNTIME if os.path.lexists(path := root / name))]


def _left(root: Path, made: list[Path]) -> list[Path]:
    return [path for path in sorted(root.iterdir()) if path not in made] if root.is_dir() else []


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _refuse_while_sessions_run() -> None:
    """A running session's host would start a hub again."""
    try:
        with HubClient(home(), timeout_s=5.0) as hub:
            running = hub.ask("sessions")["sessions"]
    except HubUnavailable:
        return
    alive = [session for session in running if session.get("state") == "active"]
    if alive:
        ids = ", ".join(session["session_id"][:8] for session in alive)
        raise AtlasBridgeError(f"sessions are still running: {ids}", "end them first with: atlasbridge kill SESSION")
