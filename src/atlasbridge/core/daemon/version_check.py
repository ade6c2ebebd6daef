"""Is the hub that answers of another version than the command that asks?  Says so, and what to do about it.

Sessions outlive a hub: a restart ends none, and the next hub picks every open prompt up.  A hub leaves its version in
a file, for those who have no time to ask; it counts as long as the process that wrote it holds the hub's lock.
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
    """What a hub says of itself."""
    return {"version": __version__, "protocol": PROTOCOL}


def write_version_file(home: Home) -> None:
    """By a hub that has just taken its lock.  One that cannot (a full disk) is asked."""
    remove_version_file(home)  # of one that was killed: it may have had our number
    with contextlib.suppress(OSError):
        (home.root / _FILE).write_text(f"{os.getpid()} {PROTOCOL} {__version__}\n")


def remove_version_file(home: Home) -> None:
    with contextlib.suppress(OSError):
        (home.root / _FILE).unlink(missing_ok=True)


def read_version_file(home: Home) -> dict[str, Any] | None:
    """What the hub that runs has left; None: nothing that is certainly its own, so ask it."""
    try:
        pid, protocol, version = (home.root / _FILE).read_text().split()
        if home.hub is not None or lock_holder(home.lock) != int(pid):
            return None  # of one that was killed; or ours listens elsewhere
        return {"pid": int(pid), "protocol": int(protocol), "version": version}
    except (OSError, ValueError):
        return None


def compare_version(answer: Mapping[str, Any]) -> str:
    """A sentence about a hub that answered so, when it is of another version; "" when it is ours."""
    protocol, version = int(answer.get("protocol", 1)), str(answer.get("version", ""))
    if (protocol, version) == (PROTOCOL, __version__):
        return ""
    place = f"the hub (process {answer.get('pid', '?')})"
    said = f"{version} " if version else ""
    if (protocol, _numbers(version)) < (PROTOCOL, _numbers(__version__)):
        return f"{place} is of an older version {said}than this command ({__version__})".replace("  ", " ")
    return f"{place} is of a newer version {said}than this command ({__version__})".replace("  ", " ")


def look_at_hub(home: Home) -> str:
    """The sentence about the hub that runs, where one does."""
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
