"""The prompt that stands open, as it was when it was raised, and whether what is seen now is the same.

A value: it is compared, never changed.  What follows from the comparison is decided in `detector`.
"""

from __future__ import annotations

from atlasbridge.core.detection.picture import digest_of, rewrapped
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

LEAST_LEFT = 40  # characters by which a question is still known when its first rows are gone


@frozen
class JustAnswered:
    """The prompt that was just answered: only this one is not raised again, and only until something moved."""

    at: float
    key: str  # the picture it was answered on
    left: bool = False  # it was seen to be gone, be it for a moment


@frozen
class OpenPrompt:
    prompt: Prompt
    found: Finding
    place: int  # the line it stands in, counted from the first that was ever on the screen
    facts: Facts  # about the terminal, when it was raised
    wrap: str  # its digest, however a window wraps it
    behind: str  # what stands right behind the cursor

    @staticmethod
    def of(prompt: Prompt, found: Finding, place: int, facts: Facts, view: View) -> OpenPrompt:
        return OpenPrompt(prompt, found, place, facts, rewrapped(found), view.behind_cursor())

    def has_digest(self, found: Finding, resized: bool) -> bool:
        """The same to the last blank; after the window was resized, also wrapped in another way."""
        return digest_of(found) == self.prompt.digest or (resized and rewrapped(found) == self.wrap)

    def same_words_above(self, found: Finding, resized: bool) -> bool:
        return found.question == self.found.question or (resized and rewrapped(found) == self.wrap)

    def is_its_line(self, found: Finding, view: View) -> bool:
        """Nothing stands in its line that did not stand there when it was raised."""
        return found.core == self.found.core and self.is_untouched(found, view)

    def is_untouched(self, found: Finding, view: View) -> bool:
        """Nobody has written anything, before the cursor or, gone back in it, behind it.  Hints of a box change."""
        drawn = found.structural or found.constraints.get("idle")
        return found.filled == self.found.filled and bool(drawn or view.behind_cursor() == self.behind)

    def is_answered_in(self, found: Finding) -> bool:
        """The tool's own dialog with our words in one of its choices, until the tool takes them."""
        now, then = _question(found.core), _question(self.found.core)
        shorter, longer = sorted((now, then), key=len)  # a dialog that grows pushes its first rows off the screen
        return found.own and (now == then or (len(shorter) >= LEAST_LEFT and longer.endswith(shorter)))

    def with_keys(self, found: Finding) -> Prompt:
        """The prompt with the keys that take its choices from where the highlight is in `found`."""
        if not found.choices and not found.fields:
            return self.prompt
        return replace(self.prompt, choices=found.choices, text_steps=found.text_steps, fields=found.fields)

    @property
    def last_line(self) -> str:
        return self.found.excerpt.rpartition("\n")[2]


def _question(core: str) -> str:
    """Its words; how many empty rows stand between them changes with the room that an answer takes."""
    return " ".join(core.partition("\0")[0].split())
