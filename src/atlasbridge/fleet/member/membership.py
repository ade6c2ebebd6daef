"""desk.json in the home folder (mode 0600): the server that this machine belongs to, and its own key.

Every hub reads it, so this module does not need the `fleet` extra; `joining.py` does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.system import OWN_FILE
from atlasbridge.core.values import as_dict, frozen

NAME = "desk.json"
RULES = "server-policy.toml"  # the accepted rules from the server


@frozen
class FleetMembership:
    url: str
    machine_id: str
    name: str
    key: str  # private
    server_key: str  # the server's public key: another server at the same address is not trusted
    ca: str = ""  # trusted certificates (PEM) besides the system's own
    screens: bool = True  # whether people at the server are allowed to see screens
    rules: str = "tighten"  # what the server's rules are allowed to do here: "tighten", "allow" or "none"
    ephemeral: bool = False  # a container or a job: it leaves when its hub ends


def read_membership(home: Path) -> FleetMembership | None:
    """None if this machine belongs to no server."""
    try:
        found = json.loads((home / NAME).read_text(encoding="utf-8"))
        return FleetMembership(**found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{home / NAME} cannot be used: {error}", "remove it and join again: atlasbridge fleet leave --force"
        ) from None


def write_membership(home: Path, membership: FleetMembership) -> None:
    """Write atomically, readable by this user only."""
    draft = home / f".{NAME}.{os.getpid()}"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600), "w", encoding="utf-8") as file:
        json.dump(as_dict(membership), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, home / NAME)


def forget_membership(home: Path) -> None:
    for name in (NAME, RULES):
        (home / name).unlink(missing_ok=True)
