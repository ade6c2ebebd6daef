"""Starts the hub on demand and stops it. Several starters can race: the lock allows only one hub.

A starter waits on a pipe of the new hub. One line says that the hub listens, or why it cannot.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from typing import Any

from atlasbridge.core.ancestry import is_inside, look_at, trace_ancestry
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.daemon.request import FalseHub, HubClient, connect, is_starting, lock_holder
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.process import first_line, own_environ, own_python, start_alone

ALREADY_RUNNING = "already running"
_TAKEN_BACK_S = 5.0  # for a session's host to start a hub, and for a hub to restore its own socket
_ENDING_S = 1.0  # for a hub that ends without reporting


def ensure_hub(home: Home, timeout_s: float = 15.0, clock: Clock | None = None) -> bool:
    """Ensures that a hub listens. Returns True if this call started it."""
    clock = clock or SystemClock()
    home.prepare()
    deadline = clock.now() + timeout_s
    while True:
        try:
            connect(home, timeout_s=5.0).close()
        except FalseHub:
            if clock.now() > deadline - timeout_s + _TAKEN_BACK_S:
                raise
        except HubUnavailable:
            pass
        else:
            return False
        if clock.now() > deadline:
            raise HubUnavailable("the hub did not start in time", f"look into {home.log}")
        if not home.may_start_hub:
            raise HubUnavailable(f"no hub listens at {home.socket}", "it is started by the user whose hub it is")
        if is_inside(trace_ancestry(os.getpid(), look_at)):
            _wait_for_the_host(clock.now() > deadline - timeout_s + _TAKEN_BACK_S)
        elif _spawn_and_wait(home, max(0.1, deadline - clock.now())):
            return True
        time.sleep(0.05)  # another hub has the lock: it is about to listen or to end


def _wait_for_the_host(long_enough: bool) -> None:
    """A process inside a session does not start a hub; the session's host does."""
    if long_enough:
        raise HubUnavailable("the hub is not running", "start it outside of this session: atlasbridge hub start")
    time.sleep(0.05)


def _spawn_and_wait(home: Home, timeout_s: float) -> bool:
    """Returns True if the new hub listens; False if another hub has the lock, or the new one is still starting after
    the timeout. Raises the error that the new hub reports."""
    process, verdict = _start_and_hear(home, timeout_s) if hasattr(select, "poll") else _start_alone(home, timeout_s)
    if verdict.get("ready") or not (verdict or _has_ended(process)):
        process.returncode = 0  # it keeps running as a daemon, so its exit status is not needed here
        return bool(verdict)
    process.wait()
    error = str(verdict.get("error", ""))
    if error == ALREADY_RUNNING:
        return False
    if not error:
        raise HubUnavailable("the hub ended while it started", f"look into {home.log}")
    kind = ConfigError if verdict.get("exit_code") == ConfigError.exit_code else AtlasBridgeError
    raise kind(error, str(verdict.get("hint", "")))


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def _start_and_hear(home: Home, timeout_s: float) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    reader, writer = os.pipe()
    try:
        process = _spawn(home, writer)
    finally:
        os.close(writer)
    try:
        return process, read_verdict(reader, timeout_s)
    finally:
        os.close(reader)


def _start_alone(home: Home, timeout_s: float) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """For Windows, where a pipe can neither be passed to a child nor polled: the verdict is the first line of
    output."""
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    process = start_alone(own_python("atlasbridge.core.daemon", "--ready-fd", "1"), environ, answer=True)
    line = first_line(process, timeout_s)
    return process, dict(json.loads(line)) if line else {}


def _spawn(home: Home, ready_fd: int) -> subprocess.Popen[bytes]:
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    return subprocess.Popen(
        own_python("atlasbridge.core.daemon", "--ready-fd", str(ready_fd)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env=environ,
        pass_fds=(ready_fd,),
        start_new_session=True,
    )


def read_verdict(fd: int, timeout_s: float) -> dict[str, Any]:
    waiter = select.poll()  # not select(): a caller can have more than 1024 descriptors
    waiter.register(fd, select.POLLIN)
    if not waiter.poll(timeout_s * 1000):
        return {}
    with os.fdopen(os.dup(fd), "rb") as pipe:
        line = pipe.readline()
    return dict(json.loads(line)) if line else {}


def await_session(home: Home, session_id: str, patience_s: float, clock: Clock | None = None) -> bool:
    """Waits until the hub knows this session, even if the hub is still starting. Returns False if it does not in
    time."""
    clock = clock or SystemClock()
    deadline = clock.now() + patience_s
    while (left_s := deadline - clock.now()) > 0:
        try:
            with HubClient(home, timeout_s=left_s + 1.0) as hub:
                return bool(hub.request("session.wait", session_id=session_id, patience_s=left_s).get("known"))
        except HubUnavailable:
            time.sleep(0.02)
    return False


def stop_hub(home: Home, timeout_s: float = 15.0, clock: Clock | None = None) -> bool:
    """Stops the hub and waits until it has ended, even if it is still starting. Returns False if none runs."""
    clock = clock or SystemClock()
    deadline = clock.now() + timeout_s
    while not (pid := lock_holder(home.lock)):
        if not is_starting(home.starting) or clock.now() > deadline:
            return False
        time.sleep(0.02)
    _ask_to_stop(home, pid)
    while lock_holder(home.lock) == pid:
        if clock.now() > deadline:
            raise AtlasBridgeError(f"the hub (process {pid}) does not end", f"end it with: kill -9 {pid}")
        time.sleep(0.02)
    return True


def _ask_to_stop(home: Home, pid: int) -> None:
    """Asks through the socket, where the hub checks the caller. A hub that does not answer, or an older one, gets a
    signal."""
    try:
        with HubClient(home, timeout_s=5.0) as hub:
            answer = hub.request("stop")
    except HubUnavailable:
        answer = {"ok": False, "reason": "unknown_op"}
    if answer.get("ok"):
        return
    if answer.get("reason") != "unknown_op":
        raise AtlasBridgeError(str(answer.get("message", "the hub refused to stop")))
    os.kill(pid, signal.SIGTERM)
