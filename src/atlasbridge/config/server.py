"""The file of `fleet serve --config`: the channels of a fleet server, its escalation policies and its limits.

People and their permissions are in the server's database; this file contains the rest: tokens and steps.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from atlasbridge.config.hub import limit_attention, plan_escalation
from atlasbridge.config.load import Configuration, SettingsClass, load_config
from atlasbridge.config.model import EscalationEntry
from atlasbridge.config.session import resolve
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.escalation import AWAY, EscalationPolicy, PeopleBook
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import ChatPlan, ServerChannel

TABLES = ("prompts", "attention", "escalation", "channels", "oidc")
PROMPTS = ("reminder_seconds", "max_reminders", "notify_idle", "muted_tools")
HERE_ALONE = ("web", "local", "desktop")  # channels of one machine, not of a fleet
NUMBERED = {"telegram"}  # channels whose people are numbers


def load_server_config(
    path: Path,
    environ: Mapping[str, str],
    settings_class: SettingsClass,
    known_channels: list[str],
    identities: Mapping[str, tuple[str, ...]],
) -> tuple[Configuration, tuple[str, ...]]:
    """Return the checked configuration, and the channels without people, which are left out. `identities` are the
    people by channel, from the server's database. Raises ConfigError."""
    if not path.is_file():
        raise ConfigError(f"there is no file {path}", "write one, or leave --config out")
    known = [name for name in known_channels if name not in HERE_ALONE]
    foreign = tuple(f"ATLASBRIDGE_CHANNELS_{name.upper()}_" for name in HERE_ALONE)
    own = {name: value for name, value in environ.items() if not name.startswith(foreign)}
    idle: list[str] = []

    def adjust(data: dict[str, Any]) -> None:
        _refuse_strange(data, path)
        data.pop("oidc", None)  # see `read_oidc`
        tables = data.setdefault("channels", {})
        for name in [name for name in tables if name in known and isinstance(tables[name], dict)]:
            if not _fill_in(name, tables[name], identities.get(name, ()), path):
                idle.append(name)
                del tables[name]
        tables["web"] = {"enabled": False}

    config = load_config(path, own, settings_class, [*known, "web"], adjust)
    return config, tuple(idle)


class OidcTable(BaseModel):
    """`[oidc]`: the login provider."""

    model_config = ConfigDict(extra="forbid")

    issuer: str
    client_id: str
    client_secret: str = ""
    label: str = "your identity provider"
    scopes: str = "openid profile email"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    teams: dict[str, str] = {}
    admin_groups: tuple[str, ...] = ()
    allowed_groups: tuple[str, ...] = ()
    hours: float = 12.0


def read_oidc(path: Path, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """The settings of `[oidc]`, or None."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("oidc")
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"cannot read {path}: {error}", "check the file of --config") from None
    if found is None:
        return None
    try:
        table = OidcTable.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(("oidc", *map(str, first["loc"])))
        raise ConfigError(f"{path.name}: {where}: {first['msg']}", "see docs/howto/fleet.md") from None
    secret = resolve(table.client_secret, f"{path.name}: oidc.client_secret", environ)
    return {**table.model_dump(), "client_secret": secret}


def plan_chats(
    config: Configuration, channels: tuple[ServerChannel, ...], idle: tuple[str, ...], path: Path
) -> ChatPlan:
    prompts = config.general.prompts
    names = (*(channel.name for channel in channels), *idle)
    policy = PolicySettings(
        notify_idle=prompts.notify_idle,
        reminder_s=prompts.reminder_seconds,
        max_reminders=prompts.max_reminders,
        muted_tools=frozenset(prompts.muted_tools),
        attention=limit_attention(
            config.general.attention, server_escalation(config.general.escalation, names, path), PeopleBook()
        ),
    )
    return ChatPlan(channels, policy, idle=idle)


def _refuse_strange(data: Mapping[str, Any], path: Path) -> None:
    if "people" in data:
        raise ConfigError(
            f"{path.name}: people of a hub stand in its database",
            "atlasbridge fleet people add NAME, then: atlasbridge fleet people identity NAME telegram:1001",
        )
    strange = [name for name in data if name not in TABLES]
    strange += [f"prompts.{name}" for name in data.get("prompts", {}) if name not in PROMPTS]
    if strange:
        raise ConfigError(
            f"{path.name}: {strange[0]} is no setting of a hub",
            f"known: {', '.join(TABLES)}; of prompts: {', '.join(PROMPTS)}; the rest is set on each machine",
        )
    alone = [name for name in data.get("channels", {}) if name in HERE_ALONE]
    if alone:
        raise ConfigError(f"{path.name}: the channel {alone[0]} belongs to one machine", "remove it from this file")


def _fill_in(name: str, table: dict[str, Any], identities: tuple[str, ...], path: Path) -> bool:
    """Every person with an identity there takes part, and no one else. False if there is none."""
    if "allowed_users" in table:
        raise ConfigError(
            f"{path.name}: channels.{name}.allowed_users: the people are in the server's database",
            f"remove it, and say: atlasbridge fleet people identity NAME {name}:…",
        )
    team = f"{table['team_id']}/" if "team_id" in table else ""
    who = [identity.partition(":")[2] for identity in identities]
    here = [one.removeprefix(team) for one in who if one.startswith(team)]
    if here and name != "tell":
        table["allowed_users"] = [int(one) for one in here if one.isdecimal()] if name in NUMBERED else here
    return bool(here)


def server_escalation(
    entries: list[EscalationEntry], channels: tuple[str, ...], path: Path
) -> tuple[EscalationPolicy, ...]:
    """`who` are people of the server, or teams as `@team`; they are looked up when a prompt is raised."""
    place = f"{path.name}: escalation"
    return tuple(plan_escalation(number, entry, (AWAY, *channels), place) for number, entry in enumerate(entries))
