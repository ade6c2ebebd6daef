"""Converts the configuration into the hub's own settings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from atlasbridge.config.load import Configuration
from atlasbridge.config.model import Attention, EscalationEntry, PersonEntry
from atlasbridge.core.daemon.parts import HubSettings, Retention
from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import wants_loopback
from atlasbridge.core.policy.escalation import (
    AWAY,
    HERE,
    AttentionSettings,
    EscalationPolicy,
    EscalationStep,
    PeopleBook,
    Person,
    PresenceSettings,
    parse_quiet,
)
from atlasbridge.core.policy.rule import Policy
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import WorkerSettings
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.scheduler.times import find_zone
from atlasbridge.core.values import replace

# Converts the settings of people and escalation into the types of `core.policy`. Raises ConfigError.

Allowed = Mapping[str, frozenset[str] | None]


def plan_attention(config: Configuration, allowed: Allowed) -> AttentionSettings:
    """`allowed` are the people who are allowed to answer, by channel."""
    general = config.general
    for number, entry in enumerate(general.people):
        _check_identities(f"people.{number}", entry, allowed)
    try:
        book = PeopleBook.of(*(_person(number, entry) for number, entry in enumerate(general.people)))
    except ValueError as error:
        raise ConfigError(f"people: {error}", "give each identity to one person only") from None
    escalation = (_escalation_policy(number, entry, book, allowed) for number, entry in enumerate(general.escalation))
    return limit_attention(general.attention, tuple(escalation), book)


def limit_attention(
    table: Attention, escalation: tuple[EscalationPolicy, ...], people: PeopleBook
) -> AttentionSettings:
    longest_s = table.presence_longest_seconds if table.presence_seconds else 0.0
    presence = PresenceSettings(table.presence_seconds, longest_s)
    return AttentionSettings(people, escalation, presence, table.digest_seconds, table.notices_per_hour)


def _person(number: int, entry: PersonEntry) -> Person:
    try:
        find_zone(entry.zone)
        quiet = tuple(map(parse_quiet, entry.quiet))
        return Person(entry.name, tuple(entry.identities), quiet, entry.zone, entry.language)
    except ValueError as error:
        raise ConfigError(f"people.{number} ({entry.name}): {error}", "correct it in config.toml") from None


def _check_identities(place: str, entry: PersonEntry, allowed: Allowed) -> None:
    """A typo would turn a person into somebody else, so each identity must be known to its channel."""
    for identity in entry.identities:
        channel, colon, who = identity.partition(":")
        if not (colon and channel and who):
            raise ConfigError(
                f"{place}: {identity!r} is not an identity", 'write it as "telegram:1001", "slack:T1/U2" or "cli:local"'
            )
        people = allowed.get(channel)
        if people is not None and identity not in people:
            known = ", ".join(sorted(people)) or "nobody"
            raise ConfigError(
                f"{place}: {identity!r} may not answer in {channel}", f"allowed_users of [channels.{channel}]: {known}"
            )


def _escalation_policy(number: int, entry: EscalationEntry, book: PeopleBook, allowed: Allowed) -> EscalationPolicy:
    for name in (name for step in entry.steps for name in step.who):
        if book.named(name) is None:
            known = ", ".join(person.name for person in book.people) or "nobody yet"
            raise ConfigError(f"escalation.{number}: there is no person named {name!r}", f"[[people]] has: {known}")
    plan = plan_escalation(number, entry, (HERE, AWAY, "local", *allowed))
    return replace(plan, folder=os.path.expanduser(entry.folder))


def plan_escalation(
    number: int, entry: EscalationEntry, channels: Iterable[str], place: str = "escalation"
) -> EscalationPolicy:
    known = sorted(set(channels))
    for channel in (name for step in entry.steps for name in step.channels):
        if channel not in known:
            raise ConfigError(f"{place}.{number}: there is no channel {channel!r} here", f"known: {', '.join(known)}")
    steps = [EscalationStep(one.after_seconds, tuple(one.who), tuple(one.channels), one.loud) for one in entry.steps]
    return EscalationPolicy(tuple(steps), entry.name, entry.tool, entry.folder, entry.label, entry.kind, entry.urgent)


DAY_S = 86_400.0


def hub_settings(config: Configuration) -> HubSettings:
    hub, keep = config.general.hub, config.general.retention
    return HubSettings(
        policy=plan_policy(config),
        worker=WorkerSettings(hub.channel_timeout_seconds, hub.retry_first_seconds, hub.retry_last_seconds),
        rate_limit_per_minute=config.general.prompts.replies_per_minute,
        type_timeout_s=hub.type_timeout_seconds,
        host_lost_s=hub.host_lost_seconds,
        graceful_timeout_s=hub.graceful_timeout_seconds,
        guests=frozenset(user_number(name) for name in (*hub.users, *hub.members)),
        heads_to=tuple(hub.audit_heads_to),
        members=frozenset(user_number(name) for name in hub.members),
        transport=transport_of(config),
        cleanup_every_s=keep.cleanup_every_seconds,
        retention=Retention(
            prompts_s=keep.prompts_days * DAY_S,
            sessions_s=keep.sessions_days * DAY_S,
            inbox_s=keep.inbox_days * DAY_S,
            session_logs_s=keep.logs_days * DAY_S,
            listed_s=keep.session_max_age_hours * 3600,
        ),
    )


def transport_of(config: Configuration) -> str:
    """Other users cannot read the key of a hub with a port, so they need a socket."""
    hub = config.general.hub
    if wants_loopback(hub.transport) and (hub.users or hub.socket):
        raise ConfigError("hub.users and hub.socket need a Unix socket", "a hub at a port is its own user's alone")
    return hub.transport


def user_number(name: str) -> int:
    """The id of a user of this machine, by name or as a number."""
    import pwd

    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ConfigError(f"hub.users: there is no user {name!r} here", "use names as in /etc/passwd") from None


def plan_policy(config: Configuration) -> PolicySettings:
    prompts = config.general.prompts
    by_timer = {
        PromptType.TYPE_YES_NO: prompts.safe_default.yes_no,
        PromptType.TYPE_CONFIRM_ENTER: prompts.safe_default.confirm_enter,
        PromptType.TYPE_MULTIPLE_CHOICE: prompts.safe_default.multiple_choice,
        PromptType.TYPE_FREE_TEXT: prompts.safe_default.free_text,
    }
    allowed = {name: allowed_people(name, table) for name, table in config.channels.items()}
    return PolicySettings(
        prompt_ttl_s=prompts.timeout_seconds,
        idle_ttl_s=prompts.idle_timeout_seconds,
        free_text_enabled=prompts.free_text_enabled,
        notify_idle=prompts.notify_idle,
        reminder_s=prompts.reminder_seconds,
        max_reminders=prompts.max_reminders,
        muted_tools=frozenset(prompts.muted_tools),
        timer_types=frozenset(kind for kind, value in by_timer.items() if value != "none"),
        timer_signal=prompts.timer_signal,
        allowed=allowed,
        attention=plan_attention(config, allowed),
    )


# their settings list people
BUILT_IN_CHANNELS = frozenset(("telegram", "slack", "discord", "matrix", "ntfy", "tell", "desktop", "local"))
OPERATOR = "operator"  # the only person of a channel that was written from the specification alone; it reports no names


def allowed_people(channel: str, table: Mapping[str, Any]) -> frozenset[str] | None:
    """Who is allowed to answer there; None if the channel identifies its people itself, as the page does by login."""
    if channel == "web":
        return None
    team = f"{table['team_id']}/" if "team_id" in table else ""
    nobody_named = () if channel in BUILT_IN_CHANNELS else (OPERATOR,)
    return frozenset(f"{channel}:{team}{person}" for person in table.get("allowed_users", nobody_named))


# The person's own rules: their file, their content, and how people are notified of decisions by rules.


def plan_rules(home: Home, config: Configuration) -> HubRules:
    """Read the person's own rules. Raises ConfigError with the line."""
    table = config.general.policy
    path = policy_file(home, config)
    rules = HubRules(
        home=os.path.expanduser("~"),
        tell=table.tell,
        digest_s=table.digest_hours * 3600,
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
