"""The dress rehearsal: a few whole sessions in the zygote itself, a real tool on a real terminal, a hub that answers.

Code that runs for the first few times is written to by its interpreter; what has run here no host writes to again.
All of it happens in a folder of its own, which is gone afterwards, and no thread is left.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.host.edges import HostParts
from atlasbridge.core.host.host import SessionHost
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.terminal.lending import send_with_fds
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.prompt.codec import decode_prompt
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.session.plan import Plan
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Size

_TOOL = ("sh", "-c", "printf 'Name: '; read -r x; printf 'Continue? (y/n) '; read -r y; echo $x $y")
_SIZE = Size(24, 80)
_TIMES = 3  # more of them changed nothing that could be measured
_LONGEST_S = 5.0  # for one session; a machine without time has a zygote that shares less
_THREADS_S = 5.0  # for a thread that has been told to leave


def rehearse_sessions(parts_of: Callable[[Home], HostParts]) -> bool:
    """False: something is still running, and nothing may be forked from this process."""
    before, opened = signal.getsignal(signal.SIGCHLD), set(os.listdir("/proc/self/fd"))
    threads = set(threading.enumerate())
    try:
        with tempfile.TemporaryDirectory(prefix="ab", ignore_cleanup_errors=True) as folder:
            _rehearse_in(Home(Path(folder)), parts_of)
    except (OSError, AtlasBridgeError):
        pass  # no terminal, or no room for a socket: this zygote shares less
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, before)
    if not _are_over(set(threading.enumerate()) - threads):
        return False
    _close_others(opened)
    return True


def _rehearse_in(home: Home, parts_of: Callable[[Home], HostParts]) -> None:
    home.prepare()
    with _Hub(home.socket):
        for _ in range(_TIMES):
            _play(home, parts_of(home))


def _play(home: Home, parts: HostParts) -> None:
    plan = Plan(_TOOL, new_id(), cwd="/", environ={"PATH": os.defpath, "TERM": "xterm-256color"})
    clock, journal = SystemClock(), Logbook(None, SystemClock())
    pty = parts.spawn(plan, _SIZE, None)
    host = SessionHost(plan, pty, _SIZE, parts, SessionSettings(), clock, journal)
    host.listen(home.sessions / f"{short_id(plan.session_id)}.sock")
    limit = threading.Timer(_LONGEST_S, host.end_tool, (True,))
    limit.start()
    master, slave = os.openpty()
    client, theirs = socket.socketpair()
    try:
        send_with_fds(client, wire.encode({"m": "attach", "rows": _SIZE.rows, "cols": _SIZE.cols}), (slave, slave))
        host.finish(host.serve(theirs))
    finally:
        limit.cancel()
        client.close()
        pty.close()
        for fd in (master, slave):
            os.close(fd)


def _close_others(opened: set[str]) -> None:
    """A host never closes what the kernel closes at its end."""
    gc.collect()  # what closes itself when nobody needs it
    for name in set(os.listdir("/proc/self/fd")) - opened:
        with contextlib.suppress(OSError):  # the listing's own
            os.close(int(name))


def _are_over(threads: set[threading.Thread]) -> bool:
    for thread in threads:
        thread.join(_THREADS_S)
    return not any(thread.is_alive() for thread in threads)


class _Hub:
    """Answers whatever is asked, at once."""

    def __init__(self, path: Path) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._run, name="rehearsal", daemon=True)

    def __enter__(self) -> _Hub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for a caller
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            with link, contextlib.suppress(OSError):
                self._serve(link)

    def _serve(self, link: socket.socket) -> None:
        buffer = wire.LineBuffer()
        while data := link.recv(65536):
            for message in buffer.feed(data):
                asked = message if message["m"] == "raise" else message.get("open")  # before the host found us
                if asked:
                    link.sendall(wire.encode(order(asked)))


def order(asked: dict[str, Any]) -> dict[str, Any]:
    """What a hub says to a host that asks: the first choice, or a word."""
    choices = decode_prompt(asked["prompt"]).choices
    answer = Answer(AnswerKind.CHOICE, choices[0].value) if choices else Answer(AnswerKind.TEXT, "yes")
    return {"m": "type", "prompt_id": asked["prompt_id"], "answer": answer.to_json(), "by": "rehearsal"}
