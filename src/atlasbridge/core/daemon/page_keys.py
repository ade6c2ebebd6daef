"""Keys for commands that speak to the page's API: made on request, kept in memory only, worthless after a minute.

Who may have one is decided before: the hub's socket asks the kernel where a command comes from.
"""

from __future__ import annotations

from hmac import compare_digest

from atlasbridge.core.ids import new_nonce

LIFE_S = 60.0
MOST = 64


class PageKeys:
    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def make(self, now: float) -> str:
        self._forget(now)
        key = new_nonce() + new_nonce()
        self._until[key] = now + LIFE_S
        return key

    def takes(self, key: str, now: float) -> bool:
        """Compared with every key that lives, without telling by the time taken how much was right."""
        self._forget(now)
        given = key.encode("utf-8", "surrogatepass")
        return sum(compare_digest(known.encode(), given) for known in self._until) > 0

    def _forget(self, now: float) -> None:
        living = [(key, until) for key, until in self._until.items() if until > now]
        self._until = dict(living[-MOST + 1 :])
