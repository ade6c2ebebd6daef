"""Whoever comes over a session's line while its program runs: other consoles that show it and type into it, and hooks
of its tool.  All of them beside the console that the session was started on, if it has one.

Who it is, `line_kin` says; the line itself is `line_door`'s, one console's output `viewer`'s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.host.console.line_door import LineCaller, LineDoor, Message, Whose
from atlasbridge.core.host.console.line_kin import is_inside, is_kindred
from atlasbridge.core.host.console.viewer import Viewer
from atlasbridge.core.host.judgement import Judgement
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.terminal.detach_key import DetachKey
from atlasbridge.core.session.plan import Plan
from atlasbridge.core.tty import Size

if TYPE_CHECKING:
    from atlasbridge.core.host.typing.hook_line import HookLine

_KINDRED: Message = {
    "text": "this console was started inside a session, or it cannot be told where, and only a person types into one",
    "hint": "use a console of your own",
}

_LAST_S = 2.0


class Company:
    """`typed`: keys for the program.  `changed`: somebody came, went or has another size."""

    def __init__(
        self,
        plan: Plan,
        tool_pid: int,
        judgement: Judgement,
        detach_key: str,
        journal: Logbook,
        typed: Callable[[bytes], None],
        changed: Callable[[], None],
    ) -> None:
        self._tool_pid = tool_pid
        self._judgement = judgement
        self._detach_key = detach_key
        self._journal = journal
        self._typed = typed
        self._changed = changed
        self._greeting: Message = {
            "m": "started",
            "session_id": plan.session_id,
            "pid": tool_pid,
            "tool": plan.tool,
        }
        self.lock = threading.RLock()  # held while something is shown to all: a screen and what follows it fit together
        self._viewers: list[Viewer] = []
        self._door: LineDoor | None = None
        self._path = Path()
        self._whose: Whose | None = None
        self.hook: HookLine | None = None  # once there is somebody to judge

    def open(self, path: Path, whose: Whose) -> None:
        """`path`: where the session's socket would be."""
        self._path, self._whose = path, whose
        self._door = LineDoor(self._greeting, whose, self._hear, self._leave)
        self._door.open(path)

    @property
    def size(self) -> Size | None:
        """Of the console that came last; None: there is none."""
        viewers = self._viewers
        return viewers[-1].size if viewers else None

    def show(self, data: bytes) -> None:
        """The caller holds the lock, and keeps what it shows for the screen before it lets go."""
        for viewer in self._viewers:
            viewer.show(data)

    def finish(self, status: int) -> None:
        """The program has ended, and everything was shown: consoles that are slow get a moment for the rest."""
        ended: Message = {"m": "ended", "status": status, "text": ""}
        with self.lock:
            viewers, self._viewers = self._viewers, []
            farewell = self._judgement.farewell() if status != 0 and viewers else b""
            for viewer in viewers:
                viewer.finish(farewell, ended)
        for viewer in viewers:
            viewer.join(_LAST_S)
        if self._door is not None:
            self._door.tell_all(ended)
            self._door.close()

    def _hear(self, caller: LineCaller, message: Message) -> None:
        viewer = self._viewer_of(caller)
        match message.get("m"):
            case "attach" if viewer is None:
                self._admit(caller, message)
            case "keys" if viewer is not None:
                self._type(viewer, str(message.get("data", "")))
            case "size" if viewer is not None:
                viewer.size = read_size(message)
                self._changed()
            case "leave":
                self._let_go(caller, "detached")
            case "structured" if is_inside(caller.peer, self._tool_pid):
                self._judgement.tool_said(message)
                if self.hook is not None:
                    self.hook.offer(caller, message)
            case "structured":
                self._journal.note("somebody outside the session spoke for its tool")

    def _viewer_of(self, caller: LineCaller) -> Viewer | None:
        return next((viewer for viewer in self._viewers if viewer.caller is caller), None)

    def _admit(self, caller: LineCaller, message: Message) -> None:
        assert self._whose is not None
        if is_kindred(caller.peer, self._tool_pid, self._path, self._whose):
            caller.say({"m": "failed", "status": 1, **_KINDRED})
            return
        caller.say({"m": "attached"})
        viewer = Viewer(caller, read_size(message), DetachKey(self._detach_key), self._redraw, self._leave)
        with self.lock:
            self._viewers.append(viewer)
            self._changed()
            viewer.begin(self._judgement.picture(bool(message.get("past"))))

    def _redraw(self, draw: Callable[[bytes], None]) -> None:
        with self.lock:
            draw(self._judgement.picture())

    def _type(self, viewer: Viewer, data: str) -> None:
        keys, leaves = viewer.key.feed(data.encode("latin-1", "ignore"))
        if keys:
            self._typed(keys)
        if leaves:
            self._let_go(viewer.caller, "detached")

    def _let_go(self, caller: LineCaller, why: str) -> None:
        with self.lock:
            viewer = self._viewer_of(caller)
            if viewer is None:
                return
            self._viewers.remove(viewer)
            viewer.finish(self._judgement.farewell(parting=True), {"m": "detached", "why": why})
        self._changed()

    def _leave(self, caller: LineCaller) -> None:
        """It is gone."""
        if self.hook is not None:
            self.hook.leave(caller)
        self._let_go(caller, "closed")


def read_size(message: Message) -> Size:
    rows, cols = (int(message.get(name, 0)) & 0xFFFF for name in ("rows", "cols"))
    return Size(rows, cols).or_default()
