"""Keeps the session's threads alive: a thread that crashes or hangs is replaced, at most `max_task_restarts` times.

A thread cannot be stopped from outside: a stuck one is retired and exits if it ever continues. The owner decides what
to do when a task cannot be kept alive. The session's log is here as well.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.system import OWN_FILE
from atlasbridge.core.tty import Pty
from atlasbridge.core.values import mutable

_MAX_BYTES = 1_000_000


class SessionLog:
    """The session's own log file: one JSON object per line. An error while writing it never disturbs the session."""

    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._clock = clock
        self._room = _MAX_BYTES
        self._fd = -1
        if path is not None:
            try:
                self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | OWN_FILE, 0o600)
            except OSError:
                self._fd = -1

    def note(self, event: str, **fields: object) -> None:
        line = json.dumps({"at": iso(self._clock.wall()), "event": event, **fields}, default=str).encode() + b"\n"
        self._room -= len(line)
        if self._fd < 0 or self._room < 0:
            return
        try:
            os.write(self._fd, line)
        except OSError:
            self._room = 0  # the disk is full or the folder is gone

    def crash(self, event: str, error: BaseException) -> None:
        import traceback  # rarely needed, and slow to import

        from atlasbridge.core.prompt.redact import redact_outgoing

        trace = "".join(traceback.format_exception(error))
        self.note(event, error=redact_outgoing(str(error)), trace=redact_outgoing(trace[-4000:]))


class Beat:
    """A task's sign of life. At rest, the task can sleep as long as needed; at work, it must come to rest in time."""

    __slots__ = ("_clock", "busy_since", "retired")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.retired = False
        self.busy_since: float | None = None

    def work(self) -> None:
        self.busy_since = self._clock.now()

    def rest(self) -> None:
        self.busy_since = None


Loop = Callable[[Beat], None]


@mutable
class _Task:
    name: str
    loop: Loop
    beat: Beat
    restarts: int = 0
    restart_at: float | None = None
    finished: bool = False


class Supervisor:
    def __init__(
        self, clock: Clock, settings: SessionSettings, journal: SessionLog, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._journal = journal
        self._wake = wake  # wakes the thread that calls `check`
        self._tasks: dict[str, _Task] = {}
        self._stopping = False
        self.failed = ""  # the task that could not be kept alive

    def start(self, name: str, loop: Loop) -> None:
        task = _Task(name, loop, Beat(self._clock))
        self._tasks[name] = task
        self._launch(task)

    def _launch(self, task: _Task) -> None:
        beat = task.beat
        threading.Thread(target=self._run, args=(task, beat), name=task.name, daemon=True).start()

    def _run(self, task: _Task, beat: Beat) -> None:
        try:
            beat.work()
            task.loop(beat)
            if not beat.retired:
                task.finished = True
        except Exception as error:  # the session boundary: a task can fail in any way, the session continues
            if not beat.retired and not self._stopping:
                self._journal.crash(f"{task.name} crashed", error)
                task.restart_at = self._clock.now() + self._settings.restart_delay_s
                self._wake()
        finally:
            beat.rest()

    def check(self) -> float:
        """Replaces crashed or stuck tasks. Returns in how many seconds to check again: at once if one has failed
        for good, which ends the session."""
        now = self._clock.now()
        next_check = now + self._settings.task_timeout_seconds / 2
        for task in self._tasks.values():
            since = task.beat.busy_since
            if task.restart_at is None and since is not None and now - since > self._settings.task_timeout_seconds:
                self._journal.note(f"{task.name} is stuck", seconds=round(now - since, 1))
                task.restart_at = now
            if task.restart_at is not None:
                if now >= task.restart_at:
                    self._replace(task)
                else:
                    next_check = min(next_check, task.restart_at)
        return 0.0 if self.failed else max(0.0, next_check - now)

    def _replace(self, task: _Task) -> None:
        task.restart_at = None
        task.beat.retired = True
        if task.restarts >= self._settings.max_task_restarts:
            self.failed = self.failed or task.name
            return
        task.restarts += 1
        task.beat = Beat(self._clock)
        self._journal.note(f"{task.name} restarted", restarts=task.restarts)
        self._launch(task)

    def stop(self) -> None:
        """Asks every task to exit. Its owner must wake a sleeping task."""
        self._stopping = True
        for task in self._tasks.values():
            task.beat.retired = True


def end_in_background(pty: Pty, grace_s: float) -> None:
    """Ends the tool in steps, first politely and after a grace period by force. The caller does not wait."""

    def walk() -> None:
        pause = threading.Event()
        for pause_s in pty.end_steps(grace_s):
            pause.wait(pause_s)

    threading.Thread(target=walk, name="end_tool", daemon=True).start()
