"""What all parts of the hub share: its settings, the event stream, the connected hosts, the alarm of the store, and the
rounds in which it is written."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from atlasbridge.core import wire
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import Answer, PromptRecord, Receipt, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import WorkerSettings
from atlasbridge.core.values import field, frozen

if TYPE_CHECKING:
    from atlasbridge.core.daemon.rules import RuleService
    from atlasbridge.core.routing.router import PromptRouter
    from atlasbridge.core.scheduler.service import Scheduler
    from atlasbridge.core.store.ledger import Ledger


@frozen
class Retention:
    prompts_s: float = 90 * 86_400.0
    sessions_s: float = 90 * 86_400.0
    inbox_s: float = 14 * 86_400.0
    session_logs_s: float = 14 * 86_400.0
    listed_s: float = 7 * 86_400.0  # how long an ended session is listed


@frozen
class HubSettings:
    policy: PolicySettings = field(default_factory=PolicySettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    rate_limit_per_minute: int = 10
    type_timeout_s: float = 30.0  # how long a reply waits for the host to report that it was typed
    capture_timeout_s: float = 3.0
    host_patience_s: float = 10.0  # how long a reply waits for a host to reconnect, such as after a start of the hub
    host_lost_s: float = 60.0  # a host that is alive reconnects much earlier
    graceful_timeout_s: float = 5.0
    cleanup_every_s: float = 3600.0
    heads_to: tuple[str, ...] = ()  # channels that receive the audit log's head once a day
    # other users who decide like the hub's own user, when no session is among their ancestors
    members: frozenset[int] = frozenset()
    guests: frozenset[int] = frozenset()  # other users whose sessions can ask here; they can read, but never decide
    transport: str = "auto"  # how peers connect; see `core.hub_connection`. Only read at the start
    retention: Retention = field(default_factory=Retention)


QUEUE_LIMIT = 10_000
RECENT_LIMIT = 1_000
Hold = Callable[[Callable[[], None]], None]


class EventStream:
    """Delivers every event to all listeners; one that is too slow is disconnected. `hold` runs a function once the
    store has written the related changes to disk."""

    def __init__(self, clock: Clock, hold: Hold = lambda notification: notification()) -> None:
        self._clock = clock
        self._hold = hold
        self._listeners: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT_LIMIT)

    def publish(self, event: str, **fields: Any) -> None:
        message = {"event": event, "at": iso(self._clock.wall()), **fields}
        self._hold(lambda: self._tell(message))

    def _tell(self, message: dict[str, Any]) -> None:
        self._recent.append(message)
        for queue in tuple(self._listeners):
            if queue.qsize() >= QUEUE_LIMIT:
                self._listeners.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    def recent(self) -> list[dict[str, Any]]:
        return list(self._recent)

    def listen(self) -> Listener:
        """Starts with this call, not with the first wait, so that no event is lost between a listing and the stream."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._listeners.add(queue)
        return Listener(queue, self._listeners)

    def close(self) -> None:
        for queue in self._listeners:
            queue.put_nowait(None)
        self._listeners.clear()


class Listener(AsyncIterator[dict[str, Any]]):
    """One listener's position in the stream. It ends when the hub stops or the listener falls too far behind."""

    def __init__(
        self, queue: asyncio.Queue[dict[str, Any] | None], listeners: set[asyncio.Queue[dict[str, Any] | None]]
    ) -> None:
        self._queue = queue
        self._listeners = listeners

    async def __anext__(self) -> dict[str, Any]:
        message = await self._queue.get()
        if message is None:
            raise StopAsyncIteration
        return message

    def close(self) -> None:
        self._listeners.discard(self._queue)


REMOTE_HOST = 0  # used instead of a pid: the asker is at the other end of a network connection
WRITE_LIMIT = 8 * 1024 * 1024  # a host with this many unread bytes is disconnected; it connects again


class HostLink:
    def __init__(
        self,
        session_id: str,
        host_pid: int,
        writer: asyncio.StreamWriter | None,
        host_started: int = 0,
        tty: str = "",
        tool_started: int = 0,
        uid: int = -1,
    ) -> None:
        self.session_id = session_id
        self.host_pid = host_pid
        self.host_started = host_started  # distinguishes this host from a later process with the same pid; 0: unknown
        self.tool_started = tool_started
        self.uid = uid
        self.tty = tty  # the tool's terminal; "": unknown
        self.adapter: dict[str, Any] = {}  # the description that an external adapter gives of itself
        self.stopped = False  # stopped by job control: nothing is asked or typed until it continues
        self._writer = writer
        self._looks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._watchers: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._number = 0
        self.hold: Hold = lambda sending: sending()

    def send(self, kind: str, **fields: Any) -> None:
        """Sends the message once the store has written the related changes to disk."""
        self.hold(lambda: self._send({"m": kind, **fields}))

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is None or self._writer.is_closing():
            return
        self._writer.write(wire.encode(message))
        if self._writer.transport.get_write_buffer_size() > WRITE_LIMIT:
            self._writer.transport.abort()

    async def capture(self, styled: bool, timeout_s: float, past: bool = False) -> dict[str, Any] | None:
        """Requests the screen once, with the lines that scrolled off if `past` is set. Returns None if the host does
        not answer in time."""
        self._number += 1
        request = f"look-{self._number}"
        future = asyncio.get_running_loop().create_future()
        self._looks[request] = future
        self.send("capture", request=request, styled=styled, past=past)
        try:
            async with asyncio.timeout(timeout_s):
                return dict(await future)
        except TimeoutError:
            return None
        finally:
            del self._looks[request]

    def watch(self, fps: float) -> asyncio.Queue[dict[str, Any] | None]:
        """Returns a queue of screens as they change; None in it means that the host is gone. Only the newest unread
        screen is kept."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._watchers.add(queue)
        self.send("watch", on=True, fps=fps)
        return queue

    def unwatch(self, queue: asyncio.Queue[dict[str, Any] | None]) -> None:
        self._watchers.discard(queue)
        if not self._watchers:
            self.send("watch", on=False, fps=0)

    def screen_arrived(self, message: dict[str, Any]) -> None:
        screen = {name: value for name, value in message.items() if name not in ("m", "request")}
        future = self._looks.get(str(message.get("request") or ""))
        if future is not None:
            if not future.done():
                future.set_result(screen)
            return
        for queue in self._watchers:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(screen)

    def close(self) -> None:
        for future in self._looks.values():
            if not future.done():
                future.set_result({})
        for queue in self._watchers:
            queue.put_nowait(None)
        if self._writer is not None:
            self._writer.close()


class QuestionLink(HostLink):
    """A question that came over HTTP. Its messages wait in a queue; None means that no more will follow."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, REMOTE_HOST, None)
        self.told: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def _send(self, message: dict[str, Any]) -> None:
        self.told.put_nowait(message)

    def close(self) -> None:
        super().close()
        self.told.put_nowait(None)


class HostBook:
    """Maps each session to its link. A host that reconnects replaces its old link."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._links: dict[str, HostLink] = {}
        self._arrived = asyncio.Event()
        self._results: WeakValueDictionary[str, asyncio.Future[Receipt | Reject]] = WeakValueDictionary()

    def get(self, session_id: str) -> HostLink | None:
        return self._links.get(session_id)

    def add(self, link: HostLink) -> None:
        old = self._links.get(link.session_id)
        self._links[link.session_id] = link
        link.hold = self._hold
        if old is not None:
            old.close()
        self._arrived.set()

    async def wait(self, session_id: str, patience_s: float, is_known: Callable[[], bool] = lambda: False) -> None:
        """Waits until the session is connected, at most `patience_s` seconds, because after a start of the hub its host
        still has to reconnect. `is_known` ends the wait for a session that was connected before and has ended."""
        try:
            async with asyncio.timeout(patience_s):
                while session_id not in self._links and not is_known():
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return

    def order(self, record: PromptRecord, answer: Answer, by: str = "") -> bool:
        """Tells the host to type the answer. The host compares the screen and types once; its result arrives later."""
        link = self.get(record.session_id)
        if link is None:
            return False
        who = by or record.decided_by
        link.send("type", prompt_id=record.prompt_id, answer=answer.to_json(), by=who, nonce=record.nonce)
        return True

    def result(self, prompt_id: str) -> asyncio.Future[Receipt | Reject]:
        """The future result of an order to type. It exists only while somebody references it, so get it before the
        order is sent."""
        return self._results.setdefault(prompt_id, asyncio.get_running_loop().create_future())

    def tell_result(self, prompt_id: str, outcome: Receipt | Reject) -> None:
        """Publishes the result once it is on disk."""
        self._hold(lambda: self._tell_result(prompt_id, outcome))

    def _tell_result(self, prompt_id: str, outcome: Receipt | Reject) -> None:
        result = self._results.get(prompt_id)
        if result is not None and not result.done():
            result.set_result(outcome)

    def remove(self, link: HostLink) -> bool:
        """Returns True if this was the session's current link."""
        if self._links.get(link.session_id) is not link:
            return False
        del self._links[link.session_id]
        return True

    def all(self) -> list[HostLink]:
        return list(self._links.values())

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()


QUIET_S = 60.0  # people are notified at most once in this time, even if a disk keeps filling up and emptying
_ON = "AtlasBridge types nothing for you now, because it cannot record it: {alarm}. The keyboard still works."
_OFF = "Recording works again; answers are typed as before."


class StoreAlarm:
    """Notifies everybody when the store cannot record anything, and when it can again. `look_again` is called when an
    alarm starts: it schedules another attempt to write."""

    def __init__(self, stream: EventStream, router: PromptRouter, clock: Clock, look_again: Callable[[], None]) -> None:
        self._stream = stream
        self._router = router
        self._clock = clock
        self._look_again = look_again
        self._quiet_until = float("-inf")
        self._told_people = False

    def changed(self, alarm: str) -> None:
        """Called by the ledger, possibly inside a failed transaction, so this method must not write to the store."""
        if alarm:
            self._stream.publish("store.alarm", **describe_alarm(alarm))
            self._look_again()
            if self._clock.now() >= self._quiet_until:
                self._quiet_until, self._told_people = self._clock.now() + QUIET_S, True
                self._router.notify(_ON.format(alarm=alarm))
        else:
            self._stream.publish("store.recovered", sentence=_OFF)
            if self._told_people:
                self._told_people = False
                self._router.notify(_OFF)


def describe_alarm(alarm: str) -> dict[str, Any]:
    return {"alarm": alarm, "sentence": _ON.format(alarm=alarm)}


@frozen
class HubParts:
    ledger: Ledger
    clock: Clock
    stream: EventStream
    hosts: HostBook
    router: PromptRouter
    scheduler: Scheduler
    rules: RuleService
    rounds: Rounds


MOST_AT_ONCE: Final = 32  # limits how long one action waits for the others of its round
ALWAYS: Final = 8  # non-urgent actions in every round, so that they are not starved
T = TypeVar("T")
_Act = tuple[Callable[[], Any], asyncio.Future[Any]]
_Waiting = deque[_Act]


class Rounds:
    """Groups host messages and replies into rounds: everything that arrives while a round is written belongs to the
    next.

    Each action runs separately, in order of arrival, urgent ones first. One commit makes a round durable; only then are
    its results published.
    """

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
    except Exception as fault:  # the boundary between decisions: it is raised again for the caller of this one
        return None, fault


def _tell(done: asyncio.Future[Any], outcome: Any, fault: Exception | None) -> None:
    if done.done():
        return  # the caller has gone in the meantime
    if fault is None:
        done.set_result(outcome)
    else:
        done.set_exception(fault)
