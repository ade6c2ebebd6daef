"""Decides who is notified, for how long, who is allowed to answer, and what a timer is allowed to type.

Pure; it never judges whether a command is dangerous.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from atlasbridge.core.policy.escalation import (
    AttentionSettings,
    EscalationPolicy,
    Route,
    choose_escalation,
    default_escalation,
)
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.prompt.timer import timer_can_answer
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import field, frozen


@frozen
class PolicySettings:
    prompt_ttl_s: float = 600.0
    idle_ttl_s: float = 86_400.0
    free_text_enabled: bool = True
    notify_idle: bool = True
    reminder_s: float = 300.0  # 0: no reminder
    max_reminders: int = 1
    muted_tools: frozenset[str] = frozenset()
    timer_types: frozenset[PromptType] = frozenset(
        {
            PromptType.TYPE_YES_NO,
            PromptType.TYPE_CONFIRM_ENTER,
            PromptType.TYPE_MULTIPLE_CHOICE,
        }
    )
    # how an attached terminal is notified that a timer answers: "bell", "osc9", "title", "none"
    timer_signal: str = "bell"
    # None: the channel knows its people itself
    allowed: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    attention: AttentionSettings = field(default_factory=AttentionSettings)


@frozen
class Audience:
    """The channels in `ask` get the prompt. Those in `tell` only learn that something waits, because they must not
    carry it."""

    ask: tuple[str, ...] = ()
    tell: tuple[str, ...] = ()


def decide_audience(
    prompt: Prompt, session: SessionRecord, channels: Iterable[tuple[str, bool]], settings: PolicySettings
) -> Audience:
    """`channels`: each name, and whether its text leaves this machine. A session's own choice of channels takes
    precedence."""
    chosen = [(name, remote) for name, remote in channels if session.channels is None or name in session.channels]
    if session.tool in settings.muted_tools or _rests(prompt) or (prompt.idle and not settings.notify_idle):
        chosen = []
    if prompt.type is PromptType.TYPE_FREE_TEXT and not settings.free_text_enabled and not prompt.secret:
        chosen = [(name, remote) for name, remote in chosen if not remote]
    return Audience(
        ask=tuple(name for name, remote in chosen if not (remote and prompt.secret)),
        tell=tuple(name for name, remote in chosen if remote and prompt.secret),
    )


def _rests(prompt: Prompt) -> bool:
    """Whether it is a known editor or pager that takes keys: it is listed, but nobody is notified."""
    return prompt.idle and prompt.type is PromptType.TYPE_UNKNOWN and bool(prompt.constraints.get("commands"))


def decide_ttl(prompt: Prompt, settings: PolicySettings) -> float:
    """An idle input box waits for the next instruction, not for a decision, so it stays open for long."""
    return settings.idle_ttl_s if prompt.idle else settings.prompt_ttl_s


def decide_timer_default(prompt: Prompt, settings: PolicySettings) -> bool:
    """Whether the safe default is allowed to be typed when nobody has answered."""
    return prompt.type in settings.timer_types and timer_can_answer(prompt)


def decide_allowed(channel: str, identity: str, *, remote: bool, prompt: Prompt, settings: PolicySettings) -> bool:
    """Whether this person is allowed to answer this prompt through this channel. A channel that is not configured is
    refused."""
    if prompt.secret and remote:
        return False
    return is_listed(channel, identity, settings)


def is_listed(channel: str, identity: str, settings: PolicySettings) -> bool:
    """Whether the channel's list contains this identity. The page and a fleet server know their people themselves."""
    if channel not in settings.allowed:
        return False
    people = settings.allowed[channel]
    return people is None or identity in people


def decide_reminders(prompt: Prompt, settings: PolicySettings) -> tuple[float, ...]:
    """Seconds after the question at which people are reminded, all before it expires."""
    if settings.reminder_s <= 0 or prompt.idle:
        return ()
    ttl_s = decide_ttl(prompt, settings)
    moments = (settings.reminder_s * (number + 1) for number in range(settings.max_reminders))
    return tuple(moment for moment in moments if moment < ttl_s)


def decide_escalation(prompt: Prompt, session: SessionRecord, settings: PolicySettings) -> EscalationPolicy:
    """The first configured policy that matches; otherwise all channels at once, and the reminders."""
    default = default_escalation(decide_reminders(prompt, settings))
    return choose_escalation(settings.attention.escalation, prompt, session, default)


def decide_route(channel: str, remote: bool, settings: PolicySettings) -> Route:
    """A channel and the people it reaches, by name; people without a name are listed by identity."""
    identities = settings.allowed.get(channel) or ()
    names = sorted({settings.attention.people.person_of(identity) for identity in identities})
    return Route(channel, remote, tuple(names))
