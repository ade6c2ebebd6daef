"""Hubs and commands of the product, forked from one process that has imported everything: a start costs a fork.

What runs in the child is the product's own `main`, with its own environment, in a session of its own.  A test process
has one of these for all its tests.  `python -m tests.support.warm FD` is that process: one JSON order per message comes
in through FD, with the descriptors of the new process, and its id goes out.  Where workers are forked (see
forked_workers.py), one process imports everything while the tests are collected, and each worker's is a fork of it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HUB, COMMAND, NURSERY = "hub", "command", "nursery"
PR_CAPBSET_DROP, CAPABILITIES_3 = 24, 0x20080522  # of Linux
_MODULES = (
    "aiohttp.web atlasbridge.__main__ atlasbridge.bootstrap atlasbridge.channels.desktop atlasbridge.channels.local"
    " atlasbridge.cli.logs atlasbridge.cli.config atlasbridge.cli.main atlasbridge.cli.policy atlasbridge.cli.reply"
    " atlasbridge.cli.hub atlasbridge.config.load atlasbridge.config.model atlasbridge.core.daemon.__main__"
    " atlasbridge.core.daemon.service atlasbridge.core.policy.effects atlasbridge.web.channel"
    " atlasbridge.web.server rich.console rich.table atlasbridge.core.detection.detector atlasbridge.core.host.host"
    " atlasbridge.core.host.analysis atlasbridge.core.host.typist atlasbridge.core.host.hub_link"
    " atlasbridge.adapters.tool_start atlasbridge.os.tty.linux atlasbridge.core.client.client"
)


class Nursery:
    def __init__(self, mother: Nursery | None = None) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._one_at_a_time = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        with theirs:
            if mother is not None:
                mother.fork_a_nursery(theirs.fileno())
            else:
                kept = {
                    name: value for name, value in _AT_FIRST.items() if name not in ("TEST_RUN", "PYTEST_CURRENT_TEST")
                }
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())],
                    env=kept,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )

    @cached_property
    def pid(self) -> int:
        return self._process.pid if self._process else int(self._line.recv(32))  # the first that it says

    def fork_a_nursery(self, line: int) -> None:
        """Every worker may ask, so nothing comes back here: the new one says its id on its own line."""
        socket.send_fds(self._line, [json.dumps({"kind": NURSERY}).encode()], [line])

    def fork(self, order: Mapping[str, Any], *fds: int) -> int:
        """The new process; the descriptors become its standard streams, and one on which it speaks of itself."""
        with self._one_at_a_time:
            assert self.pid
            socket.send_fds(self._line, [json.dumps(order).encode()], list(fds))
            return int(self._line.recv(32))

    def close(self) -> None:
        self._line.close()  # it ends with its line
        if self._process:
            self._process.wait()

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []


_STARTERS = ("run", "attach", "hub", "demo", "ask", "mcp", "acp", "setup", "debug", "doctor", "version", "update")
_BEARS_A_FORK = (("hub", "stop"), ("run", "--detach"))
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS", "LINES", "TZ", "HOME", "PATH")
_AT_FIRST = dict(os.environ)  # what the warm process has; a test can change its own
_nursery: Nursery | None = None
_mother: Nursery | None = None
_made_once = threading.Lock()


def remember_environ() -> None:
    """The environment of the tests is complete now (see conftest.py)."""
    _AT_FIRST.clear()
    _AT_FIRST.update(os.environ)


def may_fork(words: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Not where a command starts others or looks at its own process, or where something is read before `main`."""
    starts = bool(words) and words[0] in _STARTERS and tuple(words[:2]) not in _BEARS_A_FORK
    if sys.platform != "linux" or starts:
        return False
    early = {name for name in {*environ, *_AT_FIRST} if name.startswith(_OF_PYTHON)}
    return all(environ.get(name) == _AT_FIRST.get(name) for name in early)


def nursery() -> Nursery:
    global _nursery
    with _made_once:
        if _nursery is None:
            _nursery = Nursery(_mother)
        return _nursery


def prepare() -> None:
    """Before workers are forked: they all have theirs of one that has imported everything by then."""
    global _mother
    _mother = Nursery()


def close() -> None:
    for one in (_nursery, _mother):
        if one is not None:
            one.close()


def living() -> list[int]:
    """What was forked and has not ended."""
    return _nursery.children() if _nursery is not None else []


def start_hub(environ: Mapping[str, str], ordinary: bool = False) -> dict[str, Any]:
    """What the new hub says of itself, as to any starter. `ordinary`: without what only root may."""
    with tempfile.TemporaryFile() as nothing:
        reader, writer = os.pipe()
        try:
            order = {"kind": HUB, "environ": dict(environ), "ordinary": ordinary}
            nursery().fork(order, nothing.fileno(), nothing.fileno(), writer)
        finally:
            os.close(writer)
        with open(reader, "rb") as verdict:
            told: dict[str, Any] = json.loads(verdict.readline() or b"{}")
            return told


def run_command(
    words: Sequence[str], environ: Mapping[str, str], given: str = "", ordinary: bool = False
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run` with the product's command, its output taken and its input given."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as faults, tempfile.TemporaryFile() as typed:
        typed.write(given.encode())
        typed.seek(0)
        reader, writer = os.pipe()
        order = {
            "kind": COMMAND,
            "environ": dict(environ),
            "words": list(words),
            "cwd": os.getcwd(),
            "ordinary": ordinary,
        }
        try:
            pid = nursery().fork(order, typed.fileno(), said.fileno(), writer, faults.fileno())
        finally:
            os.close(writer)
        with open(reader, "rb") as ending:
            status = ending.readline()  # a session that it has started holds the other end, too
        assert status, f"process {pid} ended without a status: {words}"
        out, err = (_text(file) for file in (said, faults))
        return subprocess.CompletedProcess(["atlasbridge", *words], int(status), out, err)


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode().replace("\r\n", "\n")
    return text


# In the process that forks.


def main() -> None:
    for name in _MODULES.split():
        importlib.import_module(name)
    patterns = importlib.import_module("atlasbridge.core.patterns")
    while patterns.compile_next():
        pass
    line = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: the kernel buries them
    while True:
        message, fds, _, _ = socket.recv_fds(line, 1 << 20, 4)
        if not message:
            return
        order = json.loads(message)
        child = os.fork()
        if child == 0:
            line.close()
            if order["kind"] != NURSERY:
                _become(order, fds)
            os.setsid()
            line = socket.socket(fileno=fds[0])
            line.send(str(os.getpid()).encode())
            continue
        if order["kind"] != NURSERY:
            line.send(str(child).encode())
        for fd in fds:
            os.close(fd)


def _become(order: dict[str, Any], fds: list[int]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        gc.unfreeze()
        os.environ.clear()
        os.environ.update(order["environ"])
        time.tzset()
        given, said, told, *faults = fds
        for number, fd in enumerate((given, said, *(faults or [said]))):
            os.dup2(fd, number)
        if order["ordinary"]:
            _give_up_capabilities()
        if order["kind"] == HUB:
            os.setsid()
            os.set_inheritable(told, False)
            from atlasbridge.core.daemon.__main__ import main as hub_main

            sys.argv = ["atlasbridge", "--ready-fd", str(told)]
            status = hub_main()
        else:
            os.chdir(order["cwd"])
            from atlasbridge.__main__ import choose_letters
            from atlasbridge.cli.main import main as command_main
            from atlasbridge.cli.run import run

            for stream in (sys.stdout, sys.stderr):
                choose_letters(stream, False, False)  # type: ignore[arg-type]
            sys.argv = ["atlasbridge", *order["words"]]
            status = run(order["words"][1:]) if order["words"][:1] == ["run"] else command_main()
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(told, b"%d\n" % status)
    finally:
        os._exit(status)


def _give_up_capabilities() -> None:
    """As `setpriv --bounding-set=-all --inh-caps=-all` does before it starts a program."""
    libc = ctypes.CDLL(None, use_errno=True)
    for number in range(64):  # it knows fewer, and refuses the others
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    if libc.capset(struct.pack("Ii", CAPABILITIES_3, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    main()
