"""What is asked of a desk for many machines besides its rows: channels to carry, ladders, and how much is too much."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from atlasbridge.core.policy.ladder import Ladder, PresenceSettings
from atlasbridge.core.ports import Channel, Desk
from atlasbridge.core.routing.courier import CourierSettings
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import field, frozen


@frozen
class ChatLane:
    """A channel that the desk is to carry.  `personal`: each person has a chat of their own there."""

    name: str
    personal: bool
    build: Callable[[Desk], Channel]
    key: str  # of its settings: where they are the same, the channel stays as it is


@frozen
class ChatPlan:
    lanes: tuple[ChatLane, ...] = ()
    ladders: tuple[Ladder, ...] = ()
    policy: PolicySettings = field(default_factory=PolicySettings)  # of reminders, idle boxes and muted tools
    presence: PresenceSettings = field(default_factory=PresenceSettings)
    together_s: float = 30.0  # after a sound, what comes within so long makes none for that person
    notices_per_hour: int = 60
    courier: CourierSettings = field(default_factory=CourierSettings)
    idle: tuple[str, ...] = ()  # channels in which nobody takes part


ReadPlan = Callable[[Mapping[str, tuple[str, ...]]], ChatPlan]
"""From the identities that take part, by channel.  Raises ConfigError."""
