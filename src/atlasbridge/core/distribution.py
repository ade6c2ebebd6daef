"""Identifies the installed package of this program, and finds other packages that use the same command name.

PyPI has an unrelated package called `atlasbridge`. Ours is `atlasbridge-pty`; the command and the import name are
`atlasbridge` in both. This module only reads files and runs nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

NAME = "atlasbridge-pty"
COMMAND = "atlasbridge"
# Which Python a command is started by. pip lets a shell start one whose path has a blank, because a #! line cannot.
_STARTED_BY = re.compile(r"#!/bin/sh\n'''exec' " + r'"?([^"\n]+?)"? "\$0"' + r"|#!\s*(\S+)")


def install_line(extra: str) -> str:
    """The command that adds an extra to the environment this program runs in."""
    source = checkout()
    wanted = shlex.quote(f"{source or '.'}[{extra}]")
    place = "" if source else "in a checkout of AtlasBridge: "
    if "/pipx/venvs/" in sys.prefix:
        return f"{place}pipx install --force {wanted}"
    if "/uv/tools/" in sys.prefix:
        return f"{place}uv tool install --force {wanted}"
    return f"{place}{shlex.quote(sys.executable)} -m pip install {wanted}"


def checkout() -> Path | None:
    """The folder that this program was installed from, if it is still there."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return _source_of(distribution(NAME))
    except PackageNotFoundError:
        return None


def _source_of(one: Distribution) -> Path | None:
    import json
    from urllib.parse import unquote, urlsplit

    try:
        told = json.loads(one.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    address = urlsplit(told.get("url", ""))
    folder = Path(unquote(address.path))
    return folder if address.scheme == "file" and (folder / "pyproject.toml").is_file() else None


def others() -> list[str]:
    """Describes other packages that provide the command or the import name `atlasbridge`, here and first on PATH."""
    found = [f"{name} {version} is installed in {sys.prefix} as well" for name, version in _others_here()]
    first = shutil.which(COMMAND)
    if first and (stranger := _owner_of_command(Path(first))):
        found.append(f"the command {first} belongs to {stranger}")
    return found


def _others_here() -> Iterator[tuple[str, str]]:
    """Every other distribution in this environment with a package or a command of our name."""
    from importlib.metadata import distributions

    for one in distributions():
        # `files` and `metadata` would parse every line of every package, which takes seconds on a slow machine.
        files = one.read_text("RECORD") or one.read_text("top_level.txt") or ""
        has_package = re.search(r'^"?atlasbridge(?:/|$)', files, re.MULTILINE)
        points = one.entry_points if COMMAND in (one.read_text("entry_points.txt") or "") else ()
        if not has_package and not any(point.group == "console_scripts" and point.name == COMMAND for point in points):
            continue
        name = one.metadata["Name"] or ""
        if _normal(name) != NAME and not _is_own_source(one):
            yield name, one.version


def _is_own_source(one: Distribution) -> bool:
    """Whether it was installed from the folder of this file: our own package under an earlier name."""
    source = _source_of(one)
    return source is not None and Path(__file__).resolve().is_relative_to(source.resolve())


def _owner_of_command(command: Path) -> str:
    """The distribution that owns this command, if it is not ours; "" if that is unknown."""
    try:
        text = command.read_bytes()[:4096].decode(errors="replace")
    except OSError:
        return ""
    found = _STARTED_BY.match(text)
    python = (found[1] or found[2]) if found else ""
    if not os.path.isabs(python):
        return ""
    owners = _installed_in(Path(python).parent.parent)
    return "" if NAME in owners else owners.get(COMMAND, "")


def _installed_in(prefix: Path) -> dict[str, str]:
    """The packages of that environment that could own the command: normalised name to name, version and location."""
    found = {}
    for folder in sorted(prefix.glob("lib*/python3*/*-packages/atlasbridge*.dist-info")):
        if read := re.fullmatch(r"(.+?)-([^-]+)\.dist-info", folder.name):
            found[_normal(read[1])] = f"{_normal(read[1])} {read[2]} in {prefix}"
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
