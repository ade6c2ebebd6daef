"""What the configuration says of people and escalation, in the words of `core.policy`.  Raises ConfigError."""

from __future__ import annotations

import os
from collections.abc import Mapping

from atlasbridge.config.load import Configuration
from atlasbridge.config.model import EscalationEntry, PersonEntry
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.attention import AttentionSettings
from atlasbridge.core.policy.escalation import AWAY, HERE, EscalationPolicy, EscalationStep, PresenceSettings
from atlasbridge.core.policy.people import PeopleBook, Person, parse_quiet
from atlasbridge.core.scheduler.times import find_zone

Allowed = Mapping[str, frozenset[str] | None]


def plan_attention(config: Configuration, allowed: Allowed) -> AttentionSettings:
    """`allowed`: who may answer, by channel."""
    general = config.general
    for number, entry in enumerate(general.people):
        _check_identities(f"people.{number}", entry, allowed)
    try:
        book = PeopleBook.of(*(_person(number, entry) for number, entry in enumerate(general.people)))
    except ValueError as error:
        raise ConfigError(f"people: {error}", "give each identity to one person only") from None
    table = general.attention
    return AttentionSettings(
        people=book,
        escalation=tuple(
            _escalation_policy(number, entry, book, allowed) for number, entry in enumerate(general.escalation)
        ),
        presence=PresenceSettings(
            table.presence_seconds, table.presence_longest_seconds if table.presence_seconds else 0.0
        ),
        digest_s=table.digest_seconds,
        notices_per_hour=table.notices_per_hour,
    )


def _person(number: int, entry: PersonEntry) -> Person:
    try:
        find_zone(entry.zone)
        return Person(entry.name, tuple(entry.identities), tuple(map(parse_quiet, entry.quiet)), entry.zone)
    except ValueError as error:
        raise ConfigError(f"people.{number} ({entry.name}): {error}", "correct it in config.toml") from None


def _check_identities(place: str, entry: PersonEntry, allowed: Allowed) -> None:
    """A slip of the pen would make somebody else of a person: it must be somebody whom the channel knows."""
    for identity in entry.identities:
        channel, colon, who = identity.partition(":")
        if not (colon and channel and who):
            raise ConfigError(
                f"{place}: {identity!r} is no identity", 'write it as "telegram:1001", "slack:T1/U2" or "cli:local"'
            )
        people = allowed.get(channel)
        if people is not None and identity not in people:
            known = ", ".join(sorted(people)) or "nobody"
            raise ConfigError(
                f"{place}: {identity!r} may not answer in {channel}", f"allowed_users of [channels.{channel}]: {known}"
            )


def _escalation_policy(number: int, entry: EscalationEntry, book: PeopleBook, allowed: Allowed) -> EscalationPolicy:
    channels = {HERE, AWAY, "local", *allowed}
    steps = []
    for step in entry.steps:
        for name in step.who:
            if book.named(name) is None:
                known = ", ".join(person.name for person in book.people) or "nobody yet"
                raise ConfigError(f"escalation.{number}: there is nobody called {name!r}", f"[[people]] has: {known}")
        for channel in step.channels:
            if channel not in channels:
                raise ConfigError(
                    f"escalation.{number}: there is no channel {channel!r} here",
                    f"known: {', '.join(sorted(channels))}",
                )
        steps.append(EscalationStep(step.after_seconds, tuple(step.who), tuple(step.channels), step.loud))
    return EscalationPolicy(
        tuple(steps), entry.name, entry.tool, os.path.expanduser(entry.folder), entry.label, entry.kind, entry.urgent
    )
