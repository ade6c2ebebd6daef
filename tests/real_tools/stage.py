"""A real AI CLI on a stage: under `atlasbridge run` in a terminal of its own, against the mock model, with a person
who answers through `atlasbridge reply`.  Used by `tests.real_tools` and by the tests on the real tools.

Which dialogs to walk, and what counts as right, is left to `canary` and to the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.process import own_python
from atlasbridge.core.screen.screen import Screen
from ptypool.process import set_window_size, spawn_process
from tests.real_tools.mockmodel import MockModel
from tests.real_tools.realtool import find_tool, prepare_launch

# What a tool leaves behind when it ends: daemons of its own, known by the home folder that it was started with.
#
# Walks end them, so that none lives on after its home is gone.  Where the system does not show what a process was
# started
# with, nothing is found.

_PROCESSES = Path("/proc")


def find_left_behind(home: Path) -> list[int]:
    """The processes that were started with this home folder."""
    wanted = b"HOME=" + os.fsencode(home)
    found = []
    for entry in _PROCESSES.iterdir() if _PROCESSES.is_dir() else ():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it is gone, or somebody else's
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def end_left_behind(home: Path) -> list[int]:
    """Ends them, and what they start meanwhile; gives back which."""
    ended: list[int] = []
    while found := [pid for pid in find_left_behind(home) if pid not in ended]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended += found
    return ended


PATIENCE_S = 45.0
ENDS = ("prompt.resolved", "prompt.withdrawn", "prompt.expired", "prompt.canceled", "prompt.failed")
_STATUS_ANSWER = b"\x1b]7501"  # an ordinary terminal does not know program status: the host answers it
_CLOCK = SystemClock()


class StageError(AtlasBridgeError):
    """What was waited for did not come; the message shows the screen."""


class Stage:
    """One tool in one session.  `root` is removed at the end."""

    def __init__(
        self,
        tool: str,
        *,
        rows: int = 40,
        cols: int = 120,
        first_run: str = "",
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        prepare: Callable[[Path, Path], None] | None = None,
        config: str = "",
        mute: bool = False,
    ) -> None:
        binary = find_tool(tool)
        if binary is None:
            raise StageError(f"{tool} is not installed", "Set ATLASBRIDGE_TOOLS, or run tools/install-extras.")
        self.tool = tool
        self._mute = mute  # a terminal that answers no query
        self.root = Path(tempfile.mkdtemp(prefix="ab"))
        self.model = MockModel(str(self.root / "work"))
        self.model.start()
        launch = prepare_launch(tool, binary, self.root, self.model.address, first_run)
        self.folder, self.home = launch.folder, self.root / "home"
        self.bridge = self.root / "b"
        self.bridge.mkdir(mode=0o700)
        (self.bridge / "config.toml").write_text(config)
        (self.bridge / "config.toml").chmod(0o600)
        if prepare is not None:
            prepare(self.home, self.folder)
        ours = {"ATLASBRIDGE_HOME": str(self.bridge), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        self.env = {**launch.env, **(env or {}), **ours}
        self.events: list[dict[str, Any]] = []
        self.output = bytearray()
        self._seen = 0
        self.idle_prompt: dict[str, Any] = {}  # the newest
        self._changed = threading.Condition()
        self.screen = Screen(rows, cols)
        self.command = (*launch.argv, *arguments)
        self._follower = self._follow()
        program = own_python("atlasbridge", "run", *options, "--", *self.command)
        child = spawn_process(program, env=self.env, cwd=self.folder, size=(rows, cols))
        self.pid, self._master = child.pid, child.master_fd
        self._closing = threading.Event()
        self._pump = threading.Thread(target=self._read, name="stage-terminal", daemon=True)
        self._pump.start()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ the terminal

    def _read(self) -> None:
        waiter = select.poll()  # not select(): a caller may hold more than 1024 descriptors
        waiter.register(self._master, select.POLLIN)
        while not self._closing.is_set():
            if not waiter.poll(100):
                continue
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            with self._changed:
                self.output += data
                self.screen.feed(data)
                answers = [a for a in self.screen.take_queries() if not a.startswith(_STATUS_ANSWER)]
                self._changed.notify_all()
            if answers and not self._mute:
                self.type(b"".join(answers))

    def text(self) -> str:
        with self._changed:
            return "\n".join(self.screen.lines()).rstrip()

    def type(self, keys: bytes | str) -> None:
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self._master, data) :]

    def resize(self, rows: int, cols: int) -> None:
        set_window_size(self._master, rows, cols)
        with self._changed:
            self.screen.resize(rows, cols)

    def say(self, text: str) -> None:
        """Type an instruction and send it once all of it stands on the screen."""
        wanted = "".join(text.split())

        def seen() -> int:
            return "".join(self.text().split()).count(wanted)

        before = seen()
        self.type(text)
        self.wait(lambda: seen() > before, f"the echo of {text!r}")
        self.pass_time(0.3)  # text and Enter in one go are a paste for some
        self.type(b"\r")

    # ------------------------------------------------------------ waiting

    def wait(self, condition: Callable[[], Any], what: str, deadline_s: float = PATIENCE_S) -> Any:
        """The condition's value once it is true."""
        give_up_at = _CLOCK.now() + deadline_s
        while True:
            found = condition()
            if found:
                return found
            left_s = give_up_at - _CLOCK.now()
            if left_s <= 0:
                raise StageError(f"waited for {what} in vain; the screen shows:\n{self.text()}")
            with self._changed:
                self._changed.wait(min(left_s, 0.1))

    def wait_text(self, text: str, deadline_s: float = PATIENCE_S) -> None:
        self.wait(lambda: text in self.text(), repr(text), deadline_s)

    def pass_time(self, seconds: float) -> None:
        """Let the tool go on: for moments in which nothing must happen."""
        until = _CLOCK.now() + seconds
        with self._changed:
            while (left_s := until - _CLOCK.now()) > 0:
                self._changed.wait(left_s)

    # ------------------------------------------------------------ the person elsewhere

    def _follow(self) -> subprocess.Popen[bytes]:
        command = own_python("atlasbridge", "events", "--json", "--follow")
        environ = {**os.environ, "ATLASBRIDGE_HOME": str(self.bridge)}
        follower = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        threading.Thread(target=self._collect, args=(follower,), name="stage-events", daemon=True).start()
        return follower

    def _collect(self, follower: subprocess.Popen[bytes]) -> None:
        assert follower.stdout is not None
        for line in follower.stdout:
            with self._changed:
                self.events.append(json.loads(line))
                self._changed.notify_all()

    def named(self, name: str) -> list[dict[str, Any]]:
        with self._changed:
            return [event for event in self.events if event["event"] == name]

    def next_prompt(self, deadline_s: float = PATIENCE_S, idle: bool = False) -> dict[str, Any]:
        """The next prompt that was raised and has not been returned before; the idle box only when asked for."""

        def look() -> dict[str, Any] | None:
            with self._changed:
                while self._seen < len(self.events):
                    event = self.events[self._seen]
                    self._seen += 1
                    if event["event"] == "prompt.raised" and bool(event["constraints"].get("idle")) == idle:
                        return event
            return None

        found: dict[str, Any] = self.wait(look, "a prompt" if not idle else "the idle box", deadline_s)
        if idle:
            self.idle_prompt = found
        return found

    def open_question(self) -> dict[str, Any] | None:
        """The newest question, if it still waits."""
        return self._open(idle=False)

    def open_idle(self) -> bool:
        """Whether it waits at its input box, as far as was told."""
        return self._open(idle=True) is not None

    def _open(self, idle: bool) -> dict[str, Any] | None:
        with self._changed:
            raised = [event for event in self.events if event["event"] == "prompt.raised"]
            ended = {event.get("prompt_id") for event in self.events if event["event"] in ENDS}
        raised = [event for event in raised if bool(event["constraints"].get("idle")) == idle]
        return raised[-1] if raised and raised[-1]["prompt_id"] not in ended else None

    def reply(self, prompt: Mapping[str, Any], value: str, *options: str) -> tuple[int, dict[str, Any]]:
        """Through `atlasbridge reply`: its exit status and what it printed."""
        command = [*own_python("atlasbridge", "reply", str(prompt["prompt_id"]), "--json", *options)]
        secret = bool(prompt.get("constraints", {}).get("secret"))
        done = subprocess.run(
            command if options[:1] == ("--keys",) else [*command, "--", "-" if secret else value],
            input=value if secret else "",  # a secret is never on a command line
            env={**os.environ, "ATLASBRIDGE_HOME": str(self.bridge)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "{}") or {"message": done.stderr}

    def outcome(self, prompt: Mapping[str, Any], deadline_s: float = PATIENCE_S) -> str:
        """How the prompt ended: "resolved", "withdrawn", "failed", ..."""

        def look() -> str:
            with self._changed:
                for event in self.events:
                    if event.get("prompt_id") == prompt["prompt_id"] and event["event"] in ENDS:
                        return str(event["event"]).removeprefix("prompt.")
            return ""

        return str(self.wait(look, "the end of the prompt", deadline_s))

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        self._end_session()
        self._ours("hub", "stop")
        self._closing.set()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        end_left_behind(self.home)
        self._pump.join()
        os.close(self._master)
        self._follower.kill()
        self._follower.wait()
        if self._follower.stdout is not None:
            self._follower.stdout.close()
        self.model.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def _end_session(self) -> None:
        """A session outlives its terminal and its hub: it is ended through its attach socket."""
        attach_sockets = list((self.bridge / "sessions").glob("*.sock"))
        for path in attach_sockets:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(str(path))
                connection.sendall(wire.encode({"m": "signal", "number": signal.SIGKILL}))
                self.wait(
                    lambda: not any(path.exists() for path in attach_sockets),
                    "the end of the session",
                    10.0,
                )

    def _ours(self, *words: str) -> None:
        subprocess.run(
            own_python("atlasbridge", *words),
            env={**os.environ, "ATLASBRIDGE_HOME": str(self.bridge)},
            capture_output=True,
            check=False,
        )
