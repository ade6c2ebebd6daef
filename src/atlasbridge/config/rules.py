"""The person's own rules: their file, their content, and how people are notified of decisions by rules."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from atlasbridge.config.load import Configuration
from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.policy.rule import Policy
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.values import replace


def plan_rules(home: Home, config: Configuration) -> HubRules:
    """Read the person's own rules. Raises ConfigError with the line."""
    table = config.general.policy
    path = policy_file(home, config)
    rules = HubRules(
        home=os.path.expanduser("~"),
        tell=table.tell,
        digest_s=table.digest_hours * 3600,
        old_grants=len(config.general.grants),
        own=own_places(home, path),
    )
    if not path.exists():
        if table.file:
            raise ConfigError(f"there is no rule file {path}", "correct policy.file in config.toml")
        return rules
    return replace(rules, policy=read_rules(path), parse=shell_parser())


def own_places(home: Home, rules: Path) -> tuple[str, ...]:
    """The places of the hub's settings and rules, by name and with links resolved."""
    places = (home.root, home.root.resolve(), rules, rules.resolve())
    return tuple(dict.fromkeys(map(os.path.abspath, places)))


def policy_file(home: Home, config: Configuration) -> Path:
    named = config.general.policy.file
    return Path(os.path.expanduser(named)) if named else home.root / "policy.toml"


def read_rules(path: Path) -> Policy:
    from atlasbridge.core.policy.reader import read_policy  # imported only if there are rules

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "check its owner, its mode and that it is UTF-8") from None
    return read_policy(text, shell_parser(), where=path.name, home=os.path.expanduser("~"))


@cache
def shell_parser() -> ShellParser:
    """One for the whole process: it keeps a helper program ready, and caches its results."""
    return ShellParser()
