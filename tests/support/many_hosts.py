"""`python -m tests.support.many_hosts HOME COUNT`: so many session hosts in one process, as the hub sees them.

Each says hello, raises a question, types what it is told, and asks the next at once.  Nothing is behind them: what is
measured is the hub.  A process of its own, because anyone who answers must not be below a host.
"""

from __future__ import annotations

import os
import selectors
import socket
import sys
from pathlib import Path

from tests.support.fake_host import YES_NO

from atlasbridge.core import wire
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.session.model import SessionRecord

PROMPT = encode_prompt(YES_NO)


class Host:
    def __init__(self, path: str, number: int) -> None:
        self._buffer = wire.LineBuffer()
        self.link = socket.socket(socket.AF_UNIX)
        self.link.connect(path)
        record = SessionRecord(
            session_id=new_id(),
            tool="bash",
            command=("bash",),
            cwd="/somewhere",
            pid=os.getpid(),
            host_pid=os.getpid(),
            started_at="2026-01-01T00:00:00.000000+00:00",
            label=f"n{number}",
        )
        self._say("hello", session=record.to_wire(), open=None, typed=[], ttl_s=None)

    def _say(self, kind: str, **fields: object) -> None:
        self.link.sendall(wire.encode({"m": kind, **fields}))

    def ask(self) -> None:
        self._say("raise", prompt_id=new_id(), prompt=PROMPT)

    def hear(self) -> bool:
        data = self.link.recv(65536)
        for message in self._buffer.feed(data):
            if message["m"] == "type":
                self._say("typed", prompt_id=message["prompt_id"], outcome="typed", detail="")
                self._say("effect", prompt_id=message["prompt_id"], outcome="taken")
                self.ask()
        return bool(data)


def main(home: str, count: str) -> None:
    waiter = selectors.DefaultSelector()
    hosts = [Host(str(Home(Path(home)).socket), number) for number in range(int(count))]
    for host in hosts:
        waiter.register(host.link, selectors.EVENT_READ, host)
    sys.stdin.readline()  # everybody is there, and somebody listens
    for host in hosts:
        host.ask()
    alive = True
    while alive:
        for key, _ in waiter.select():
            alive = key.data.hear() and alive


if __name__ == "__main__":
    main(*sys.argv[1:])
