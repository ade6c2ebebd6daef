"""Groups host messages and replies into rounds: everything that arrives while a round is written belongs to the next
one.

Each action runs separately, in order of arrival, urgent ones first. One commit makes a round durable; only then are its
results published. Whether an action is valid is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar

from atlasbridge.core.errors import StoreError
from atlasbridge.core.store.ledger import Ledger

MOST_AT_ONCE: Final = 32  # limits how long one action waits for the others of its round
ALWAYS: Final = 8  # non-urgent actions in every round, so that they are not starved
T = TypeVar("T")
_Act = tuple[Callable[[], Any], asyncio.Future[Any]]
_Waiting = deque[_Act]


class Rounds:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._urgent: _Waiting = deque()
        self._others: _Waiting = deque()

    def start(self, act: Callable[[], T], urgent: bool = False) -> asyncio.Future[T]:
        """Returns a future with the outcome once it is on disk; on StoreError, nothing of it happened. `act` must not
        block.

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
        """Runs the remaining actions before the hub stops."""
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
                done.cancel()  # after an internal error nobody waits forever; otherwise this has no effect

    def _do(self, acts: list[_Act]) -> list[tuple[asyncio.Future[Any], Any, Exception | None]]:
        """Runs the actions and commits. Returns the outcome of each."""
        try:
            with self._ledger.batch(hurry=bool(self._urgent or self._others)):
                return [(done, *_attempt(act)) for act, done in acts if not done.cancelled()]
        except StoreError as error:
            return [(done, None, error) for _, done in acts]


def _attempt(act: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """An error in one action affects only its own caller."""
    try:
        return act(), None
    except Exception as fault:  # not a boundary: it is raised again for the caller of this action
        return None, fault


def _tell(done: asyncio.Future[Any], outcome: Any, fault: Exception | None) -> None:
    if done.done():
        return  # the caller has gone in the meantime
    if fault is None:
        done.set_result(outcome)
    else:
        done.set_exception(fault)
