"""Whether a desk of many machines asks people in its chats: then this hub's own chats keep still.

The desk must be heard of, must carry chats at all, and must say of each prompt that it asks somebody; where any of
that fails, this hub's own ladder goes on by itself.  The page, the terminal and notifications here never wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.desk_outbox import CHANNEL
from atlasbridge.core.policy.ladder import Outlet
from atlasbridge.core.session.model import SessionRecord

SILENT_S = 60.0  # so long after the desk's last word this hub asks in its own chats again
WORD_S = 10.0  # so long a new prompt waits for the desk's word that it asks somebody
LOOK_S = 5.0  # as often it is looked at again


class Entrusted:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard_at = float("-inf")
        self._carries = False
        self._asked: set[str] = set()

    def heard(self, carries: bool | None = None) -> bool:
        """A word of the desk; `carries`: whether it has chats at all.  True: that has just ended."""
        self._heard_at = self._clock.now()
        ended = self._carries and carries is False
        self._carries = self._carries if carries is None else carries
        return ended

    def asks(self, prompt_ids: Iterable[str]) -> None:
        self._asked.update(prompt_ids)

    def forget(self, prompt_id: str) -> None:
        self._asked.discard(prompt_id)

    def holds(self, prompt_id: str, asked_at: float, session: SessionRecord) -> bool:
        """Whether this hub's own chats keep still about that prompt, for now."""
        if not self._carries or self._clock.now() - self._heard_at > SILENT_S:
            return False
        if session.channels is not None and CHANNEL not in session.channels:
            return False  # the desk does not know of it
        return prompt_id in self._asked or self._clock.now() - asked_at < WORD_S


def without_chats(lanes: tuple[Outlet, ...]) -> tuple[Outlet, ...]:
    return tuple(lane for lane in lanes if not lane.remote or lane.name == CHANNEL)
