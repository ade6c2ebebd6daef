"""As little as a relay in this interpreter can do: two threads that read and write.  A peer in the benchmark: what it
costs more than the C relay is the interpreter's, what AtlasBridge costs more than this is ours."""

from __future__ import annotations

import os
import pty
import select
import sys
import termios
import threading
import tty


def pump(source: int, sink: int) -> None:
    ready = select.poll()
    ready.register(source, select.POLLIN)
    while True:
        try:
            ready.poll()
            data = os.read(source, 65536)
        except OSError:
            return
        if not data:
            return
        os.write(sink, data)


if __name__ == "__main__":
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    saved = termios.tcgetattr(0)
    tty.setraw(0)
    threading.Thread(target=pump, args=(0, terminal), daemon=True).start()
    pump(terminal, 1)
    termios.tcsetattr(0, termios.TCSADRAIN, saved)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
