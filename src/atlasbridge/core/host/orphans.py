"""What a tool left behind and the kernel gave to us: reaped when it ends, so that no zombie stays.

The tool itself is not touched here: its exit status belongs to whoever waits for it.
"""

from __future__ import annotations

import os


def reap_orphans(tool_pid: int) -> None:
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except (ChildProcessError, AttributeError):  # none is left; or a system without the call, which adopts nobody
            return
        if ended is None or ended.si_pid == tool_pid:
            return
        try:
            os.waitpid(ended.si_pid, os.WNOHANG)
        except ChildProcessError:
            pass  # whoever started it was first
