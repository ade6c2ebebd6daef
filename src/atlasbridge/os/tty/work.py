"""Is a Linux program at work elsewhere while it watches its terminal?  Requests without an answer, and children that do
something it waits for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from atlasbridge.os.tty import procfs, sockdiag
from atlasbridge.os.tty.procfs import Process
from atlasbridge.os.tty.waits import NOWHERE, Wait, classify

_SLACK_S = 0.05


def pending_request(processes: Iterable[Process], input_age_s: float | None) -> str:
    """Why one of these waits for an answer from the network, "" when none does."""
    inodes = set[int]()
    for process in processes:
        inodes |= sockdiag.inodes_of(procfs.descriptors(process.pid))
    since_ms = float("inf") if input_age_s is None else (input_age_s + _SLACK_S) * 1000
    return sockdiag.pending(inodes, since_ms)


def is_at_work(child: Process, program: Process, input_age_s: float | None) -> bool:
    """Whether a child does something the program waits for.

    Children older than the last input are helpers that stay; so are those that wait for words of the program, and
    daemons of their own, whatever these do.
    """
    if child.state in "Tt":
        return False
    if child.state in "RD":
        return not _is_daemon(child, program)
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - child.started / os.sysconf("SC_CLK_TCK")
    if input_age_s is not None and age_s > input_age_s + _SLACK_S:
        return False
    try:
        waits = [classify(child, tid, NOWHERE) for tid in procfs.threads(child.pid)]
    except PermissionError:
        return True
    return not (_awaits_words(child, waits) or _awaits_only(program, waits) or _is_daemon(child, program))


def _is_daemon(child: Process, program: Process) -> bool:
    """A server of its own: it has no terminal, shares no stream with the program, and awaits calls."""
    if child.terminal:
        return False
    own, streams = procfs.descriptors(child.pid), set(procfs.descriptors(program.pid).values())
    if any(link.startswith(("pipe:", "/dev/pts/")) for link in streams & set(own.values())):
        return False
    inodes, theirs = sockdiag.inodes_of(own), sockdiag.inodes_of(dict(enumerate(streams)))
    return sockdiag.awaits_calls(inodes) and not any(sockdiag.unix_peer(inode) in theirs for inode in inodes)


def _awaits_words(child: Process, waits: list[Wait]) -> bool:
    """Whether a child waits for its standard input, which is a pipe or socket that its parent writes to."""
    words = procfs.descriptor(child.pid, 0)
    return words.startswith(("pipe:", "socket:")) and any(words in wait.others for wait in waits)


def _awaits_only(program: Process, waits: list[Wait]) -> bool:
    """Whether no thread will move before the program, or a caller, has a word for it: a debugger's target that is
    halted, a language server."""
    others = {other for wait in waits for other in wait.others}
    if not others or not all(wait.idle or (wait.others and not wait.timeout) for wait in waits):
        return False
    own = procfs.descriptors(program.pid)
    rest = others - set(own.values())
    inodes = {sockdiag.socket_inode(other) for other in rest}
    return 0 not in inodes and inodes == sockdiag.answering(inodes, sockdiag.inodes_of(own))
