"""The line of something that takes commands: what is typed there is run.  Sees its mark; asks for nothing."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition import numbers

_BARE = lazy(r"^\W*$")
_REPL = lazy(
    r"(?:irb|pry|iex|ghci|node|sqlite|mysql|psql|gdb|lldb|i?pdb)\b\S{0,40}>$|\((?:gdb|lldb|i?pdb)\)$|In \[\d{1,6}\]:$"
    r"|irb\(\S{1,40}>$|\w{1,40}[=-][>#]$",
    re.IGNORECASE,
)
_SHELL_MARKS = ("$", "%", "#", "❯", "➜", "λ", ">>>", "...", "=>")


def is_bare(question: str) -> bool:
    """A mark and nothing else: a shell, a calculator or a program that takes anything."""
    return _BARE.match(question) is not None or is_shell(question)


def is_shell(question: str) -> bool:
    """The line of something that takes commands: what is typed there is run."""
    short = len(question) <= numbers.LONGEST_SHELL and len(question.split()) <= 3
    return short and (question.endswith(_SHELL_MARKS) or _REPL.match(question) is not None)
