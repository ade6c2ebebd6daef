"""What hosts say and what people answer, in rounds: whatever came in while the last round was written is the next one.

Each is done for itself, in the order in which it came, what somebody waits for before the rest; one commit makes all
of a round durable, and only then does anybody hear of anything in it.  Which of them is right is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from atlasbridge.core.errors import StoreError
from atlasbridge.core.store.ledger import Ledger

MOST_AT_ONCE: Final = 32  # so that nobody waits long for the others of a round
ALWAYS: Final = 8  # of what is not urgent, so that it comes to an end, too
T = TypeVar("T")
_Act = tuple[Callable[[], Any], asyncio.Future[Any]]
_Waiting = deque[_Act]


class Rounds:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._urgent: _Waiting = deque()
        self._others: _Waiting = deque()

    def start(self, act: Callable[[], T], urgent: bool = False) -> asyncio.Future[T]:
        """Its outcome, once that is on disk; StoreError: nothing of it happened.  `act` must not wait for anything.

        `urgent`: a person waits for it.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        if not self._urgent and not self._others:
            loop.call_soon(self._hold_round)
        (self._urgent if urgent else self._others).append((act, done))
        return done

    async def take(self, act: Callable[[], T], urgent: bool = False) -> T:
        return await self.start(act, urgent)

    def finish(self) -> None:
        """The hub ends: what came in is still done."""
        while self._urgent or self._others:
            self._hold_round()

    def _hold_round(self) -> None:
        first = min(len(self._urgent), MOST_AT_ONCE - min(ALWAYS, len(self._others)))
        acts = [self._urgent.popleft() for _ in range(first)]
        acts += [self._others.popleft() for _ in range(min(len(self._others), MOST_AT_ONCE - first))]
        if self._urgent or self._others:
            asyncio.get_running_loop().call_soon(self._hold_round)
        try:
            for done, outcome, fault in self._do(acts):
                _tell(done, outcome, fault)
        finally:
            for _, done in acts:
                done.cancel()  # after a fault of ours nobody waits for ever; otherwise all have heard

    def _do(self, acts: list[_Act]) -> list[tuple[asyncio.Future[Any], Any, Exception | None]]:
        """What came of each, and all of it on disk."""
        try:
            with self._ledger.together(hurry=bool(self._urgent or self._others)):
                return [(done, *_attempt(act)) for act, done in acts if not done.cancelled()]
        except StoreError as error:
            return [(done, None, error) for _, done in acts]


def _attempt(act: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """One act's fault is that of whoever wanted it, and of nobody else in the round."""
    try:
        return act(), None
    except Exception as fault:  # no boundary: it is raised again where this act is waited for
        return None, fault


def _tell(done: asyncio.Future[Any], outcome: Any, fault: Exception | None) -> None:
    if done.done():
        return  # whoever wanted it has gone meanwhile
    if fault is None:
        done.set_result(outcome)
    else:
        done.set_exception(fault)
