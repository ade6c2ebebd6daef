"""A line whose answer must not be seen: the terminal hides what is typed, or its words ask for a secret."""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition.asking_line import Line
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.widgets.line_finding import line_finding
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def secret_finding(view: View, line: Line, score: float, rule: str) -> Finding:
    found = line_finding(view, line, Facts(), rule, PromptType.TYPE_FREE_TEXT, score)
    return replace(found, constraints={**found.constraints, "secret": True})
