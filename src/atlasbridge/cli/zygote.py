"""`python -m atlasbridge.cli.zygote`: the process that forks session hosts.  Imports all that a host needs, then waits.

What it does for a caller is what `atlasbridge run` does: the same words are read by the same functions.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from importlib import import_module
from typing import NoReturn

from atlasbridge import bootstrap
from atlasbridge.cli import run
from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.lock import lock_holder
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.zygote.nursery import Nursery
from atlasbridge.core.host.zygote.surroundings import FOLDER, address, read_surroundings
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.shield import hide_memory

_NEEDED = (  # all that a session imports while it lives; `tests` compare the list with a real one
    "ctypes",
    "tomllib",
    "atlasbridge.adapters.announced",
    "atlasbridge.adapters.dialect_files",
    "atlasbridge.adapters.tool_start",
    "atlasbridge.config.secrets",
    "atlasbridge.config.session",
    "atlasbridge.core.client.client",
    "atlasbridge.core.detection.detector",
    "atlasbridge.core.host.host",
    "atlasbridge.core.host.hub.hubside",
    "atlasbridge.core.host.hub.start",
    "atlasbridge.core.host.launch",
    "atlasbridge.core.host.typing.hook_line",
    "atlasbridge.core.host.typing.steps",
    "atlasbridge.core.host.typing.typist",
    "atlasbridge.core.host.watchdog",
    "atlasbridge.core.prompt.answer",
    "atlasbridge.core.prompt.discreet",
    "atlasbridge.core.screen.redraw",
    "atlasbridge.core.screen.style",
    "atlasbridge.core.session.model",
    "atlasbridge.os.tty.linux",
    "atlasbridge.os.tty.posix",
)


def main() -> int:
    surroundings = read_surroundings(os.environ)
    if not surroundings:
        return 0
    os.umask(0o077)
    hide_memory()
    home = Home.find(os.environ)
    home.prepare()
    for name in _NEEDED:
        import_module(name)
    while compile_next():
        pass
    sources = _sources()
    clock = SystemClock()
    nursery = Nursery(
        address(str(home.root), surroundings),
        surroundings,
        host_session,
        lambda: _sources() == sources,
        lambda: lock_holder(home.lock) is not None,
        clock,
        Logbook(home.root / FOLDER / "zygote.log", clock),
    )
    gc.collect()
    gc.freeze()  # what is there stays where it is: its pages are shared by all hosts
    nursery.run()
    return 0


def host_session(words: list[str], client: socket.socket) -> NoReturn:
    """In the forked child, which has the caller's terminal, folder and environment by now."""
    try:
        options = run.parse_run(words)
        plan = run.make_plan(options)
        again = run.say_before(options)
        said = {"m": "plan", "detach": options.detach, "hub": options.hub, "announce": again}
        client.sendall(wire.encode(said))
        bootstrap.host_session(plan, client)
    except AtlasBridgeError as error:
        refused = {"m": "failed", "status": error.exit_code, "text": str(error), "hint": error.hint}
        client.sendall(wire.encode(refused))
    os._exit(0)


def _sources() -> dict[str, tuple[int, int]]:
    """When each file of ours that was imported was last written: a host of older code must not be forked."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and name.partition(".")[0] in ("atlasbridge", "ptypool"):
            try:
                told = os.stat(file)
            except OSError:
                continue
            found[file] = (told.st_mtime_ns, told.st_size)
    return found


if __name__ == "__main__":
    sys.exit(main())
