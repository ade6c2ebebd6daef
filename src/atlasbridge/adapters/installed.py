"""Finds the version of an installed tool without starting it, so that a session does not wait.

It knows npm and Python packages, and folders named after the version; other tools have no known version. `run` imports
it before the tool starts, so it has few imports itself.
"""

from __future__ import annotations

import os
import re

TOOLS = os.path.dirname(__file__)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_LISTED = re.compile(r"^versions\s*=\s*\[(.*)\]", re.MULTILINE)
_IN_PACKAGE = re.compile(r'^\s*"version"\s*:\s*"(\d+\.\d+\.\d+)', re.MULTILINE)
_LEVELS = 4  # from a program up to the folder of its package


def warn_of_version(command: str, path: str | None = None) -> str:
    """Return a warning if this tool is known, but not in the installed version; otherwise ""."""
    tool = os.path.basename(command).removesuffix(".exe")
    verified = verified_versions(tool)
    version = installed_version(command, path) if verified else ""
    if not version or version in verified:
        return ""
    return (
        f"{tool} {version} was not tried with AtlasBridge ({', '.join(verified)} was); "
        "dialogs that are new in it go by the generic rules"
    )


def verified_versions(tool: str) -> tuple[str, ...]:
    """The versions in the packaged dialect; () for a tool without a dialect or without versions."""
    listed = _LISTED.search(_read(os.path.join(TOOLS, tool, "dialect.toml")))
    return tuple(re.findall(r'"([^"]+)"', listed[1])) if listed else ()


def installed_version(command: str, path: str | None = None) -> str:
    found = _find(command, os.environ.get("PATH", "") if path is None else path)
    if not found:
        return ""
    program = os.path.realpath(found)
    return _by_folder(program) or _of_npm(program) or _of_python(found)


def _find(command: str, path: str) -> str:
    places = [command] if os.sep in command else [os.path.join(folder, command) for folder in path.split(os.pathsep)]
    return next((place for place in places if os.access(place, os.X_OK) and os.path.isfile(place)), "")


def _by_folder(program: str) -> str:
    """For installers that keep versions side by side: `.../versions/1.2.3`, `.../Cellar/tool/1.2.3/bin/tool`."""
    return next((part for part in reversed(program.split(os.sep)) if _VERSION.fullmatch(part)), "")


def _of_npm(program: str) -> str:
    folder = program
    for _ in range(_LEVELS):
        folder = os.path.dirname(folder)
        found = _IN_PACKAGE.search(_read(os.path.join(folder, "package.json")))
        if found:
            return found[1]
    return ""


def _of_python(program: str) -> str:
    """For a script beside the interpreter of its environment."""
    libraries = os.path.join(os.path.dirname(os.path.dirname(program)), "lib")
    for python in _names(libraries, "python3"):
        for info in _names(os.path.join(libraries, python, "site-packages"), os.path.basename(program)):
            found = _VERSION.search(info)
            if found and info.endswith(".dist-info"):
                return found[0]
    return ""


def _names(folder: str, prefix: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.startswith(prefix)]
    except OSError:
        return []


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""  # most places have no such file
