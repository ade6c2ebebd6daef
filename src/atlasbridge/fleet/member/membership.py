"""fleet.json in the home folder (mode 0600): the server that this machine belongs to, and its own key.

Every hub reads it, so this module does not need the `fleet` extra; `joining.py` does.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.system import replace_private
from atlasbridge.core.values import as_dict, frozen, replace

if TYPE_CHECKING:
    from atlasbridge.core.daemon.service import HubPlan
    from atlasbridge.core.home import Home
    from atlasbridge.core.policy.rule import Policy
    from atlasbridge.core.ports import Channel, HubApi
    from atlasbridge.core.routing.shell_parser import ShellParser

FILE_NAME = "fleet.json"
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
        found = json.loads((home / FILE_NAME).read_text(encoding="utf-8"))
        return FleetMembership(**found)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(
            f"{home / FILE_NAME} cannot be used: {error}", "remove it and join again: atlasbridge fleet leave --force"
        ) from None


def write_membership(home: Path, membership: FleetMembership) -> None:
    replace_private(home / FILE_NAME, json.dumps(as_dict(membership)))
    with open(home / FILE_NAME, "r+b") as file:
        os.fsync(file.fileno())  # the key is nowhere else


def forget_membership(home: Path) -> None:
    for name in (FILE_NAME, RULES):
        (home / name).unlink(missing_ok=True)


# Adds the fleet server to the hub's plan: one more channel, whose people the server knows, and the server's rules.

NAME = "server"


def with_fleet(home: Home, plan: HubPlan) -> HubPlan:
    """The plan is unchanged if this machine belongs to no server."""
    from atlasbridge.core.daemon.service import ChannelPlan

    membership = read_membership(home.root)
    if membership is None:
        return plan
    policy = replace(plan.settings.policy, allowed={**plan.settings.policy.allowed, NAME: None})
    channel = ChannelPlan(NAME, True, lambda server: _build(membership, server))
    rules = plan.rules
    path = home.root / RULES
    if path.exists() and membership.rules != "none":
        parse = rules.parse or _parser()
        told = _read(path.read_text(encoding="utf-8"), membership, parse)
        rules = replace(rules, policy=rules.policy.joined(told), parse=parse)
    settings = replace(plan.settings, policy=policy)
    return replace(plan, settings=settings, channels=(*plan.channels, channel), rules=rules)


def _build(membership: FleetMembership, server: HubApi) -> Channel:
    try:
        from atlasbridge.fleet.member.channel import FleetChannel
    except ModuleNotFoundError as missing:
        from atlasbridge.core.distribution import install_line

        raise ConfigError(f"a member of a fleet needs {missing.name}", install_line("fleet")) from None
    return FleetChannel(membership, server, lambda text: _read(text, membership, _parser()))  # type: ignore[arg-type]


def _parser() -> ShellParser:
    from atlasbridge.core.routing.shell_parser import ShellParser

    return ShellParser()


def _read(text: str, membership: FleetMembership, parse: ShellParser) -> Policy:
    """The server's rules can only tighten the local ones, unless the person who joined allowed more."""
    from atlasbridge.core.policy.reader import read_policy

    tightens = membership.rules != "allow"
    return read_policy(text, parse, where=Path(RULES).name, home=os.path.expanduser("~"), tightens=tightens)
