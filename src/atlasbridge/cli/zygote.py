"""`python -m atlasbridge.cli.zygote`: the process that forks session hosts.  Imports all that a host needs, then waits.

What it does for a caller is what `atlasbridge run` does: the same words are read by the same functions.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn, TypeVar

from atlasbridge import bootstrap
from atlasbridge.cli import run
from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.daemon.lock import lock_holder
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.host.launch import keep_one_heap
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.zygote.dress import rehearse_sessions
from atlasbridge.core.host.zygote.gaps import fill_gaps
from atlasbridge.core.host.zygote.letter import CWD, read_letter, write_letter
from atlasbridge.core.host.zygote.nursery import Nursery, claim
from atlasbridge.core.host.zygote.packing import put_together
from atlasbridge.core.host.zygote.rehearsal import rehearse
from atlasbridge.core.host.zygote.sharing import share_everything
from atlasbridge.core.host.zygote.surroundings import FOLDER, address, read_surroundings
from atlasbridge.core.host.zygote.takeover import await_go
from atlasbridge.core.host.zygote.trial import try_out
from atlasbridge.core.kin import look_at, trace_line
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.shield import hide_memory

T = TypeVar("T")
_LONGEST_S = 60  # to get ready, on a machine without time
_TIMES = 12  # an interpreter specialises code after eight runs

_NEEDED = (  # all that a session imports while it lives; `tests` compare the list with a real one
    "ctypes",
    "tomllib",
    "atlasbridge.adapters.announced",
    "atlasbridge.adapters.dialect_files",
    "atlasbridge.adapters.tool_start",
    "atlasbridge.cli.by_name",
    "atlasbridge.config.secrets",
    "atlasbridge.config.session",
    "atlasbridge.core.client.client",
    "atlasbridge.core.daemon.age",
    "atlasbridge.core.detection.detector",
    "atlasbridge.core.host.host",
    "atlasbridge.core.host.hub.hubside",
    "atlasbridge.core.host.hub.start",
    "atlasbridge.core.host.launch",
    "atlasbridge.core.host.slow_half",
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
    (home.root / FOLDER).mkdir(mode=0o700, exist_ok=True)
    place = address(str(home.root), surroundings)
    lock = claim(place)
    if lock is None:
        return 0
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(_LONGEST_S)  # who hangs ends, and the lock is free again
    for name in _NEEDED:
        import_module(name)
    keep_one_heap()
    bootstrap.read_announcements()
    if not _warm_up(home):
        return 1
    is_fresh = watch_sources()
    clock = SystemClock()
    nursery = Nursery(
        place,
        surroundings,
        _make_ready,
        host_session,
        is_fresh,
        lambda: lock_holder(home.lock) is not None,
        clock,
        Logbook(home.root / FOLDER / "zygote.log", clock),
    )
    written = try_out(nursery.live, surroundings, clock)
    gc.collect()
    fill_gaps()
    put_together(written)
    if not _warm_up(home):  # the copies have not run yet
        return 1
    signal.alarm(0)
    share_everything()
    nursery.run(lock)
    return 0


def _warm_up(home: Home) -> bool:
    """False: a thread is left, and who forks beside one forks whatever it holds."""
    rehearse(bootstrap.find_dialect(home, "", "sh"), SessionSettings().detach_key)
    for _ in range(_TIMES):
        _walk_ahead()
    return rehearse_sessions(lambda home: bootstrap.host_parts(home, {}))


def _make_ready() -> Any:
    """In a host that is for nobody yet."""
    _walk_ahead()  # the pages it is going to write to are its own already when somebody waits
    return bootstrap.ready_terminal()


def _walk_ahead() -> None:
    """The way from a letter to a tool, as far as it can be gone without either.  No file is read: what stands there
    when somebody asks is what counts."""
    trace_line(os.getpid(), look_at)
    read_letter(write_letter(b"", 0, [CWD], ["true"], os.environb))
    run.make_plan(run.parse_run(["true"]))


def host_session(words: list[str], client: socket.socket, ready: Any) -> NoReturn:
    """In the forked child, which has the caller's terminal, folder and environment by now.

    What can be found out is found out while the client gets ready, too; nothing is said or started before its word.
    """
    options = _ahead(lambda: run.parse_run(words))
    plan = _ahead(lambda: run.make_plan(options()))
    prepared = _ahead(lambda: bootstrap.prepare_session(plan(), ready))
    await_go(client)
    try:
        again = run.say_before(options())
        said = {"m": "plan", "detach": options().detach, "hub": options().hub, "announce": again}
        client.sendall(wire.encode(said))
        bootstrap.host_session(plan(), prepared(), client)
    except AtlasBridgeError as error:
        _say_failed(client, error.exit_code, str(error), error.hint)
    except Exception as error:  # the session boundary: nobody else is there to say it
        _say_failed(
            client, 1, f"the session could not be started: {error!r}", "try it with ATLASBRIDGE_SESSION_ZYGOTE=0"
        )
    os._exit(0)


def _ahead(work: Callable[[], T]) -> Callable[[], T]:
    """Does it now; what came of it, also what is wrong with it, is there for whoever asks."""
    try:
        done = work()
    except Exception as error:  # not passed over: it is raised again within the session boundary
        return partial(_raise, error)
    return lambda: done


def _raise(error: Exception) -> NoReturn:
    raise error


def _say_failed(client: socket.socket, status: int, text: str, hint: str) -> None:
    client.sendall(wire.encode({"m": "failed", "status": status, "text": text, "hint": hint}))


def watch_sources() -> Callable[[], bool]:
    """Whether the files of ours that were imported are still the same: a host of older code must not be forked."""
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("atlasbridge", "ptypool")]
    files = "\0".join(file for module in ours if (file := getattr(module, "__file__", None)))

    def look() -> str:  # all in one piece: what it touches is no longer shared
        return repr([(told.st_mtime_ns, told.st_size) for told in map(os.stat, files.split("\0"))])

    first = look()

    def is_fresh() -> bool:
        try:
            return look() == first
        except OSError:
            return False  # an update is just being written

    return is_fresh


if __name__ == "__main__":
    sys.exit(main())
