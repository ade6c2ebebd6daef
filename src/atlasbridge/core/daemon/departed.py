"""Who is sent away takes along what they had kept for later: answers with a moment, instructions, grants and votes.

A stolen phone that was revoked must not go on answering in its owner's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atlasbridge.core.routing.policy import is_listed
from atlasbridge.core.routing.router import LOCAL, PromptRouter

if TYPE_CHECKING:
    from atlasbridge.core.daemon.later_desk import LaterDesk
    from atlasbridge.core.daemon.queue_desk import QueueDesk
    from atlasbridge.core.store.ledger import Ledger

OWN = "cli"  # the channel of this user's own commands


class Departed:
    def __init__(self, ledger: Ledger, later: LaterDesk, queue: QueueDesk, router: PromptRouter) -> None:
        self._ledger, self._later, self._queue, self._router = ledger, later, queue, router

    def send_away(self, identity: str) -> int:
        """All that is kept of this identity ends; how much there was."""
        return self._end(lambda one: one == identity)

    def forget_strangers(self) -> int:
        """The same for everybody who is not on a list any more."""
        return self._end(lambda one: not self._is_known(one))

    def _is_known(self, identity: str) -> bool:
        channel = identity.partition(":")[0]
        return channel in (OWN, LOCAL) or is_listed(channel, identity, self._router.policy)

    def _end(self, gone: Callable[[str], bool]) -> int:
        ended = self._later.drop(gone) + self._queue.drop(gone)
        for grant in [one for one in self._ledger.live_grants() if gone(one.by)]:
            ended += len(self._ledger.revoke_grants(grant.grant_id, "revoked"))
        return ended + self._ledger.drop_votes(gone)
