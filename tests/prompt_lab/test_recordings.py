"""The corpus: recordings of real tools, each with what must be raised in it, and what must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.prompt.commands import RaisePrompt, WithdrawPrompt
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.lab.replay import Recording, read_recording, replay

CORPUS = Path(__file__).parents[1] / "corpus"
CASES = sorted(path.parent for path in CORPUS.glob("*/*/*/expected.json"))
GRACE_S = 2.3


def spans(recording: Recording, tool: str) -> list[tuple[float, float, Prompt]]:
    """Every prompt with the seconds from which and to which it was open."""
    out: list[tuple[float, float, Prompt]] = []
    for at, command in replay(recording, load_dialect(tool)):
        if isinstance(command, RaisePrompt):
            out.append((at, float("inf"), command.prompt))
        elif isinstance(command, WithdrawPrompt):
            start, _, prompt = out[-1]
            out[-1] = (start, at, prompt)
    return out


def load(case: Path) -> tuple[Recording, dict[str, Any]]:
    return read_recording(case / "session.cast"), json.loads((case / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parts[-3]}-{case.parts[-1]}")
def test_recording(case: Path) -> None:
    recording, expected = load(case)
    opened = spans(recording, expected["tool"])
    for moment in expected["moments"]:
        start, end = moment["from_s"], moment["to_s"]
        standing = [prompt for since, until, prompt in opened if since <= min(start + GRACE_S, end) and until >= end]
        if moment["type"] == "none":
            during = [prompt.excerpt for since, until, prompt in opened if since < end and until > start + GRACE_S]
            assert not during, f"a false alarm at {start} s: {during}"
            continue
        assert standing, f"missed at {start} s: {[(round(a, 2), round(b, 2), p.excerpt) for a, b, p in opened]}"
        _check(standing[-1], moment)


def _check(prompt: Prompt, moment: dict[str, Any]) -> None:
    kind = "idle" if prompt.idle else prompt.type.value
    assert kind == moment["type"]
    labels = [choice.label for choice in prompt.choices]
    for wanted in moment["choices"]:
        assert any(wanted in label for label in labels), f"{wanted!r} is not among {labels}"
    if labels:
        assert prompt.safe_default in ("", *(choice.value for choice in prompt.choices if choice.refuses))


def test_the_corpus_has_every_tool_and_silence_too() -> None:
    assert {case.parts[-3] for case in CASES} >= {"aider", "claude", "codex", "gemini", "opencode"}
    kinds = {moment["type"] for case in CASES for moment in load(case)[1]["moments"]}
    assert kinds >= {"none", "idle", "multiple_choice", "yes_no", "free_text"}
