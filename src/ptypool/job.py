"""Lets a program that leads its session be stopped by job control (Ctrl-Z), as a shell's job can be.

The kernel stops no process group in which nobody has a parent of the same session and another group: nobody could
continue it.  Two tiny processes change that: one in a group of its own, and its child in the program's group.
"""

from __future__ import annotations

import os
import signal
from typing import NoReturn

_SHELL = "/bin/sh"
_WORDS = ("sh", "-c", "read -r word # holds a terminal's job")
_HIGHEST_FD = 1 << 20
_HEEDED = (
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGTSTP,
    signal.SIGCHLD,
    signal.SIGCONT,
    signal.SIGKILL,
    signal.SIGSTOP,
)
_IGNORED = tuple(set(signal.valid_signals()) - set(_HEEDED))


def hold_job(lifeline: int) -> int:
    """In the new session's leader, before it executes its program.  The two live until `lifeline`, the reading end of
    a pipe, comes to its end; they keep no other file open.  Returns a process that is to be waited for before that:
    then neither is a child that the program could see.
    """
    leader = os.getpid()
    between = os.fork()
    if between:
        return between
    try:
        if os.fork() == 0:
            os.setpgid(0, 0)
            if os.fork() == 0:
                os.setpgid(0, leader)
            _stay(lifeline)
    finally:
        os._exit(0)


def _stay(lifeline: int) -> NoReturn:
    for number in _HEEDED[:-2]:
        signal.signal(number, signal.SIG_DFL)
    for number in _IGNORED:  # what reaches the program's group is not meant for this process
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.dup2(lifeline, 0)
    os.closerange(1, _HIGHEST_FD)
    for _ in (1, 2):
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    os.execve(_SHELL, _WORDS, {})
