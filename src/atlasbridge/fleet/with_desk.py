"""What belonging to a desk means for the hub: one more channel, whose people the desk knows, and the desk's rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.daemon.service import ChannelPlan, HubPlan
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.values import replace
from atlasbridge.fleet.belonging import RULES, Belonging, read_belonging

if TYPE_CHECKING:
    from atlasbridge.core.policy.rule import Policy
    from atlasbridge.core.ports import Channel, Desk
    from atlasbridge.core.routing.shell_parser import ShellParser

NAME = "desk"


def with_desk(home: Home, plan: HubPlan) -> HubPlan:
    """The same plan where this machine belongs to no desk."""
    belonging = read_belonging(home.root)
    if belonging is None:
        return plan
    policy = replace(plan.settings.policy, allowed={**plan.settings.policy.allowed, NAME: None})
    channel = ChannelPlan(NAME, True, lambda desk: _build(belonging, desk))
    rules = plan.rules
    path = home.root / RULES
    if path.exists() and belonging.rules != "none":
        parse = rules.parse or _parser()
        told = _read(path.read_text(encoding="utf-8"), belonging, parse)
        rules = replace(rules, policy=rules.policy.joined(told), parse=parse)
    settings = replace(plan.settings, policy=policy)
    return replace(plan, settings=settings, channels=(*plan.channels, channel), rules=rules)


def _build(belonging: Belonging, desk: Desk) -> Channel:
    try:
        from atlasbridge.fleet.channel import DeskChannel
    except ModuleNotFoundError as missing:
        raise ConfigError(f"a desk needs {missing.name}", install_line("fleet")) from None
    return DeskChannel(belonging, desk, lambda text: _read(text, belonging, _parser()))  # type: ignore[arg-type]


def _parser() -> ShellParser:
    from atlasbridge.core.routing.shell_parser import ShellParser

    return ShellParser()


def _read(text: str, belonging: Belonging, parse: ShellParser) -> Policy:
    """They may only tighten what is allowed here, unless whoever joined said otherwise."""
    from atlasbridge.core.policy.reader import read_policy

    tightens = belonging.rules != "allow"
    return read_policy(text, parse, where=Path(RULES).name, home=os.path.expanduser("~"), tightens=tightens)
