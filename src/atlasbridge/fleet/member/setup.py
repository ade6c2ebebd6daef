"""Adds the fleet server to the hub's plan: one more channel, whose people the server knows, and the server's rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.daemon.service import ChannelPlan, HubPlan
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.values import replace
from atlasbridge.fleet.member.membership import RULES, FleetMembership, read_membership

if TYPE_CHECKING:
    from atlasbridge.core.policy.rule import Policy
    from atlasbridge.core.ports import Channel, HubApi
    from atlasbridge.core.routing.shell_parser import ShellParser


NAME = "server"


def with_fleet(home: Home, plan: HubPlan) -> HubPlan:
    """The plan is unchanged if this machine belongs to no server."""
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
        raise ConfigError(f"a server needs {missing.name}", install_line("fleet")) from None
    return FleetChannel(membership, server, lambda text: _read(text, membership, _parser()))  # type: ignore[arg-type]


def _parser() -> ShellParser:
    from atlasbridge.core.routing.shell_parser import ShellParser

    return ShellParser()


def _read(text: str, membership: FleetMembership, parse: ShellParser) -> Policy:
    """The server's rules can only tighten the local ones, unless the person who joined allowed more."""
    from atlasbridge.core.policy.reader import read_policy

    tightens = membership.rules != "allow"
    return read_policy(text, parse, where=Path(RULES).name, home=os.path.expanduser("~"), tightens=tightens)
