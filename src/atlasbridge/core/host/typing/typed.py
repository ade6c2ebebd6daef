"""What was typed in answer to which prompt: the memory that makes an answer happen exactly once.

Also follows the last answer until its effect is known: the prompt left the screen, or it is still there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atlasbridge.core.values import frozen

_KEEP = 512  # far more prompts than a hub can still ask about


@frozen
class Outcome:
    outcome: str  # "typed", "stale" or "failed"; later "taken" or "still_there"
    detail: str = ""


@frozen
class _Watched:
    prompt_id: str
    digest: str
    until: float


class TypedBook:
    """Used under the watchdog's lock."""

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
        """The last key is typed only now: give it its whole time."""
        if self._watched is not None and self._watched.prompt_id == prompt_id:
            self._watched = _Watched(prompt_id, self._watched.digest, until)

    def left_the_screen(self, prompt_id: str) -> bool:
        """The detector no longer sees the prompt.  False: it was not one that was answered here."""
        if self._watched is None or self._watched.prompt_id != prompt_id:
            known = self._outcomes.get(prompt_id)
            return known is not None and known.outcome in ("typed", "taken", "still_there")
        self._settle("taken")
        return True

    def superseded(self, digest: str) -> None:
        """A prompt is raised: another one, or the answered one once more because nothing came of the answer."""
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
