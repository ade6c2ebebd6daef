"""`response_consumer`: the session's connection to the hub. It reports events and carries out the hub's requests.

The hub can disappear at any time: the host reconnects and repeats everything that still matters in its `hello`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import Clock
from atlasbridge.core.home import Home
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.typed import Outcome
from atlasbridge.core.host.typist import Typist
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.host.watchdog import StallWatchdog
from atlasbridge.core.hub_connection import dial_hub
from atlasbridge.core.peer import Peer, is_inside, look_at, meet, trace_ancestry, voucher
from atlasbridge.core.process import own_environ, own_python, spawn_alone, start_alone
from atlasbridge.core.prompt.model import Answer
from atlasbridge.core.prompt.redact import mask_rows, mask_styled, redact_outgoing
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.system import OWN_FILE, POLLERR, POLLHUP, POLLIN, POLLOUT, make_poller, try_share
from atlasbridge.core.values import replace

_MAX_OUTBOX = 256
_SEND_BYTES = 65536
# lets a deliberate restart of the hub win, and does not restart a hub that dies at once in a tight loop
_RESTART_PAUSE_S = 0.5

Message = dict[str, Any]


class HubLink:
    def __init__(
        self,
        path: str,
        clock: Clock,
        settings: SessionSettings,
        greet: Callable[[Callable[[Message], None]], None],
        receive: Callable[[Message], None],
        start_hub: Callable[[], None],
    ) -> None:
        self._path = path
        self._clock = clock
        self._settings = settings
        self._greet = greet  # says hello through the given function, with no other message in between
        self._receive = receive
        self._start_hub = start_hub
        self._wakeup = Wakeup()
        self._lock = threading.Lock()
        self._outbox: deque[bytes] = deque()
        self._unsent = b""
        self._connected = False
        self._serving: socket.socket | None = None
        self._stopped = False
        self._may_start_at: float | None = 0.0  # when we are allowed to start a hub; None: we do not start one
        self._hub_means_it = False
        self.hub = Peer(0, 0)  # the process whose requests we carry out

    @property
    def connected(self) -> bool:
        return self._connected

    def post(self, message: Message) -> None:
        """Sends the message now. Without a hub it is dropped, because `hello` repeats everything that still matters."""
        with self._lock:
            if not self._connected:
                return
            if message.get("m") == "screen" and len(self._outbox) > _MAX_OUTBOX:
                return
            self._outbox.append(wire.encode(message))
        self._wakeup.set()

    def stop(self) -> None:
        self._stopped = True
        self._wakeup.set()

    def run(self, beat: Beat) -> None:
        delay_s = self._settings.hub_retry_min_s
        while not (self._stopped or beat.retired):
            connection = self._connect()
            if connection is None:
                beat.rest()
                self._wakeup.wait(delay_s)
                delay_s = min(delay_s * 2, self._settings.hub_retry_max_s)
                continue
            delay_s = self._settings.hub_retry_min_s
            began = self._clock.now()
            try:
                self._serve(connection, beat)
                if not self._hub_means_it:  # it died: a hub is needed to notify people
                    self._may_start_at = self._clock.now() + _RESTART_PAUSE_S
            finally:
                with self._lock:
                    if self._serving is connection:  # otherwise this thread has been replaced
                        self._connected = False
                connection.close()
            if self._clock.now() - began < delay_s and not (self._stopped or beat.retired):
                beat.rest()
                self._wakeup.wait(delay_s)  # avoids a tight loop with a hub that disconnects at once (its disk is full)

    def _connect(self) -> socket.socket | None:
        try:
            connection, self.hub = dial_hub(self._path)
        except OSError:
            if self._may_start_at is not None and self._clock.now() >= self._may_start_at:
                self._may_start_at = None
                self._start_hub()
            return None
        self._may_start_at, self._hub_means_it = None, False
        connection.setblocking(False)
        return connection

    def _say_hello(self, message: Message) -> None:
        with self._lock:
            self._outbox.clear()
            self._unsent = wire.encode(message)
            self._connected = True

    def _serve(self, connection: socket.socket, beat: Beat) -> None:
        self._serving = connection
        self._greet(self._say_hello)
        buffer = wire.LineBuffer()
        waiter = make_poller()
        waiter.register(self._wakeup.fileno(), POLLIN)
        while not (self._stopped and not self._outbox and not self._unsent) and not beat.retired:
            wants_out = POLLOUT if self._unsent or self._outbox else 0
            waiter.register(connection, POLLIN | wants_out)
            beat.rest()
            ready = dict(waiter.poll())
            beat.work()
            if self._wakeup.fileno() in ready:
                self._wakeup.clear()
            events = ready.get(connection.fileno(), 0)
            try:
                if events & POLLOUT:
                    self._send_some(connection)
                if events & (POLLIN | POLLHUP | POLLERR) and not self._read(connection, buffer):
                    return
            except (OSError, ValueError):
                return

    def _send_some(self, connection: socket.socket) -> None:
        with self._lock:
            while self._outbox and len(self._unsent) < _SEND_BYTES:
                self._unsent += self._outbox.popleft()
        try:
            self._unsent = self._unsent[connection.send(self._unsent) :]
        except BlockingIOError:
            pass

    def _read(self, connection: socket.socket, buffer: wire.LineBuffer) -> bool:
        try:
            data = connection.recv(_SEND_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        for message in buffer.feed(data):
            if message.get("m") == "goodbye":
                self._hub_means_it = True
            else:
                self._receive(message)
        return True


# What the session reports to the hub and does for it: prompts, answers, screens, the end.
#
# `HubLink` handles the connection itself; the typist types.

MODES_FOR_KEYS = frozenset({1, 2004})  # modes that change how keys and pasted text are sent
_AFTER_TYPING = ("taken", "still_there")
_FAREWELL_LOOK_S = 0.01
_MOST_WORDS = 256
LAST_LINES, LAST_CHARACTERS = 2000, 256 * 1024  # stored lines above the last screen of an ended session


class HubSide:
    def __init__(
        self,
        record: SessionRecord,
        path: str,
        ttl_s: float | None,
        watch: StallWatchdog,
        typist: Typist,
        clock: Clock,
        settings: SessionSettings,
        start_hub: Callable[[], None],
        keep: bool = True,
    ) -> None:
        self._keep = keep  # whether to store the last output of an ended session
        self._record = record
        self._ttl_s = ttl_s
        self._watch = watch
        self._typist = typist
        self._clock = clock
        self.end_tool: Callable[[bool], None] = lambda force: None
        self.continue_tool: Callable[[], None] = lambda: None
        self.lend_size: Callable[[int, int], None] = lambda rows, cols: None
        self.signal_terminal: Callable[[bytes], None] = lambda data: None
        self._stopped = False
        self._adapter: dict[str, Any] = {}
        self._viewer = _Viewer(self._send_screen)
        self._end: Message | None = None
        self._link = HubLink(path, clock, settings, self._greet, self._receive, start_hub)
        self._orders = OrderLog()
        self._heard = threading.Event()  # the hub has recorded how the session ended
        watch.tell_hub_by(self.post)
        watch.add_viewer(self._viewer.look)

    def run(self, beat: Beat) -> None:
        self._link.run(beat)

    def post(self, message: Message) -> None:
        self._link.post(message)

    def state_changed(self, attached: bool, rows: int, cols: int) -> None:
        self._record = replace(self._record, attached=attached, rows=rows, cols=cols)
        self.post({"m": "state", "attached": attached, "rows": rows, "cols": cols})

    def stop_changed(self, stopped: bool) -> None:
        if stopped is not self._stopped:
            self._stopped = stopped
            self.post({"m": "state", "stopped": stopped})

    def adapter_reported(self, told: dict[str, Any]) -> None:
        self._adapter |= told
        self.post({"m": "state", "adapter": self._adapter})

    def _greet(self, say: Callable[[Message], None]) -> None:
        self.lend_size(0, 0)  # not under the lock: a terminal that attaches takes them the other way round
        with self._watch.lock:
            opened = self._watch.opened
            say(
                {
                    "m": "hello",
                    "session": replace(self._record, open_prompt=opened.prompt_id if opened else "").to_wire(),
                    "open": opened and {"prompt_id": opened.prompt_id, "prompt": self._watch.told(opened.prompt)},
                    "typed": self._watch.outcomes(),
                    "words": self._orders.told(self._clock.now()),
                    "ttl_s": self._ttl_s,
                    "typed_age_s": self._watch.typed_age_s,
                    "stopped": self._stopped,
                    "adapter": self._adapter,
                }
            )
            self._viewer.stop()  # a new hub requests it again
            if self._end is not None:
                self.post(self._end)

    def _receive(self, message: Message) -> None:
        match message.get("m"):
            case "type":
                self._orders.keep("answer", str(message["prompt_id"]), self._link.hub, self._clock.now())
                answer, prompt_id = Answer.from_json(message["answer"]), str(message["prompt_id"])
                by, nonce = str(message.get("by", "")), str(message.get("nonce", ""))
                self._report(prompt_id, self._typist.type(prompt_id, answer, by, nonce))
            case "ask":
                prompt_id = str(message["prompt_id"])
                self._report(prompt_id, self._watch.known(prompt_id) or Outcome("none"))
            case "renew":
                self._watch.renew(str(message["prompt_id"]))
            case "presence":
                self._watch.absorb()
                self.post({"m": "presence", "typed_age_s": self._watch.typed_age_s})
            case "notice":
                self.signal_terminal(render_signal(str(message.get("signal", "")), str(message.get("text", ""))))
            case "keys":
                self._orders.keep("keys", "", self._link.hub, self._clock.now())
                self._typist.type_keys(str(message["data"]).encode("latin-1", "replace"))
            case "capture":
                self._send_screen(
                    str(message.get("request", "")), bool(message.get("styled")), bool(message.get("past"))
                )
            case "watch" if message.get("on"):
                self._viewer.start(float(message.get("fps") or 10.0))
                self._watch.wake()
            case "watch":
                self._viewer.stop()
                self.lend_size(0, 0)  # the page that had set the session's size is gone
            case "size":
                self.lend_size(int(message.get("rows") or 0), int(message.get("cols") or 0))
            case "rename":
                self._record = replace(self._record, label=str(message["label"]))
            case "continue":
                self.continue_tool()
            case "over":
                self._heard.set()
            case "kill":
                self.end_tool(bool(message.get("force")))

    def _report(self, prompt_id: str, known: Outcome) -> None:
        late = known.outcome in _AFTER_TYPING
        outcome = "typed" if late else known.outcome
        self.post({"m": "typed", "prompt_id": prompt_id, "outcome": outcome, "detail": known.detail})
        if late:
            self.post({"m": "effect", "prompt_id": prompt_id, "outcome": known.outcome, "detail": known.detail})

    def _send_screen(self, request: str, styled: bool, past: bool = False) -> int:
        """Returns the screen's version, by which a viewer detects changes."""
        with self._watch.lock:
            self._watch.absorb()
            screen, secrets = self._watch.screen, self._watch.secrets
            version: int = screen.version
            message: Message = {
                "m": "screen",
                "request": request,
                "rows": screen.rows,
                "cols": screen.cols,
                "cursor": list(screen.cursor),
                "cursor_visible": screen.cursor_visible,
                "modes": sorted(screen.modes & MODES_FOR_KEYS),
                "alternate": screen.alternate,
                "title": redact_outgoing(screen.title, secrets),
            }
            above = screen.styled_past() if past else []
            rows = screen.styled() if styled or past else screen.lines()
            why = [] if styled or past else self._watch.why()
        # Masked here and nowhere else, so that no channel can forget it; outside the lock, because it takes time.
        if past:
            hidden = mask_styled([*above, *rows], secrets)
            message |= {"past": hidden[: len(above)], "styled": hidden[len(above) :]}
        else:
            message |= {"styled": mask_styled(rows, secrets)} if styled else {"lines": mask_rows(rows, secrets)}
        message |= {"why": [redact_outgoing(line, secrets) for line in why]} if why else {}
        self.post(message)
        return version

    def say_farewell(self, status: int, until: float) -> None:
        """Tells the hub how the tool ended, and waits until the hub has acknowledged it: a host that exits earlier
        would lose its last messages. A hub that is still starting gets until `until`."""
        with self._watch.lock:
            end: Message = {"m": "end", "exit_code": status if status >= 0 else 128 - status, "status": status}
            end["words"] = self._orders.told(self._clock.now())
            end["typed"] = self._watch.outcomes()  # a tool can end on its last answer before the typist has reported
            if self._keep:
                end["last"] = self._last_output()
            self._end = end
            self.post(end)
        while not self._heard.wait(_FAREWELL_LOOK_S) and self._clock.now() < until:
            pass
        self._link.stop()

    def _last_output(self) -> Message:
        self._watch.absorb()
        screen, secrets = self._watch.screen, self._watch.secrets
        above, rows = screen.all_lines[-LAST_LINES:], screen.lines()
        size = 0
        for at in range(len(above) - 1, -1, -1):
            size += len(above[at]) + 1
            if size > LAST_CHARACTERS:
                above = above[at + 1 :]
                break
        hidden = mask_rows([*above, *rows], secrets)
        return {"rows": screen.rows, "cols": screen.cols, "past": hidden[: len(above)], "lines": hidden[len(above) :]}


class OrderLog:
    """Records what was typed and which process requested it. A later hub finds entries that none of its decisions
    explains."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, int, int], float] = {}

    def keep(self, kind: str, about: str, hub: Peer, now: float) -> None:
        """Called before anything is typed. All keys from one hub are one entry."""
        entry = (kind, about, hub.pid, hub.started)
        self._kept.pop(entry, None)
        self._kept[entry] = now
        if len(self._kept) > _MOST_WORDS:
            del self._kept[next(iter(self._kept))]

    def told(self, now: float) -> list[list[Any]]:
        return [[*entry, round(now - at, 1)] for entry, at in self._kept.items()]


class _Viewer:
    """Sends the screen to a watcher when it has changed, at most `fps` times a second."""

    def __init__(self, send: Callable[[str, bool], int]) -> None:
        self._send = send
        self._every_s = 0.0
        self._next_at = 0.0
        self._version = -1

    def start(self, fps: float) -> None:
        self._version, self._next_at = -1, 0.0
        self._every_s = 1 / min(max(fps, 0.5), 30.0)

    def stop(self) -> None:
        self._every_s = 0.0

    def look(self, now: float, screen: Any) -> float | None:
        if not self._every_s or screen.version == self._version:
            return None
        if now >= self._next_at:
            self._version = self._send("", True)
            self._next_at = now + self._every_s
            return None
        return self._next_at


def render_signal(signal: str, text: str) -> bytes:
    """The sequence that makes a terminal notify its person without changing what the tool has drawn."""
    plain = "".join(char for char in text if char.isprintable())[:200]
    match signal:
        case "bell":
            return b"\a"
        case "osc9":
            return f"\x1b]9;{plain}\x1b\\".encode()
        case "title":
            return f"\x1b]2;{plain}\x1b\\".encode()
        case _:
            return b""


# Starting a hub in the background: nothing waits for it, the connection is made when it is ready. For commands that
# need the result, there is `core.daemon.request`.

_WAITING = 4096  # a thousand hosts can connect to a new hub at once
_vouchers: list[socket.socket] = []


def start_hub(home: Home) -> None:
    if not home.may_start_hub:
        return
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    if not hasattr(os, "posix_spawn"):  # Windows
        start_alone(own_python("atlasbridge.core.daemon"), environ)
        return
    if is_inside(trace_ancestry(os.getppid(), look_at)):
        return  # clients would not trust this hub; the host of the outer session starts one
    starting = hold_starting(home)
    command = own_python("atlasbridge.core.daemon", "--starting-fd", str(starting))
    nowhere = [(os.POSIX_SPAWN_OPEN, standard, os.devnull, os.O_RDWR, 0) for standard in (0, 1, 2)]
    try:  # the child is reaped together with the tool's orphans
        _vouch(spawn_alone(command[0], command, environ, file_actions=nowhere, setsigdef=_DEFAULTS))
    except OSError:
        pass  # no process is available: the session continues without a hub and keeps trying to connect
    finally:
        if starting >= 0:
            os.close(starting)


def _vouch(pid: int) -> None:
    """Confirms that we started this hub. Its clients check that no tool has started it, and only we know our own
    child."""
    hub = look_at(pid)
    if sys.platform != "linux" or hub is None:
        return
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.bind(voucher(os.getpid(), hub))
    link.listen(_WAITING)
    while _vouchers:
        _vouchers.pop().close()
    _vouchers.append(link)
    threading.Thread(target=_keep_answering, args=(link,), name="hub-voucher", daemon=True).start()


def _keep_answering(link: socket.socket) -> None:
    while True:
        try:
            caller = link.accept()[0]
        except OSError:
            return  # a later hub has taken its place
        with caller:
            meet(caller, listens=True)  # that we listen is the whole confirmation


def hold_starting(home: Home) -> int:
    """A descriptor that shows everybody that a hub is starting. The hub closes it once it has its lock."""
    try:
        fd = os.open(home.starting, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_share(fd):
            os.close(fd)
            return -1
        os.set_inheritable(fd, True)
    except OSError:
        return -1  # a full disk: only a command that stops the hub can come too early
    return fd


_DEFAULTS = tuple(range(1, 16))
