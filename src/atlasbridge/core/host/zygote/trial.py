"""A host for nobody: forked before all others, it goes the whole way of one, and tells which code it has written to.

Here is what it deals with: a client and a hub in one, without a thread, in a folder of its own that is gone afterwards.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from atlasbridge.core import wire
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.host.terminal.lending import send_with_fds
from atlasbridge.core.host.zygote.dress import order
from atlasbridge.core.host.zygote.letter import CWD, GO, HERE, write_letter
from atlasbridge.core.host.zygote.packing import watch_code
from atlasbridge.core.shield import die_with_parent

_TOOL = "printf 'Name: '; read -r x; sleep 0.2; for i in 1 2 3; do printf 'Continue? (y/n) '; read -r y; echo; done"
_WORDS = ("--label", "trial", "--", "sh", "-c", _TOOL)
_ANSWERED = 3  # of its questions; at the next one it is as warm as a host gets
_LONGEST_S = 5.0  # a machine without time has a zygote that shares less
_REPORT = "written"

Live = Callable[[socket.socket, int], NoReturn]  # as a host: what is not to stay open, and the line to its client


def try_out(live: Live, surroundings: bytes, clock: Clock) -> set[int]:
    """The places of the code that a host writes to; none where nothing came of it."""
    with suppress(OSError, AtlasBridgeError), TemporaryDirectory(prefix="ab", ignore_cleanup_errors=True) as folder:
        home = Home(Path(folder))
        home.prepare()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, _terminal() as slave, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as hub:
            hub.bind(str(home.socket))
            hub.listen()
            with _forked(home, live, ours, theirs) as pid:
                stage = _Stage(ours, slave, clock.now() + _LONGEST_S, clock)
                if stage.begin(home, surroundings) and stage.play(hub):
                    os.kill(pid, signal.SIGUSR1)
                    stage.await_end()
        return {int(word) for word in (home.root / _REPORT).read_text().split()}
    return set()


@contextmanager
def _forked(home: Home, live: Live, ours: socket.socket, theirs: socket.socket) -> Iterator[int]:
    """Its process, which is gone before its hub is: it would start another one."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_tried(parent, home, live, ours, theirs)
    theirs.close()
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _be_tried(parent: int, home: Home, live: Live, ours: socket.socket, theirs: socket.socket) -> NoReturn:
    """Never returns: its stack is the zygote's."""
    try:
        die_with_parent()
        if os.getppid() != parent:
            os._exit(1)
        written = watch_code()

        def report(*_: object) -> None:
            (home.root / _REPORT).write_text(" ".join(map(str, written())))
            os._exit(0)

        signal.signal(signal.SIGUSR1, report)
        live(ours, theirs.detach())
    finally:
        os._exit(1)


@contextmanager
def _terminal() -> Iterator[int]:
    master, slave = os.openpty()
    try:
        yield slave
    finally:
        os.close(master)
        os.close(slave)


class _Stage:
    def __init__(self, client: socket.socket, terminal: int, until: float, clock: Clock) -> None:
        self._client = client
        self._terminal = terminal
        self._until = until
        self._clock = clock
        self._asked = 0

    @property
    def _left_s(self) -> float:
        return max(0.0, self._until - self._clock.now())

    def begin(self, home: Home, surroundings: bytes) -> bool:
        environ = {"ATLASBRIDGE_HOME": str(home.root), "PATH": os.defpath, "TERM": "xterm"}
        pairs = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
        letter = write_letter(surroundings, 0o077, [CWD, "0", "1", "2"], _WORDS, pairs)
        folder = os.open(home.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            send_with_fds(self._client, letter, (folder, *[self._terminal] * 3))
        finally:
            os.close(folder)
        self._client.settimeout(self._left_s)
        if self._client.recv(len(HERE)) != HERE:
            return False
        self._client.sendall(GO)
        return True

    def play(self, hub: socket.socket) -> bool:
        """Until it asks what is not answered.  False: it never did."""
        waiter = select.poll()
        lines = {line.fileno(): (line, wire.LineBuffer()) for line in (hub, self._client)}
        for number in lines:
            waiter.register(number, select.POLLIN)
        while self._left_s and self._asked <= _ANSWERED:
            for number, _ in waiter.poll(self._left_s * 1000):
                line, buffer = lines[number]
                if line is hub:
                    line, _ = hub.accept()
                    lines[line.fileno()] = line, wire.LineBuffer()
                    waiter.register(line, select.POLLIN)
                elif data := line.recv(65536):
                    for message in buffer.feed(data):
                        self._hear(message, line)
                elif line is self._client:
                    return False
                else:
                    waiter.unregister(number)
        return self._asked > _ANSWERED

    def _hear(self, message: dict[str, Any], line: socket.socket) -> None:
        asked = message if message.get("m") == "raise" else message.get("open")
        if message.get("m") == "plan":
            attach = {"m": "attach", "rows": 24, "cols": 80}
            send_with_fds(line, wire.encode(attach), (self._terminal, self._terminal))
        elif "op" in message:
            line.sendall(wire.encode({"ok": True, "sessions": []}))
        elif asked:
            self._asked += 1
            if self._asked <= _ANSWERED:
                line.sendall(wire.encode(order(asked)))

    def await_end(self) -> None:
        self._client.settimeout(self._left_s)
        while self._client.recv(65536):
            pass
