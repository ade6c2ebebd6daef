"""Compares the version of the running hub with the version of the command, and says what to do.

Sessions outlive a hub: a restart ends none, and the next hub takes over every open prompt. A hub writes its version to
a file, so that a command does not have to ask. The file is valid while the process that wrote it has the hub's lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import Any

from atlasbridge import __version__
from atlasbridge.core.daemon.lock import lock_holder
from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import left_address
from atlasbridge.core.wire import PROTOCOL

HINT = "restart it with: atlasbridge hub restart (sessions continue, open prompts are kept)"
_PATIENCE_S = 2.0
_FILE = "hub.version"


def own_version() -> dict[str, Any]:
    """The version that a hub reports."""
    return {"version": __version__, "protocol": PROTOCOL}


def write_version_file(home: Home) -> None:
    """Called by a hub that has just taken its lock. If the file cannot be written (a full disk), clients ask the hub
    instead."""
    remove_version_file(home)  # a killed hub could have had our pid
    with contextlib.suppress(OSError):
        (home.root / _FILE).write_text(f"{os.getpid()} {PROTOCOL} {__version__}\n")


def remove_version_file(home: Home) -> None:
    with contextlib.suppress(OSError):
        (home.root / _FILE).unlink(missing_ok=True)


def read_version_file(home: Home) -> dict[str, Any] | None:
    """The version from the file; None if the file does not certainly belong to the running hub."""
    try:
        pid, protocol, version = (home.root / _FILE).read_text().split()
        if home.hub is not None or lock_holder(home.lock) != int(pid):
            return None  # it belongs to a killed hub, or our hub listens elsewhere
        return {"pid": int(pid), "protocol": int(protocol), "version": version}
    except (OSError, ValueError):
        return None


def compare_version(answer: Mapping[str, Any]) -> str:
    """Returns a sentence if the hub that sent this answer has another version; "" otherwise."""
    protocol, version = int(answer.get("protocol", 1)), str(answer.get("version", ""))
    if (protocol, version) == (PROTOCOL, __version__):
        return ""
    place = f"the hub (process {answer.get('pid', '?')})"
    said = f"{version} " if version else ""
    if (protocol, _numbers(version)) < (PROTOCOL, _numbers(__version__)):
        return f"{place} is of an older version {said}than this command ({__version__})".replace("  ", " ")
    return f"{place} is of a newer version {said}than this command ({__version__})".replace("  ", " ")


def look_at_hub(home: Home) -> str:
    """The sentence about the running hub, if there is one."""
    if left_address(home.socket) is None:
        return ""
    if (left := read_version_file(home)) is not None:
        return compare_version(left)
    try:
        with HubClient(home, timeout_s=_PATIENCE_S) as hub:
            return compare_version(hub.request("ping"))
    except HubUnavailable:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())
