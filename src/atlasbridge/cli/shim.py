"""`atlasbridge shim`: makes the plain name of a tool run it under AtlasBridge."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click

from atlasbridge.cli.environment import needs_unix
from atlasbridge.cli.options import Renaming
from atlasbridge.cli.printing import home, json_option, print_json, print_table
from atlasbridge.core.errors import AtlasBridgeError
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
folder_option = click.option("--folder", type=click.Path(path_type=Path), help="Where the scripts stand.")


@click.group("shim", cls=Renaming, renamed={"install": "add", "uninstall": "remove"})
def command() -> None:
    """Run a tool under AtlasBridge when you type its name: small scripts that come before the tools on PATH."""


@command.command("add")
@click.argument("tools", nargs=-1, required=True)
@folder_option
def install(tools: tuple[str, ...], folder: Path | None) -> None:
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
        click.echo(f"{first} is found before the script: put its folder first on PATH, in your shell's profile:")
        click.echo(f'  export PATH="{place}:$PATH"')


@command.command("remove")
@click.argument("tools", nargs=-1)
@folder_option
def uninstall(tools: tuple[str, ...], folder: Path | None) -> None:
    """Remove the scripts of these tools, or all of them."""
    place = folder or default_folder()
    removed = [path for path in shims(place) if not tools or path.name in tools]
    for path in removed:
        path.unlink()
        click.echo(f"removed: {path}")
    missing = set(tools) - {path.name for path in removed}
    if missing:
        raise AtlasBridgeError(f"there is no script for {', '.join(sorted(missing))}", "see: atlasbridge shim list")
    if not removed:
        click.echo("there are no scripts")


@command.command("list")
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
        shown = [(*row[:3], "first on PATH" if row[3] else "PATH finds the tool first") for row in rows]
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


def _check(tool: str, folder: Path) -> None:
    if not _NAME.fullmatch(tool):
        raise AtlasBridgeError(f"{tool!r} is no name of a tool", "use the name as you type it: claude")
    path = folder / tool
    if path.exists() and path not in list(shims(folder)):
        raise AtlasBridgeError(f"{path} exists and was not made by AtlasBridge", "choose another place with --folder")
