"""One console that shows a session from elsewhere: what the program writes goes there, as fast as it is taken.

A thread of its own sends, so that nobody else waits.  Who falls too far behind is not sent what it missed, but the
screen as it is by then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from atlasbridge.core.host.console.line_door import LineCaller, Message
from atlasbridge.core.host.terminal.detach_key import DetachKey
from atlasbridge.core.tty import Size

_MOST_BYTES = 1 << 20  # that wait for one console
_PART_BYTES = 1 << 16  # of one message


class Viewer:
    """`fresh`: calls its argument with the screen as it is now, while nothing more is shown to anybody.  `gone`: nobody
    hears any more."""

    def __init__(
        self,
        caller: LineCaller,
        size: Size,
        key: DetachKey,
        fresh: Callable[[Callable[[bytes], None]], None],
        gone: Callable[[LineCaller], None],
    ) -> None:
        self.caller = caller
        self.size = size
        self.key = key
        self._fresh = fresh
        self._gone = gone
        self._waiting = bytearray()
        self._behind = True  # what is written now comes with the screen
        self._closed = False
        self._word: Message | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="viewer", daemon=True)

    def begin(self, screen: bytes) -> None:
        self._catch_up(screen)
        self._thread.start()

    def show(self, data: bytes) -> None:
        """Never waits."""
        with self._changed:
            if self._behind or self._closed:
                return
            self._waiting += data
            if len(self._waiting) > _MOST_BYTES:
                self._waiting.clear()
                self._behind = True
            self._changed.notify()

    def finish(self, last: bytes, word: Message) -> None:
        """After all that waits it is shown `last`, and told `word`."""
        self.show(last)
        with self._changed:
            if not self._closed:
                self._word, self._closed = word, True
                self._changed.notify()

    def join(self, patience_s: float) -> None:
        self._thread.join(patience_s)

    def _run(self) -> None:
        while part := self._next():
            if not self.caller.tell({"m": "out", "data": part.decode("latin-1")}):
                with self._changed:
                    self._closed = True
                self._gone(self.caller)
                return
        if self._word is not None:
            self.caller.say(self._word)

    def _next(self) -> bytes:
        """The next part; b"": it is closed, and everything was shown."""
        while True:
            with self._changed:
                while not (self._waiting or self._behind or self._closed):
                    self._changed.wait()
                if self._waiting or self._closed:
                    part = bytes(self._waiting[:_PART_BYTES])
                    del self._waiting[:_PART_BYTES]
                    return part
            self._fresh(self._catch_up)

    def _catch_up(self, screen: bytes) -> None:
        with self._changed:
            self._waiting[:] = screen
            self._behind = False
