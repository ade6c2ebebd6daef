"""Finds the ancestors of a process from the kernel, and whether a session's tool is among them.

Reading is separate from deciding: `decide_inside_session` is pure. The hub and the integrations decide about the
consequences.
"""

from __future__ import annotations

import os
import sys

from atlasbridge.core.values import frozen, replace

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


MARK = "ATLASBRIDGE_SESSION"  # set in the environment of a session's tool, and inherited by everything it starts
HOST_NAME = "atlas-session"  # a session host's name in the kernel's process list; only the process itself can change it
ELSEWHERE = "unknown"  # used instead of an id for a session that this hub does not know
_LONGEST_LINE = 512
_TRIES = 4
_PROC = "/proc"
_LIMIT = 10  # RLIMIT_LOCKS
_HIGHEST_LIMIT = 1 << 62


@frozen
class Process:
    pid: int
    parent: int  # 0: none that is visible to us
    started: int = 0  # in ticks since the machine started; 0: unknown
    tty: str = ""  # its controlling terminal as the system names it; "": none
    mark: str = ""  # the session id in its environment, if that is readable; `ELSEWHERE` by its limit alone
    name: str = ""  # the name that the process has set


@frozen
class SessionProcesses:
    """The processes of a session. Everything below its host belongs to its tool."""

    session_id: str
    host_pid: int
    tool_pid: int
    host_started: int = 0  # distinguishes them from later processes with the same pids; 0: unknown
    tool_started: int = 0
    tty: str = ""


if TYPE_CHECKING:
    Look = Callable[[int], Process | None]
else:
    Look = object


def trace_ancestry(pid: int, look: Look) -> tuple[Process, ...]:
    """Returns the process and its ancestors, nearest first. Empty if it has ended or its ancestry could not be
    followed.

    A parent can end during the walk, and its pid can be reused. So every process is read twice: if its parent is the
    same before and after the parent was read, it was that parent's child the whole time.
    """
    for _ in range(_TRIES):
        line = _walk(pid, look)
        if line and not line[0].mark and has_lowered_limit(pid):
            line = (replace(line[0], mark=ELSEWHERE), *line[1:])
        if line and all(_stands(process, look) for process in line):
            return line
    return ()


def _walk(pid: int, look: Look) -> tuple[Process, ...]:
    line: list[Process] = []
    while pid > 0 and len(line) < _LONGEST_LINE:
        process = look(pid)
        if process is None or (line and process.started > line[-1].started):
            return ()
        line.append(process)
        pid = process.parent
    return tuple(line)


def _stands(process: Process, look: Look) -> bool:
    again = look(process.pid)
    return again is not None and (again.parent, again.started) == (process.parent, process.started)


def decide_inside_session(line: Iterable[Process], households: Iterable[SessionProcesses]) -> str:
    """Returns the session to which one of these processes belongs by its ancestry, terminal or environment; "" if
    none."""
    line = tuple(line)
    pids, terminals = {process.pid for process in line}, {process.tty for process in line if process.tty}
    near = [home for home in households if home.host_pid in pids or home.tool_pid in pids or home.tty in terminals]
    for process in line:
        for home in near:
            if _belongs(process, home):
                return home.session_id
    marks = [process.mark for process in line if process.mark]
    if marks:
        return next((mark for mark in marks if mark != ELSEWHERE), ELSEWHERE)
    return ELSEWHERE if any(process.name == HOST_NAME for process in line) else ""


def _belongs(process: Process, home: SessionProcesses) -> bool:
    if home.tty and process.tty == home.tty:
        return True
    if process.pid == home.host_pid:
        return _is_same(process, home.host_started, process.name in (HOST_NAME, ""))
    return process.pid == home.tool_pid and _is_same(process, home.tool_started, not process.name)


def _is_same(process: Process, started: int, otherwise: bool) -> bool:
    """A pid alone proves nothing after its process has ended: on a busy machine, a person's command can get it next."""
    return process.started == started if started and process.started else otherwise


def is_inside(line: Iterable[Process]) -> bool:
    """Whether an ancestry leads into any session of any home and hub, by an environment mark or by a host above it.

    For callers without a list of sessions. A host is not inside its own session, but everything it started is.
    """
    return any(process.mark or process.name == HOST_NAME for process in line)


# A tool can empty its environment and kill its host. It cannot get rid of a hard resource limit: every process that it
# starts inherits the limit, and only root can raise it. Linux has not enforced the limit on file locks since 2.4.


def session_limits() -> tuple[tuple[int, int], ...]:
    """The resource limits of a session's tool, as (number, value). They are lower than our own."""
    if sys.platform != "linux":
        return ()
    import resource

    hard = resource.getrlimit(_LIMIT)[1]
    return ((_LIMIT, max(0, (_HIGHEST_LIMIT if hard < 0 else hard) - 1)),)


def has_lowered_limit(pid: int) -> bool:
    """Whether the limit of a process shows that it was started inside a session.

    We compare it with our own limit, which an administrator can have set. If we are inside a session, any limit counts.
    """
    if sys.platform != "linux":
        return False
    try:
        after = _read(f"{_PROC}/{pid}/limits").partition(b"Max file locks")[2].split(None, 2)
        limit = int(after[1])
    except (OSError, ValueError, IndexError):
        return False  # it is gone, hidden, or unlimited
    import resource

    own = resource.getrlimit(_LIMIT)[1]
    return own < 0 or own > _HIGHEST_LIMIT // 2 or limit < own


def own_tool(pid: int, host_pid: int, open_question: object = None, look: Look | None = None) -> int:
    """Returns the process that a host names as its tool, if it is a descendant of the host; otherwise the host itself.

    Without this check a caller could name any process as a tool, such as a person's shell, and then all commands of
    that shell would count as the tool's. For an MCP server, the process that started it is accepted.
    """
    line = trace_ancestry(pid, look or look_at)
    if not line or any(process.pid == host_pid for process in line):
        return pid  # it has ended, or is a descendant of its host
    host = (look or look_at)(host_pid) if open_question == "mcp" else None
    return pid if host is not None and host.parent == pid > 1 else host_pid


def look_at(pid: int) -> Process | None:
    """Returns one process as the system describes it; None if it has ended."""
    if sys.platform == "win32":
        from atlasbridge.core.process_table import look_on_windows

        told = look_on_windows(pid)
        return None if told is None else Process(pid, told[0], told[1], name=told[2])
    if sys.platform == "darwin":
        from atlasbridge.core.process_table import look_on_macos

        shown = look_on_macos(pid)
        return None if shown is None else Process(pid, *shown)
    return _look_in_proc(pid) if sys.platform == "linux" else _look_with_ps(pid)


def _look_in_proc(pid: int) -> Process | None:
    try:
        text = _read(f"{_PROC}/{pid}/stat").decode("utf-8", "replace")
    except FileNotFoundError:
        return Process(pid, 0) if _hidden(pid) else None
    except OSError:
        return None
    return parse_stat(pid, text, _mark_of(pid))


def _hidden(pid: int) -> bool:
    """Whether the process exists but is hidden from us (`hidepid`): it belongs to another user, so our ancestry ends
    here."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def parse_stat(pid: int, text: str, mark: str = "") -> Process | None:
    """Parses /proc/PID/stat. The name in parentheses can contain anything, so the fields are read after the last
    one."""
    before, _, after = text.rpartition(")")
    words = after.split()
    if len(words) < 20:
        return None
    name = before.partition("(")[2]
    return Process(pid, int(words[1]), int(words[19]), words[4] if words[4] != "0" else "", mark, name)


def _mark_of(pid: int) -> str:
    try:
        data = _read(f"{_PROC}/{pid}/environ")
    except OSError:
        return ""  # it belongs to another user, or is one of ours that hides its memory
    begin = f"\0{MARK}=".encode()
    at = (b"\0" + data).find(begin)
    if at < 0:
        return ""
    value = data[at + len(begin) - 1 :].partition(b"\0")[0]
    return value.decode("ascii", "replace")[:64] or "unknown"


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def started_at(pid: int) -> int:
    """The start time, which distinguishes a process from a later one with the same pid; 0 if the system does not report
    it."""
    found = look_at(pid) if pid > 0 else None
    return found.started if found else 0


def version_of(pid: int) -> int:
    """The version of the pid, where the system counts how often it was reused (macOS); otherwise 0."""
    if sys.platform != "darwin":
        return 0
    from atlasbridge.core.process_table import number_version

    return number_version(pid)


def _look_with_ps(pid: int) -> Process | None:
    import subprocess  # used only without /proc, and too slow to import at the start of a session

    command = ["ps", "-o", "ppid=,tty=", "-p", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return parse_ps(pid, done.stdout)


def parse_ps(pid: int, text: str) -> Process | None:
    words = text.split()
    if len(words) < 2 or not words[0].isdigit():
        return None
    return Process(pid, int(words[0]), tty="" if words[1].strip("?-") == "" else words[1])
