"""What a timer may type when nobody answers: what refuses, or Enter where going on is all that is asked.

The detector names a safe default; everybody who is about to type one asks here once more, so that a default which was
stored, sent or configured wrongly agrees to nothing.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Prompt, PromptType

_BARE_ENTER = lazy(
    r"\W*(?:please\s+)?(?:press|hit|strike|push|tap)\s+(?:the\s+)?\W{0,2}"
    r"(?:enter|return|any key|a key|space(?:\s?bar)?)\W{0,2}"
    r"(?:\s+key)?(?:\s+(?:to|and)\s+(?:continue|proceed|go on))?\W*",
    re.IGNORECASE,
)
_ENTER = ("enter", "\r", "\n")


def is_bare_enter(question: str) -> bool:
    """`Press Enter to continue...`, and nothing else at all."""
    return _BARE_ENTER.fullmatch(question.strip()) is not None


def timer_may_say(prompt: Prompt) -> bool:
    """Whether this prompt's safe default may be typed by a timer."""
    said = prompt.safe_default
    if not said or prompt.secret or prompt.idle:
        return False
    if prompt.type is PromptType.TYPE_CONFIRM_ENTER:
        return said in _ENTER and prompt.whole and is_bare_enter(prompt.question or prompt.excerpt)
    if prompt.type not in (PromptType.TYPE_YES_NO, PromptType.TYPE_MULTIPLE_CHOICE):
        return False
    if not prompt.choices:
        return prompt.type is PromptType.TYPE_YES_NO and said == "n"
    return any(choice.value == said and choice.refuses and not choice.always for choice in prompt.choices)
