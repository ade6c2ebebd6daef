"""How fast a channel may speak: token bucket and backoff.  Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class TokenBucket:
    """`rate` messages a second on average, at most `burst` at once."""

    rate: float
    burst: float
    tokens: float = field(default=-1.0)
    updated_at: float = 0.0

    def reserve(self, now: float) -> float:
        """Take one token and return how many seconds to wait before using it."""
        if self.tokens < -0.5 and self.updated_at == 0.0:
            self.tokens, self.updated_at = self.burst, now
        self.tokens = min(self.burst, self.tokens + (now - self.updated_at) * self.rate)
        self.updated_at = now
        self.tokens -= 1.0
        return max(0.0, -self.tokens / self.rate)


@dataclass(slots=True)
class Backoff:
    """1 s, doubling, at most 60 s; a success starts it anew."""

    first_s: float = 1.0
    cap_s: float = 60.0
    failures: int = 0

    def next_wait(self) -> float:
        wait_s: float = min(self.cap_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return wait_s

    def reset(self) -> None:
        self.failures = 0
