"""Regular expressions that are compiled at their first use, or earlier when the process is idle.

A session has about a hundred of them. Compiling them all would take half of the detector's startup time, just when the
tool starts and can print a lot of output.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, AnyStr

_METHODS = ("match", "search", "fullmatch", "finditer", "findall", "split", "sub")
_waiting: deque[Lazy] = deque()


class Lazy:
    """A placeholder for a `re.Pattern`. After its first use it has the pattern's own methods."""

    __slots__ = ("_flags", "source", *_METHODS)

    def __init__(self, source: str | bytes, flags: int) -> None:
        self.source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Called only for attributes that are not set yet, that is, before the pattern is compiled."""
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        compiled = re.compile(self.source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return compiled


def lazy(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but deferred: a syntax error is raised at the first use."""
    made: Any = Lazy(source, flags)
    _waiting.append(made)
    return made  # type: ignore[no-any-return]


def compile_next() -> bool:
    """Compiles one pending pattern. Returns False if none is pending."""
    if not _waiting:
        return False
    _waiting.popleft().compile()
    return True
