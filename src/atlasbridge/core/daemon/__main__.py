"""`python -m atlasbridge.core.daemon`: the hub's process. It takes the lock, reports to its starter and runs until a
signal.

No module imports this entry point. It is the only place in the core that imports the composition root.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import Any

from atlasbridge.bootstrap import run_hub
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.request import ALREADY_RUNNING, HubLock, remove_version_file, write_version_file
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.peer import HOST_NAME, is_inside, is_vouched_for, look_at, trace_ancestry
from atlasbridge.core.process import hide_memory

_OPEN_FILES = 16384
_VOUCHED_S = 5.0  # how long to wait until the host that started us confirms it


def main() -> int:
    parser = argparse.ArgumentParser(prog="atlasbridge-hub")
    parser.add_argument("--ready-fd", type=int, default=-1)
    parser.add_argument("--starting-fd", type=int, default=-1)
    parser.add_argument("--foreground", action="store_true")
    options = parser.parse_args()
    os.umask(0o077)
    hide_memory()
    raise_file_limit()
    home = Home.find(os.environ)
    try:
        if not is_believable():
            raise AtlasBridgeError(
                "a hub that is started inside a session could decide for the session's tool",
                "start it from a terminal of your own: atlasbridge hub start",
            )
        if not options.foreground:
            os.chdir("/")
        home.prepare()
        lock = HubLock(home.lock)
        mine = lock.acquire()
        if options.starting_fd > 2:
            os.close(options.starting_fd)
        if not mine:
            tell(options.ready_fd, error=ALREADY_RUNNING, hint="look at it with: atlasbridge hub status")
            return 1 if options.foreground else 0
        try:
            write_version_file(home)
            run_hub(home, os.environ, lambda: tell(options.ready_fd, ready=True), options.foreground)
        finally:
            remove_version_file(home)
            lock.release()
    except AtlasBridgeError as error:
        tell(options.ready_fd, error=str(error), hint=error.hint, exit_code=error.exit_code)
        return error.exit_code
    return 0


def is_believable() -> bool:
    """Whether clients would accept this process as a hub: it is not inside a session, or a session's host started it
    and confirms that."""
    clock = SystemClock()
    until = clock.now() + _VOUCHED_S
    while is_inside(line := trace_ancestry(os.getpid(), look_at)) and not is_vouched_for(line):
        if clock.now() > until or len(line) < 2 or line[1].name != HOST_NAME:
            return False
        time.sleep(0.02)
    return True


def raise_file_limit() -> None:
    """Every session, page and channel uses a descriptor here; the usual limit would be reached at about a thousand."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tell(ready_fd: int, **verdict: Any) -> None:
    """Sends one line to the process that started us. Without such a process, only errors are printed."""
    if ready_fd >= 0:
        try:
            os.write(ready_fd, json.dumps(verdict).encode() + b"\n")
            _give_up(ready_fd)
        except OSError:
            pass  # the starter no longer waits
    elif "error" in verdict:
        print(f"atlasbridge: {verdict['error']}\n  {verdict.get('hint', '')}".rstrip(), file=sys.stderr)


def _give_up(ready_fd: int) -> None:
    """Closes our end, because the starter reads until the end. A standard stream is redirected to the null device
    instead."""
    if ready_fd > 2:
        os.close(ready_fd)
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, ready_fd)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
