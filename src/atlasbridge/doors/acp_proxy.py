"""`atlasbridge acp -- AGENT`: stands between an editor and its agent and lets everything pass, byte for byte.

A permission that the agent asks for goes to the editor and to the desk.  The first answer wins: the other side is told
that it is over, and what it may still say about it goes no further.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from typing import IO

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.values import mutable
from atlasbridge.doors.door import Door
from atlasbridge.doors.origin import Origin
from atlasbridge.doors.permission import Permission, canceled_key, read_message, read_permission

ASKS = b"session/request_permission"
CANCELS = b"cancel_request"
FORWARDED = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))

OpenDoor = Callable[[Origin], Door]


@mutable
class _Pending:
    permission: Permission
    door: Door


class _Side:
    """Where lines go out: whole, one after the other, whoever writes them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except (OSError, ValueError):
            pass  # that side has gone; its own pump ends the proxy


class AcpProxy:
    def __init__(self, to_editor: IO[bytes], to_agent: IO[bytes], origin: Origin, open_door: OpenDoor) -> None:
        self._to_editor = _Side(to_editor)
        self._to_agent = _Side(to_agent)
        self._origin = origin
        self._open_door = open_door
        self._lock = threading.Lock()  # one winner; never held while writing, or a side that does not read stops both
        self._pending: dict[str, _Pending] = {}
        self._asking: list[threading.Thread] = []
        self._settled: set[str] = set()  # answered by the desk: the editor's own word comes too late

    def from_agent(self, line: bytes) -> None:
        """A line that the agent wrote: it passes, and a permission is asked at the desk as well."""
        if CANCELS in line:
            self._take_back(canceled_key(line))
        permission = read_permission(line) if ASKS in line else None
        if permission is None:
            self._to_editor.write(line)
            return
        door = self._open_door(self._origin)
        with self._lock:
            before = self._pending.get(permission.key)
            self._pending[permission.key] = _Pending(permission, door)
        if before is not None:
            before.door.withdraw()
        self._to_editor.write(line)
        asking = threading.Thread(target=self._ask, args=(permission, door), name="permission", daemon=True)
        self._asking = [*(other for other in self._asking if other.is_alive()), asking]
        asking.start()

    def _take_back(self, key: str) -> None:
        """The agent does not want to know any more: nobody needs to answer it here either."""
        with self._lock:
            pending = self._pending.pop(key, None)
        if pending is not None:
            pending.door.withdraw()

    def from_editor(self, line: bytes) -> None:
        """A line that the editor wrote: it passes, unless it answers what the desk has answered."""
        with self._lock:
            key = _answered_key(line) if self._pending or self._settled else ""
            if key in self._settled:
                self._settled.discard(key)
                return
            pending = self._pending.pop(key, None)
        self._to_agent.write(line)
        if pending is not None:
            pending.door.withdraw()

    def withdraw_all(self) -> None:
        """The agent has ended: nobody waits for an answer any more."""
        with self._lock:
            left, self._pending = list(self._pending.values()), {}
        for pending in left:
            pending.door.withdraw()

    def wait_for_doors(self) -> None:
        """Until the hub has heard of every withdrawal."""
        for asking in self._asking:
            asking.join()

    def _ask(self, permission: Permission, door: Door) -> None:
        try:
            handed = door.ask(permission.prompt)
        except AtlasBridgeError:
            return  # no desk to be had; the editor has the question
        with self._lock:
            pending = self._pending.get(permission.key)
            if handed.answer is None or pending is None or pending.door is not door:
                return  # nobody said anything here, the editor was first, or the agent asked anew under the same number
            del self._pending[permission.key]
            self._settled.add(permission.key)
        self._to_agent.write(permission.answer_line(handed.answer))
        self._to_editor.write(permission.cancel_line())


def _answered_key(line: bytes) -> str:
    """The id of the request that this line answers; "" when it is no answer."""
    message = read_message(line)
    if not isinstance(message, dict) or "method" in message or "id" not in message:
        return ""
    return json.dumps(message["id"])


def serve(home: Home, command: list[str], editor_in: IO[bytes], editor_out: IO[bytes], label: str = "") -> int:
    """Run the agent until it ends; returns its exit status."""
    try:
        agent: subprocess.Popen[bytes] = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
    except OSError as error:
        raise AtlasBridgeError(f"cannot start {command[0]}: {error.strerror}", "is it installed and on the PATH?")
    assert agent.stdin is not None and agent.stdout is not None
    origin = Origin("acp", label or os.path.basename(command[0]), tuple(command), os.getcwd())
    proxy = AcpProxy(editor_out, agent.stdin, origin, lambda asker: Door(home, asker))
    for number in FORWARDED:
        signal.signal(number, lambda received, _: agent.send_signal(received))
    editor = threading.Thread(target=_pump_editor, args=(editor_in, agent.stdin, proxy), name="editor", daemon=True)
    editor.start()
    with os.fdopen(os.dup(agent.stdout.fileno()), "rb") as lines:
        for line in lines:
            proxy.from_agent(line)
    proxy.withdraw_all()
    proxy.wait_for_doors()
    status = agent.wait()
    return status if status >= 0 else 128 - status


def _pump_editor(editor_in: IO[bytes], to_agent: IO[bytes], proxy: AcpProxy) -> None:
    for line in editor_in:
        proxy.from_editor(line)
    try:
        to_agent.close()  # the editor has gone: the agent sees its input end, as without us
    except OSError:
        pass
