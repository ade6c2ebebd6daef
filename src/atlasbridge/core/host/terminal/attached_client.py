"""The one attached terminal of a session: how a terminal takes it over and how it leaves.

The newest terminal has the keyboard, and the session has its size. The previous terminal gets its modes reset, and its
client is told; it shows the screen until it takes the keyboard back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from atlasbridge.core.host.lazy_analysis import LazyAnalysis
from atlasbridge.core.host.terminal.attach_socket import Caller
from atlasbridge.core.host.terminal.attachment import Attachment
from atlasbridge.core.host.terminal.keyboard import InputRelay
from atlasbridge.core.host.terminal.relay import OutputRelay
from atlasbridge.core.tty import Pty, Size

_PATIENCE = 20  # tenths of a second to wait for a terminal that accepts nothing, while the host has others to serve


class AttachedClient:
    def __init__(
        self,
        pty: Pty,
        size: Size,
        output: OutputRelay,
        keyboard: InputRelay,
        analysis: LazyAnalysis,
        changed: Callable[[], None],
    ) -> None:
        self._pty = pty
        self._size = size
        self._output = output
        self._keyboard = keyboard
        self._analysis = analysis
        self._changed = changed
        self._lock = threading.RLock()
        self._caller: Caller | None = None
        self._own_size: Size | None = None  # while the session has the size of somebody who watches from elsewhere
        self._left_at = 0.0  # time of the tool's last output when a terminal was released

    @property
    def attachment(self) -> Attachment | None:
        return None if self._caller is None else self._caller.attachment

    @property
    def taken(self) -> bool:
        return self._caller is not None

    def signal(self, data: bytes) -> None:
        """Sends a notification to the attached terminal: as much as fits at once, between two chunks."""
        with self._output.lock:
            attachment = self.attachment
            if data and attachment is not None and attachment.output_is_terminal:
                attachment.write_soon(data)

    def take(
        self,
        caller: Caller,
        fds: tuple[int, int],
        size: Size,
        past: bool = False,
        back: bool = False,
        steal: bool = False,
        ahead: int = 0,
        eof: int = 4,
    ) -> None:
        """Shows the session on this terminal from now on. `back`: it left while the tool was stopped, and its content
        is kept, unless the tool has written something in the meantime."""
        if self._pty.is_own(fds[0]) or self._pty.is_own(fds[1]):
            for fd in fds:
                os.close(fd)
            caller.say({"m": "failed", "status": 1, "text": "a session cannot be shown inside itself"})
            return
        with self._lock:
            self.vacate(self.attachment, "stolen" if steal else "taken")
            attachment = caller.attachment = Attachment(*fds)
            attachment.ahead, attachment.end_of_file = ahead, bytes((eof,))
            self._caller, self._own_size, caller.shows = caller, None, False
            with self._output.lock:
                self.resize(size)
                if self._output.started and attachment.output_is_terminal:
                    unchanged = back and self._output.last_output_at == self._left_at
                    attachment.write(self._analysis.picture(past, unchanged), _PATIENCE)
                self._output.attachment = attachment
            self._keyboard.switch(attachment)
            caller.say({"m": "attached"})
            self._analysis.changed(self._size, True)
        self._changed()

    def resize(self, size: Size) -> None:
        with self._lock:
            if size == self._size:
                return
            self._size = size
            self._pty.resize(size)
            self._analysis.changed(size, self.taken)

    def lend_size(self, rows: int, cols: int) -> None:
        """To a page that watches, while no terminal is attached; 0: the session gets its own size back."""
        with self._lock:
            own, self._own_size = self._own_size or self._size, None
            if self.taken:
                return
            if rows and cols:
                self._own_size = own
                self.resize(Size(rows, cols))
            else:
                self.resize(own)

    def vacate(self, attachment: Attachment | None, why: str) -> None:
        """Releases this terminal, unless another one has already taken over."""
        with self._lock:
            caller = self._caller
            if attachment is None or caller is None or caller.attachment is not attachment:
                return
            self._caller = None
            attachment.closed = True
            self._keyboard.switch(None)
            self._release(attachment, quietly=why == "closed", parting=why in ("detached", "taken", "stolen"))
            caller.attachment, caller.shows = None, why == "taken"
            caller.say({"m": "detached", "why": why})
            self._analysis.changed(self._size, False)
        self._analysis.wake()
        self._changed()

    def _release(self, attachment: Attachment, quietly: bool, parting: bool) -> None:
        with self._output.lock:  # a chunk in transit stops soon, because the attachment is marked as closed
            if self._output.attachment is attachment:
                self._output.attachment = None
                self._left_at = self._output.last_output_at
            if not quietly and attachment.output_is_terminal and self._output.started:
                attachment.write_soon(self._analysis.farewell(parting))
            attachment.close_output()

    def finish(self, status: int) -> None:
        """The tool has ended. If it failed, it could have left the terminal in any state."""
        with self._lock:
            attachment = self.attachment
            if attachment is None:
                return
            self._output.show_rest(attachment)
            if status != 0 and attachment.output_is_terminal:
                attachment.write(self._analysis.farewell(), _PATIENCE)
            attachment.closed = True
            self._caller = None
            self._output.attachment = None
            self._keyboard.switch(None)
            attachment.close_output()
