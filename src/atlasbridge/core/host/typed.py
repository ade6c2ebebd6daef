"""Records what was typed for which prompt, so that an answer is typed exactly once.

It also follows the last answer until its effect is known: the prompt left the screen, or it is still there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from atlasbridge.core.values import frozen

_KEEP = 512  # far more prompts than a hub can still ask about


@frozen
class Outcome:
    outcome: str  # "typed", "stale" or "failed"; later "taken" or "still_there"
    detail: str = ""


class AdapterPeer(Protocol):
    def tell(self, message: dict[str, Any]) -> bool: ...


class AdapterConnection:
    """The connection to an adapter in its own process, which types the answers to the prompts that it has reported.

    Used by the host's main thread, which receives messages, and by the typist's thread, which waits for the result.
    The adapter's reports wait while a reply is being typed: it can report the next prompt before the result.
    """

    def __init__(self) -> None:
        self._peer: AdapterPeer | None = None
        self.last_report = ""  # its open prompt, as it was reported
        self._result: Outcome | None = None
        self._result_arrived = threading.Event()
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, str]] | None = None  # kind and text of the reports that wait

    def take_result(self, message: dict[str, Any]) -> None:
        failed = str(message.get("error") or "")
        self._result = Outcome("failed", failed) if failed else Outcome("typed")
        self._result_arrived.set()

    def report(self, peer: AdapterPeer, message: dict[str, Any]) -> bool:
        """Returns whether this report is to be handled now; otherwise `release` returns it."""
        kind, text = str(message.get("kind", "")), str(message.get("text", ""))
        with self._lock:
            prompt = kind == "prompt" and message.get("injects") is True
            if self._waiting is not None and (prompt or peer is self._peer):
                self._waiting.append((kind, text))
                return False
            if prompt:
                self._peer, self.last_report = peer, text
            return True

    def release(self) -> list[tuple[str, str]]:
        """The result is recorded: returns the reports that came in the meantime."""
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            self.last_report = next((text for kind, text in reversed(waiting) if kind == "prompt"), self.last_report)
        return waiting

    def leave(self, peer: object) -> None:
        if self._peer is peer:
            self._peer, self._result = None, Outcome("failed", "its adapter has ended")
            self._result_arrived.set()

    @property
    def injects(self) -> bool:
        return self._peer is not None

    def inject(self, keys: bytes, by: str, nonce: str, timeout_s: float) -> Outcome:
        """Has the adapter type the reply, and waits for the result: only then does it count as typed."""
        self._result_arrived.clear()
        with self._lock:
            self._waiting = []
        peer, said = self._peer, {"m": "inject", "keys": keys.decode("latin-1"), "by": by, "nonce": nonce}
        if peer is None or not peer.tell(said):
            return Outcome("failed", "its adapter has ended")
        if not self._result_arrived.wait(timeout_s) or self._result is None:
            return Outcome("failed", f"its adapter did not take the reply within {timeout_s:.0f} seconds")
        return self._result


@frozen
class _Watched:
    prompt_id: str
    digest: str
    until: float


class TypedBook:
    """All methods are called with the watchdog's lock held."""

    def __init__(self, post: Callable[[dict[str, Any]], None]) -> None:
        self._post = post
        self._outcomes: dict[str, Outcome] = {}
        self._watched: _Watched | None = None

    @property
    def due_at(self) -> float | None:
        return None if self._watched is None else self._watched.until

    def get(self, prompt_id: str) -> Outcome | None:
        return self._outcomes.get(prompt_id)

    def record(self, prompt_id: str, outcome: Outcome) -> None:
        self._outcomes[prompt_id] = outcome
        while len(self._outcomes) > _KEEP:
            del self._outcomes[next(iter(self._outcomes))]

    def all(self) -> list[list[str]]:
        return [[prompt_id, known.outcome] for prompt_id, known in self._outcomes.items()]

    def watch_effect(self, prompt_id: str, digest: str, until: float) -> None:
        self._watched = _Watched(prompt_id, digest, until)

    def watch_until(self, prompt_id: str, until: float) -> None:
        """The last key was typed only now, so the timeout for its effect starts again."""
        if self._watched is not None and self._watched.prompt_id == prompt_id:
            self._watched = _Watched(prompt_id, self._watched.digest, until)

    def left_the_screen(self, prompt_id: str) -> bool:
        """The detector no longer sees the prompt. Returns False if it was not answered here."""
        if self._watched is None or self._watched.prompt_id != prompt_id:
            known = self._outcomes.get(prompt_id)
            return known is not None and known.outcome in ("typed", "taken", "still_there")
        self._settle("taken")
        return True

    def superseded(self, digest: str) -> None:
        """A prompt is raised: another one, or the answered one again because the answer had no effect."""
        if self._watched is not None:
            self._settle("still_there" if self._watched.digest == digest else "taken")

    def check(self, now: float, still_shows: Callable[[str], bool]) -> None:
        watched = self._watched
        if watched is not None and now >= watched.until:
            self._settle("still_there" if still_shows(watched.digest) else "taken")

    def _settle(self, outcome: str) -> None:
        if self._watched is not None:
            prompt_id = self._watched.prompt_id
            self._watched = None
            known = self.get(prompt_id)
            detail = known.detail if known is not None else ""
            self.record(prompt_id, Outcome(outcome, detail))
            told = {"detail": detail} if detail else {}
            self._post({"m": "effect", "prompt_id": prompt_id, "outcome": outcome, **told})
