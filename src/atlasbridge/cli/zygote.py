"""`python -m atlasbridge.cli.zygote`: the fork server's process. It imports everything that a session host needs, then
serves.

A host does the same as `atlasbridge run`, with the same functions.
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
from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.host.fork_server import ForkServer, Serving, claim
from atlasbridge.core.host.launch import keep_one_heap
from atlasbridge.core.host.spawn_request import FOLDER, SWITCH, read_fingerprint, server_address
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.process import hide_memory
from atlasbridge.core.values import compile_initialisers

NEEDED = {  # all imports of a running session; a test compares this list with a real session
    "adapters": "dialect_files entry_points tool_start",
    "cli": "by_name",
    "config": "session",
    "core.client": "client",
    "core.daemon": "request",
    "core.detection": "detector",
    "core.host": "analysis host hub_link launch typist watchdog",
    "core.prompt": "answer redact",
    "core.screen": "redraw style",
    "core.session": "model",
    "os.tty": "linux posix",
}


def main() -> int:
    fingerprint = read_fingerprint(os.environ)
    if not fingerprint:
        return 0
    os.umask(0o077)
    hide_memory()
    home = Home.find(os.environ)
    home.prepare()
    (home.root / FOLDER).mkdir(mode=0o700, exist_ok=True)
    path = server_address(str(home.root), fingerprint)
    lock = claim(path)
    if lock is None:
        return 0
    _import_all()
    ours = [module for name, module in sys.modules.items() if name.startswith(("atlasbridge", "ptypool"))]
    files = [module.__file__ for module in ours if module.__file__]
    clock, stamps = SystemClock(), stamps_of(files)
    serving = Serving(
        path,
        fingerprint,
        host_session,
        lambda: stamps_of(files) == stamps,
        lambda: lock_holder(home.lock) is not None,
        clock,
        SessionLog(home.root / FOLDER / "zygote.log", clock),
    )
    ForkServer(serving).run(lock)
    return 0


def _import_all() -> None:
    import_module("ctypes")
    for package, names in NEEDED.items():
        for name in names.split():
            import_module(f"atlasbridge.{package}.{name}")
    keep_one_heap()
    bootstrap.read_announcements()
    compile_initialisers()
    while compile_next():
        pass
    gc.collect()
    gc.freeze()  # garbage collection in a host must not touch shared pages


def host_session(words: list[str], client: socket.socket) -> NoReturn:
    """Runs in the forked child, which already has the client's terminal, folder and environment."""
    try:
        options = run.parse_run(words)
        plan = run.make_plan(options)
        prepared = bootstrap.prepare_session(plan)
        announce = run.print_notices(options)
        said = {"m": "plan", "detach": options.detach, "hub": options.hub, "announce": announce}
        client.sendall(wire.encode(said))
        bootstrap.host_session(plan, prepared, client)
    except AtlasBridgeError as error:
        _say_failed(client, error.exit_code, str(error), error.hint)
    except Exception as error:  # the session boundary: only this process knows what went wrong
        _say_failed(client, 1, f"the session could not be started: {error!r}", f"try it with {SWITCH}=0")
    os._exit(0)


def _say_failed(client: socket.socket, status: int, text: str, hint: str) -> None:
    client.sendall(wire.encode({"m": "failed", "status": status, "text": text, "hint": hint}))


def stamps_of(files: list[str]) -> list[tuple[int, int]]:
    """Different stamps after an upgrade stop hosts from running old code. Empty while an upgrade is replacing the
    files."""
    try:
        return [(found.st_mtime_ns, found.st_size) for found in map(os.stat, files)]
    except OSError:
        return []


if __name__ == "__main__":
    sys.exit(main())
