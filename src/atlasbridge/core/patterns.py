"""Regular expressions that are compiled later: when they are first used, or when there is nothing else to do.

A session has a hundred of them.  Compiling them all takes half of the time in which its judge is made, just when the
tool starts and may have much to say.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, AnyStr

_METHODS = ("match", "search", "fullmatch", "finditer", "findall", "split", "sub")
_waiting: deque[Lazy] = deque()


class Lazy:
    """Stands for a `re.Pattern` until it is used; then it has the pattern's own methods."""

    __slots__ = ("_flags", "source", *_METHODS)

    def __init__(self, source: str | bytes, flags: int) -> None:
        self.source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Asked only for what is not there yet."""
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        compiled = re.compile(self.source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return compiled


def lazy(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but later: a mistake in it shows at its first use."""
    made: Any = Lazy(source, flags)
    _waiting.append(made)
    return made  # type: ignore[no-any-return]


def compile_next() -> bool:
    """Compile one that waits; False: none does."""
    if not _waiting:
        return False
    _waiting.popleft().compile()
    return True
