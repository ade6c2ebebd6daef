"""Free text answers: which prompts accept them, which choices ask for them, and when a message is one. Pure."""

from __future__ import annotations

from atlasbridge.core.prompt.answer import decide_answer, named_key
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType, Reject

SHORTEST = 2  # a single letter or a number is a choice or meaningless


def takes_words(prompt: Prompt) -> bool:
    if prompt.secret:
        return False
    other = prompt.constraints.get("allows_other") or prompt.text_steps
    line = prompt.type is PromptType.TYPE_UNKNOWN and bool(
        prompt.end_steps
    )  # the tool reads a line, but the reason is unknown
    return prompt.type is PromptType.TYPE_FREE_TEXT or line or bool(other and prompt.choices)


def takes_keys(prompt: Prompt) -> bool:
    """Whether a key can be pressed by its name. This is impossible for a secret and without a terminal."""
    return named_key(prompt, "enter") != ""


def needs_words(prompt: Prompt, value: str) -> bool:
    """Whether this choice needs a text: it opens a field for the person's own words."""
    found = [choice for choice in prompt.choices if choice.value == value]
    return bool(found) and takes_words(prompt) and _opens_field(prompt, found[0])


def reads_as_words(prompt: Prompt, text: str) -> bool:
    """Whether to type `text` as it is. A text that names a choice, or looks like one, is never typed."""
    if named_key(prompt, text):
        return False  # the person means the key
    if prompt.type is PromptType.TYPE_FREE_TEXT:
        return True
    if prompt.type is PromptType.TYPE_UNKNOWN and takes_words(prompt):
        return text.strip().lower() not in ("cancel", "default")
    if not takes_words(prompt):
        return False
    word = text.strip()
    if len(word) < SHORTEST or word.replace(",", "").replace(" ", "").isdigit():
        return False
    if word.lower() in ("cancel", "leave", "default"):
        return False
    return isinstance(decide_answer(prompt, text), Reject)


def _opens_field(prompt: Prompt, choice: Choice) -> bool:
    return not choice.steps and not choice.refuses and any(other.steps for other in prompt.choices)
