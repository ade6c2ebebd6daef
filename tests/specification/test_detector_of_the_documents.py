"""`PromptDetector`, with the patterns and confidences of the documents."""

from __future__ import annotations

import pytest

from atlasbridge.adapters.base import Confidence, PromptType, validate_event
from atlasbridge.core.prompt import model
from atlasbridge.specification.adapter_interface import PromptDetector

TABLE = [
    ("Continue? (y/n) ", "yes_no"),
    ("Continue? [y/N] ", "yes_no"),
    ("Continue? [Y/n]", "yes_no"),
    ("Continue? (yes/no) ", "yes_no"),
    ("Delete everything ? (y/n)", "yes_no"),
    ("Press 'y' to continue", "yes_no"),
    ("Enter y or n: ", "yes_no"),
    ("Do you want to run this? (y/n) ❯", "yes_no"),
    ("Do you want to run this? (y/n) › ", "yes_no"),
    ("Press Enter to continue", "confirm_enter"),
    ("Press Return to start", "confirm_enter"),
    ("Hit enter to proceed", "confirm_enter"),
    ("[Press Enter]", "confirm_enter"),
    ("-- More --", "confirm_enter"),
    ("1) Option A\n2) Option B\nEnter your choice [1-2]: ", "multiple_choice"),
    ("1) Option A\n2) Option B\n", "multiple_choice"),
    ("1. Option A\n2. Option B\nSelect option (1-2): ", "multiple_choice"),
    ("Pick one [1/2/3] ", "multiple_choice"),
    ("Proceed? yes or no ", "yes_no"),
    ("Edit src/main.py? (y/n) ", "yes_no"),
    ("Do you want to overwrite src/main.py? (y/n) ", "yes_no"),
    ("Hit ENTER", "confirm_enter"),
    ("Press Enter to continue...", "confirm_enter"),
    ("Email: ", "free_text"),
    ("Username: ", "free_text"),
    ("Which model do you want? ", "free_text"),
    ("Enter your name: ", "free_text"),
    ("Password: ", "free_text"),
    ("API key: ", "free_text"),
    ("Enter commit message: ", "free_text"),
    ("> ", "free_text"),
]


@pytest.mark.parametrize(("text", "kind"), TABLE)
def test_a_pattern_of_the_documents_is_detected(text: str, kind: str) -> None:
    event = PromptDetector().detect(text)
    assert event is not None
    assert event.prompt_type.value == kind
    assert validate_event(event) == []


@pytest.mark.parametrize("text", ["Compiling…\n", "done.\n", "It said (y/n) once\nand went on\n"])
def test_other_output_is_none(text: str) -> None:
    assert PromptDetector().detect(text) is None


def test_a_prompt_in_two_chunks_is_detected_whole() -> None:
    detector = PromptDetector()
    assert detector.feed(b"Do you want to con") is None
    event = detector.feed(b"tinue? (y/n) ")
    assert event is not None
    assert event.excerpt == "Do you want to continue? (y/n)"


def test_silence_behind_what_no_pattern_knows_is_an_unknown_prompt_of_low_confidence() -> None:
    detector = PromptDetector()
    assert detector.feed(b"speak, friend") is None
    event = detector.detect_blocking()
    assert event is not None
    assert (event.prompt_type, event.confidence) == (PromptType.TYPE_UNKNOWN, Confidence.LOW)


def test_what_the_tool_says_itself_is_certain() -> None:
    event = PromptDetector().detect_structured(PromptType.TYPE_MULTIPLE_CHOICE, "Deploy where?", ("eu", "us"))
    assert (event.confidence, event.choices) == (Confidence.HIGH, ["eu", "us"])
    assert event.constraints["max_choice"] == 2


def test_the_threshold_is_the_least_confidence_of_a_pattern() -> None:
    assert PromptDetector(threshold=0.65).detect("The word of the day: ") is not None
    assert PromptDetector(threshold=0.9).detect("The word of the day: ") is None


def test_the_middle_confidence_is_medium_in_the_frozen_interface_and_med_in_events() -> None:
    assert [item.value for item in Confidence] == ["high", "medium", "low"]
    assert [item.value for item in model.Confidence] == ["high", "med", "low"]
    assert Confidence("med") is Confidence.MED
    event = PromptDetector().detect("Enter your name: ")
    assert event is not None
    assert event.confidence is Confidence.MED
    assert str(event.confidence) == "medium"
