"""A session host for tests: says exactly what the test tells it to say, over a real socket, and keeps what it hears.

Its connection is made by a process of its own: the hub asks the kernel who a host is, and a test that answers prompts
must not be a child of its own host.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.left_behind import FILES_PROCESSES

from atlasbridge.core import wire
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.session.model import SessionRecord

YES_NO = Prompt(
    type=PromptType.TYPE_YES_NO,
    score=0.95,
    excerpt="Continue? (y/n)",
    safe_default="n",
    digest="d1",
    screen="Continue?",
)
SECRET = Prompt(
    type=PromptType.TYPE_FREE_TEXT, score=0.9, excerpt="Password:", constraints={"secret": True}, digest="d2"
)
UNKNOWN = Prompt(type=PromptType.TYPE_UNKNOWN, score=0.5, excerpt="?", digest="d3")
FREE_TEXT = Prompt(type=PromptType.TYPE_FREE_TEXT, score=0.8, excerpt="Name:", safe_default="enter", digest="d4")


class FakeHost:
    def __init__(
        self,
        home: Home,
        tool: str = "bash",
        ttl_s: float | None = None,
        integration: dict[str, str] | None = None,
        **session: Any,
    ) -> None:
        """`integration`: what its hello also says, if it is a question without a terminal."""
        self._home = home
        self._integration = integration or {}
        self._ttl_s = ttl_s
        self.hatch, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-ISE", str(Path(__file__).with_name("connector.py")), str(theirs.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                text=True,
            )
        self.record = SessionRecord(
            session_id=new_id(),
            tool=tool,
            command=(tool, "-c", "read"),
            cwd="/somewhere",
            pid=self.process.pid,
            host_pid=self.process.pid,
            started_at="2026-01-01T00:00:00.000000+00:00",
            **session,
        )
        FILES_PROCESSES.add(self)
        self.open: dict[str, Any] | None = None
        self.typed: list[list[str]] = []
        self.words: list[list[Any]] = []  # what was typed, and on whose word
        self._connect()

    @property
    def session_id(self) -> str:
        return self.record.session_id

    @property
    def open_id(self) -> str:
        assert self.open is not None, "nothing was raised"
        return str(self.open["prompt_id"])

    def __enter__(self) -> FakeHost:
        return self

    def __exit__(self, fault: type[BaseException] | None, *_: object) -> None:
        if fault is not None:  # the tests that share the hub find no session of one that failed
            with contextlib.suppress(OSError):
                self.end()
            self.die()
        self.close()

    def _connect(self) -> None:
        self._buffer = wire.LineBuffer()
        self._heard: list[dict[str, Any]] = []
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self._home.socket}\n")
        self.process.stdin.flush()
        _, (fd,), _, _ = socket.recv_fds(self.hatch, 1, 1)
        self._socket = socket.socket(fileno=fd)
        self._socket.settimeout(60)
        told = {"open": self.open, "typed": self.typed, "words": self.words, "ttl_s": self._ttl_s, **self._integration}
        self.say("hello", session=self.record.to_wire(), **told)
        assert self.hear("welcome") == {"m": "welcome"}

    def reconnect(self) -> None:
        self._socket.close()
        self._connect()

    def close(self) -> None:
        """The connection ends; the process stays, as a host does that will be back."""
        self._socket.close()

    def die(self) -> None:
        """As after kill -9 of a host."""
        self.process.kill()
        self.process.communicate()
        self.hatch.close()
        self._socket.close()

    def end_process(self) -> None:
        if self.process.returncode is None:
            self.die()

    __del__ = end_process

    def say(self, kind: str, **fields: Any) -> None:
        self._socket.sendall(wire.encode({"m": kind, **fields}))

    def be_patient(self, seconds: float) -> None:
        """So long is the hub given to say something."""
        self._socket.settimeout(seconds)

    def hear(self, kind: str) -> dict[str, Any]:
        """The next message of this kind; others before it are dropped."""
        while True:
            while self._heard:
                message = self._heard.pop(0)
                if message["m"] == kind:
                    return message
            data = self._socket.recv(65536)
            assert data, f"the hub closed the connection before it said {kind!r}"
            self._heard.extend(self._buffer.feed(data))

    def raise_prompt(self, prompt: Prompt = YES_NO) -> str:
        prompt_id = new_id()
        self.open = {"prompt_id": prompt_id, "prompt": encode_prompt(prompt)}
        self.say("raise", **self.open)
        return prompt_id

    def answer_typing(self, outcome: str = "typed", effect: str | None = "taken") -> dict[str, Any]:
        """Do what a host does with the next `type`."""
        order = self.hear("type")
        self.typed.append([order["prompt_id"], effect or outcome if outcome == "typed" else outcome])
        self.say("typed", prompt_id=order["prompt_id"], outcome=outcome, detail="")
        if outcome == "typed" and effect is not None:
            self.open = None
            self.say("effect", prompt_id=order["prompt_id"], outcome=effect)
        return order

    def withdraw(self, prompt_id: str, reason: str = "answered_at_terminal") -> None:
        self.open = None
        self.say("withdraw", prompt_id=prompt_id, reason=reason)

    def end(self, exit_code: int = 0) -> None:
        self.say("end", exit_code=exit_code, status=exit_code)
