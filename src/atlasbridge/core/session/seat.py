"""The one seat in front of a session: which terminal is attached, how one takes it over and how it is left.

The newest terminal wins; the one before gets back what the tool had switched on, and its client is told.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from atlasbridge.core.prompt.events import Resized
from atlasbridge.core.prompt.vt_style import render_sgr
from atlasbridge.core.session.attachment import Attachment
from atlasbridge.core.session.caller import Caller
from atlasbridge.core.session.keyboard import InputRelay
from atlasbridge.core.session.redraw import render_farewell, render_screen
from atlasbridge.core.session.relay import OutputRelay
from atlasbridge.core.session.tty import Pty, Size
from atlasbridge.core.session.watch import StallWatchdog


class Seat:
    def __init__(
        self,
        pty: Pty,
        size: Size,
        output: OutputRelay,
        keyboard: InputRelay,
        watch: StallWatchdog,
        changed: Callable[[Size, bool], None],
    ) -> None:
        self._pty = pty
        self._size = size
        self._output = output
        self._keyboard = keyboard
        self._watch = watch
        self._changed = changed
        self._lock = threading.RLock()
        self._caller: Caller | None = None

    @property
    def attachment(self) -> Attachment | None:
        return None if self._caller is None else self._caller.attachment

    @property
    def taken(self) -> bool:
        return self._caller is not None

    def take(self, caller: Caller, fds: tuple[int, int], size: Size) -> None:
        """Show the session on this terminal from now on."""
        with self._lock:
            self.vacate(self.attachment, "taken")
            attachment = caller.attachment = Attachment(*fds)
            self._caller = caller
            with self._output.lock:
                if self._output.started:
                    self._watch.absorb()
                self.resize(size)
                if self._output.started and attachment.output_is_terminal:
                    with self._watch.lock:
                        picture = render_screen(self._watch.screen, render_sgr)
                    attachment.write(picture)
                self._output.attachment = attachment
            self._keyboard.switch(attachment)
            caller.say({"m": "attached"})
        self._changed(self._size, True)

    def resize(self, size: Size) -> None:
        with self._lock:
            if size == self._size:
                return
            same_cells = (size.rows, size.cols) == (self._size.rows, self._size.cols)
            self._size = size
            self._pty.resize(size)
            if not same_cells:
                self._watch.tell(Resized(size.rows, size.cols))
                if self._output.started:
                    self._watch.absorb()
        self._changed(size, self.taken)

    def vacate(self, attachment: Attachment | None, why: str) -> None:
        """Let this terminal go, unless another has taken the seat already."""
        with self._lock:
            caller = self._caller
            if attachment is None or caller is None or caller.attachment is not attachment:
                return
            self._caller = None
            attachment.closed = True
            self._keyboard.switch(None)
            self._release(attachment, quietly=why == "closed")
            caller.attachment = None
            caller.say({"m": "detached", "why": why})
        self._watch.wake()
        self._changed(self._size, False)

    def _release(self, attachment: Attachment, quietly: bool) -> None:
        with self._output.lock:  # a chunk on its way gives up soon: the attachment is marked as closed
            if self._output.attachment is attachment:
                self._output.attachment = None
            if not quietly and attachment.output_is_terminal and self._output.started:
                with self._watch.lock:
                    self._watch.absorb()
                    farewell = render_farewell(self._watch.screen)
                attachment.write_soon(farewell)
            attachment.close_output()

    def finish(self, status: int) -> None:
        """The tool has ended.  One that ended badly may have left the terminal in any state."""
        with self._lock:
            attachment = self.attachment
            if attachment is None:
                return
            self._output.show_rest(attachment)
            if status != 0 and attachment.output_is_terminal:
                with self._watch.lock:
                    self._watch.absorb()
                    attachment.write(render_farewell(self._watch.screen))
            attachment.closed = True
            self._caller = None
            self._output.attachment = None
            self._keyboard.switch(None)
            attachment.close_output()
