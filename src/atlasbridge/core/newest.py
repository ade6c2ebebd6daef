"""A dictionary that keeps only the entries that were set last."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(dict[K, V]):
    """At most `most` entries, in the order in which they were set. Setting a key again makes it the newest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        self.pop(key, None)
        super().__setitem__(key, value)
        while len(self) > self._most:
            del self[next(iter(self))]
