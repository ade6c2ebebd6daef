"""Sends messages to chats: questions first, in order per chat, within the service's rate limit, with retries. And the
connection on which a chat's updates come.

Only the newest edit of a message is sent. The wire does the transport.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol

from atlasbridge.channels.base import TaskSet
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError

log = logging.getLogger(__name__)

# The queue of one chat: one message at a time, questions before edits, edits before notices.

QUESTION, EDIT, NOTICE = 0, 1, 2


class Turns:
    def __init__(self) -> None:
        self._busy = False
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def take(self, urgency: int) -> AsyncIterator[None]:
        await self._wait(urgency)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, urgency: int) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (urgency, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the turn was given to us already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False


# The rate of a channel: token bucket and backoff. Pure: time is an argument.


@dataclass(slots=True)
class TokenBucket:
    """`rate` messages a second on average, at most `burst` at once."""

    rate: float
    burst: float
    tokens: float = field(default=-1.0)
    updated_at: float = 0.0

    def reserve(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it."""
        if self.tokens < -0.5 and self.updated_at == 0.0:
            self.tokens, self.updated_at = self.burst, now
        self.tokens = min(self.burst, self.tokens + (now - self.updated_at) * self.rate)
        self.updated_at = now
        self.tokens -= 1.0
        return max(0.0, -self.tokens / self.rate)


@dataclass(slots=True)
class Backoff:
    """1 s, doubling, at most 60 s. A success resets it."""

    first_s: float = 1.0
    cap_s: float = 60.0
    failures: int = 0

    def next_wait(self) -> float:
        wait_s: float = min(self.cap_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return wait_s

    def reset(self) -> None:
        self.failures = 0


BURST = 3.0
SHORT_WAIT_S = 3.0
NOTICE_LIFE_S = 600.0  # an older notice is no longer of interest
KEPT_REFUSALS = 5
Place = tuple[str, str]  # chat, message
Params = dict[str, Any]


class Posted(NamedTuple):
    """A message's id, and when it was posted by the chat's own clock (0: unknown)."""

    message: str
    at: float = 0.0


class Refused(ChannelError):
    """The service refused the request. `flood_s`: retry after that many seconds; `gone`: the chat does not exist any
    more; `state`: what the connection is after it."""

    def __init__(
        self, message: str, *, flood_s: float | None = None, gone: bool = False, state: str = "failing"
    ) -> None:
        super().__init__(message)
        self.flood_s, self.gone, self.state = flood_s, gone, state


class Unreachable(ChannelError):
    """No valid answer; it is worth a retry."""


class HideTokens(logging.Filter):
    """Removes what a pattern finds from log records of a library, and tracebacks, which contain it, too."""

    def __init__(self, token: re.Pattern[str], shown: str) -> None:
        super().__init__()
        self._token, self._shown = token, shown

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self._token.sub(self._shown, record.getMessage()), ()
        record.exc_info, record.exc_text = None, None
        return True


class Wire(Protocol):
    """Each method makes one attempt and raises Refused or Unreachable. An edit that changes nothing succeeds."""

    async def post(self, chat: str, params: Params) -> Posted:
        """Send a message."""

    async def edit(self, place: Place, params: Params) -> None: ...
    async def close(self) -> None: ...


class Connection(ABC):
    """Receives what a service tells: it connects again after an error, and says when its state changes."""

    title: ClassVar[str]

    def __init__(self, backoff_first_s: float, changed: Callable[[str, str], Awaitable[None]] | None = None) -> None:
        self._backoff, self._changed = Backoff(backoff_first_s), changed
        self.state, self.detail, self.bot = "starting", "", ""

    @abstractmethod
    async def _live(self) -> None:
        """Serve one connection until it is lost."""

    async def run(self) -> None:
        while True:
            try:
                await self._live()
                await self._move("unreachable", "the connection was lost")
            except Refused as fault:
                await self._move(fault.state, str(fault))
            except ChannelError as fault:
                await self._move("unreachable", str(fault))
            except Exception as fault:  # the channel boundary: report the error and retry
                log.exception("the connection to %s failed", self.title)
                await self._move("failing", type(fault).__name__)
            await asyncio.sleep(self._backoff.next_wait())

    async def _move(self, state: str, detail: str = "") -> None:
        before, self.state, self.detail = self.state, state, detail
        if state == "ok":
            self._backoff.reset()
        if state != before:
            log.log(logging.INFO if state == "ok" else logging.WARNING, "%s is %s %s", self.title, state, detail)
            if self._changed is not None:
                await self._changed(state, detail)


class Outbox:
    def __init__(self, wire: Wire, clock: Clock, rate: Callable[[str], float], backoff_first_s: float) -> None:
        self._wire, self._clock = wire, clock
        self._rate, self._backoff_first_s = rate, backoff_first_s
        self._turns: dict[str, Turns] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._not_before: dict[str, float] = {}
        self._edits: dict[Place, Params] = {}
        self._tasks = TaskSet("outbox")
        self.gone: set[str] = set()
        self.refused: deque[str] = deque(maxlen=KEPT_REFUSALS)  # messages that the service refused, newest last

    @property
    def pending(self) -> int:
        return len(self._tasks)

    async def send(
        self,
        chat: str,
        params: Params,
        still_wanted: Callable[[], bool] | None = None,
        urgency: int = QUESTION,
    ) -> Posted:
        """Send when it is this chat's turn.

        Without `still_wanted`, there is one attempt, and a failure raises ChannelError. With it, the call waits for the
        end of an outage or a long flood limit as long as the message is still wanted.
        """
        backoff = Backoff(self._backoff_first_s)
        while still_wanted is None or still_wanted():
            await self._wait_out_flood(chat, patient=still_wanted is not None)
            try:
                async with self._turn(chat, urgency):
                    await self._wait_for_token(chat)
                    posted = await self._wire.post(chat, params)
            except (Refused, Unreachable) as fault:
                wait_s = self._wait_after(chat, fault, backoff)
                if still_wanted is None and isinstance(fault, Unreachable):
                    raise
                await asyncio.sleep(wait_s)
            else:
                self.gone.discard(chat)
                return posted
        raise ChannelError("it was no longer wanted when the service could be reached")

    def post(self, chat: str, params: Params, urgency: int = NOTICE) -> None:
        """Call send() in the background and retry for a while. Refusals are logged."""
        until = self._clock.now() + NOTICE_LIFE_S
        self._tasks.hold(self.send(chat, params, lambda: self._clock.now() < until, urgency))

    def edit(self, place: Place, params: Params) -> None:
        """Edit the message soon. Earlier edits that are still waiting are dropped."""
        running = place in self._edits
        self._edits[place] = params
        if not running:
            self._tasks.hold(self._edit(place))

    async def close(self) -> None:
        await self._tasks.close(grace_s=1.0)

    async def _edit(self, place: Place) -> None:
        try:
            await self._edit_until_done(place)
        finally:
            self._edits.pop(place, None)

    async def _edit_until_done(self, place: Place) -> None:
        backoff = Backoff(self._backoff_first_s)
        while place in self._edits:
            await self._wait_out_flood(place[0])
            try:
                async with self._turn(place[0], EDIT):
                    await self._wait_for_token(place[0])
                    params = self._edits[place]
                    await self._wire.edit(place, params)
            except (Refused, Unreachable) as fault:
                await asyncio.sleep(self._wait_after(place[0], fault, backoff))
                continue
            if self._edits[place] is params:
                del self._edits[place]

    def _turn(self, chat: str, urgency: int) -> Any:
        """Allow one message at a time in each chat. Callers wait for outages outside of their turn."""
        return self._turns.setdefault(chat, Turns()).take(urgency)

    async def _wait_for_token(self, chat: str) -> None:
        bucket = self._buckets.setdefault(chat, TokenBucket(self._rate(chat), BURST))
        await asyncio.sleep(bucket.reserve(self._clock.now()))

    async def _wait_out_flood(self, chat: str, patient: bool = True) -> None:
        """Wait until the service accepts messages again."""
        wait_s = self._not_before.get(chat, 0.0) - self._clock.now()
        if wait_s > SHORT_WAIT_S and not patient:
            raise ChannelError(f"the service wants no message to {chat} for {wait_s:.0f} s")
        await asyncio.sleep(max(0.0, wait_s))

    def _wait_after(self, chat: str, fault: Refused | Unreachable, backoff: Backoff) -> float:
        """Return how long to wait before the next attempt; raise the fault if a retry is useless."""
        if isinstance(fault, Unreachable):
            return backoff.next_wait()
        if fault.flood_s is not None:
            self._not_before[chat] = self._clock.now() + fault.flood_s
            return 0.0
        if fault.gone:
            self.gone.add(chat)
        else:
            self.refused.append(str(fault))
        raise fault
