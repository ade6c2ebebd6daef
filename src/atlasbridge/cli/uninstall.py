"""`atlasbridge uninstall`: removes everything that AtlasBridge created on this machine, and lists what remains."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from atlasbridge.cli.printing import home
from atlasbridge.cli.service import service_file, uninstall_service
from atlasbridge.cli.shim import default_folder, shims
from atlasbridge.core.daemon.request import HubClient, lock_holder
from atlasbridge.core.daemon.starter import stop_hub
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable

RUNTIME = (
    *("hub.sock", "hub.tcp", "hub.lock", "hub.starting", "hub.version", "web.json", "web.shown", "open.html"),
    *("sessions", "run"),
)


@click.command("uninstall")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--records", is_flag=True, help="Also remove the home folder: configuration, history, audit log.")
def command(dry_run: bool, records: bool) -> None:
    """Stop the hub, and remove its service, the shims and temporary files; your records stay without --records."""
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
        raise AtlasBridgeError(f"sessions still run: {ids}", "end them first: atlasbridge kill SESSION")
