"""Creates the session's analysis late: detector, typist and hub connection are imported only once the tool runs.

A tool must start, and a short one end, as fast as without us. Until the analysis exists, output waits in the ring.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from atlasbridge.core.host.session_log import SessionLog
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.tty import Size

if TYPE_CHECKING:
    from atlasbridge.core.detection.events import Event
    from atlasbridge.core.host.hub.connection import HubSide
    from atlasbridge.core.host.watchdog import StallWatchdog


Build = Callable[[Size, "deque[Event | bytes]"], tuple["StallWatchdog", "HubSide"]]


class LazyAnalysis:
    def __init__(
        self,
        build: Build,
        size: Size,
        hub: bool,
        start_hub_task: Callable[[Callable[[Beat], None]], None],
        journal: SessionLog,
    ) -> None:
        self._build = build
        self._journal = journal
        self._size = size
        self._hub = hub
        self._start_hub_task = start_hub_task
        self._building = threading.RLock()
        self._lock = threading.RLock()  # never held during the build, because a terminal must not wait for it
        self._events: deque[Event | bytes] = deque()
        self._parts: tuple[StallWatchdog, HubSide] | None = None
        self._attached = False
        self._stopped = False
        self._adapter: dict[str, Any] = {}

    def _get(self) -> tuple[StallWatchdog, HubSide]:
        with self._building:
            if self._parts is None:
                size = self._size
                watch, hub = self._build(size, self._events)
                with self._lock:
                    self._parts = watch, hub
                    if self._size != size:
                        watch.resized(self._size.rows, self._size.cols)
                    hub.state_changed(self._attached, self._size.rows, self._size.cols)
                    hub.stop_changed(self._stopped)
                    if self._adapter:
                        hub.adapter_said(self._adapter)
                if self._hub:
                    self._start_hub_task(hub.run)
            return self._parts

    def run(self, beat: Beat) -> None:
        """The task `stall_watchdog`."""
        self._get()[0].run(beat)

    def notice(self) -> None:
        """Something has changed. The watchdog detects output through the ring."""
        if self._parts is not None:
            self._parts[0].notice()

    def wake(self) -> None:
        if self._parts is not None:
            self._parts[0].wake()

    @property
    def keys_typed(self) -> Callable[[bytes], None]:
        """Records typed keys without waking any thread, because it is called between a key and its echo."""
        return self._events.append

    def adapter_said(self, told: dict[str, Any]) -> None:
        """Handles what an external adapter reports about itself."""
        if self._parts is None:
            self._adapter |= told
        else:
            self._parts[1].adapter_said(told)

    def tool_said(self, message: Mapping[str, Any]) -> None:
        """Handles a report of a hook. Reports from before the analysis exists are kept."""
        from atlasbridge.core.detection.events import StructuredEventReceived
        from atlasbridge.core.prompt.model import told_subject

        kind, text, source = (str(message.get(name, "")) for name in ("kind", "text", "source"))
        note, missing = str(message.get("note", "")), message.get("missing_lines")
        lines = missing if type(missing) is int and missing > 0 else 0
        told = StructuredEventReceived(kind, text, source, told_subject(message.get("subject")), note, lines)
        self._events.append(told)
        self.notice()

    def changed(self, size: Size, attached: bool) -> None:
        """The terminal's size has changed, or a terminal was attached or detached."""
        with self._lock:
            resized = (size.rows, size.cols) != (self._size.rows, self._size.cols)
            self._size, self._attached = size, attached
            if self._parts is None:
                return
        watch, hub = self._parts
        if resized:
            watch.resized(size.rows, size.cols)
        hub.state_changed(attached, size.rows, size.cols)

    def stopped(self, stopped: bool) -> None:
        """Job control has stopped the tool, or it continues."""
        with self._lock:
            self._stopped = stopped
            if self._parts is None:
                return
        self._parts[1].stop_changed(stopped)

    def picture(self, past: bool = False, back: bool = False) -> bytes:
        """The screen for a terminal that attaches. `past`: preceded by the lines that scrolled off. `back`: the
        terminal left only while the tool was stopped."""
        from atlasbridge.core.screen.redraw import render_past, render_return, render_screen
        from atlasbridge.core.screen.style import render_sgr

        if back:
            return self._look(lambda screen: render_return(screen, render_sgr), b"")
        return self._look(
            lambda screen: (render_past(screen) if past else b"") + render_screen(screen, render_sgr), b""
        )

    def farewell(self, parting: bool = False) -> bytes:
        """The sequences that reset the modes that the tool has switched on. `parting`: also starts a fresh line."""
        from atlasbridge.core.screen.redraw import SAFE_RESET, render_farewell, render_parting

        return self._look(render_parting if parting else render_farewell, SAFE_RESET)

    def _look(self, render: Callable[[Any], bytes], otherwise: bytes) -> bytes:
        try:
            watch, _ = self._get()
            with watch.lock:
                watch.absorb()
                return render(watch.screen)
        except Exception as error:  # the session boundary: an error in the analysis must not break the terminal
            self._journal.crash("the screen could not be looked at", error)
            return otherwise

    def finish(self, status: int, until: float) -> None:
        """The tool has ended: stops the analysis and tells the hub."""
        if not self._hub and self._parts is None:
            return
        watch, hub = self._get()
        watch.exited()
        if self._hub:
            hub.say_farewell(status, until)
