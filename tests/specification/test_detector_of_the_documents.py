"""`PromptDetector`, with the patterns and confidences of the documents."""

from __future__ import annotations

import pytest

from atlasbridge.adapters.base import Confidence, PromptType, validate_event
from atlasbridge.core.prompt import model
from atlasbridge.specification import PromptDetector

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


DIALOG = (
    "╭─ Bash Tool ─────────────────────────────────────────╮\n"
    "│ rm -rf /tmp/build                                   │\n"
    "╰─────────────────────────────────────────────────────╯\n"
    "Do you want to run this? (y/n) ❯"
)
MENU = "Select an action:\n  1) Apply changes\n  2) View diff\n  3) Skip this file\n  4) Abort\nEnter choice [1-4]:"
WHOLE = [
    *("(y/n)", "[y/N]", "[Y/n]", "(yes/no)", "? [y/n]", "? (y/n)", "Proceed? (y/n)", "Continue? (y/n)"),
    *("Delete it? (y/n)", "Press 'y' to continue", "Enter y or n", "Press Enter to continue", "Press Return to start"),
    *("Hit enter to proceed", "[Press Enter]", "-- More --", "Enter your choice [1-4]:", "Select option (1-3):"),
    *("Which one do you want?", "Pick one [1/2/3]", "Enter your name:", "Password:", "API key:", "Email:"),
    *("Enter commit message:", DIALOG, "Edit /Users/ara/project/src/main.py? (y/n)", "Run bash command? (y/n)", MENU),
    *("Press Enter to continue...", "Do you want to overwrite /src/main.py? (y/n) ", "Confirm? [y/N]"),
    *("> ", "Enter your API key:", "\x1b[1mContinue?\x1b[0m \x1b[32m(y/n)\x1b[0m "),
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_prompt_that_is_split_anywhere_is_one_event_and_never_half_of_it(text: str) -> None:
    data = text.replace("\n", "\r\n").encode()
    found = PromptDetector().feed(b"here is what I would do\r\n" + data)
    assert found is not None, "it is not detected in one piece"
    for place in range(1, len(data)):
        detector = PromptDetector()
        detector.feed(b"here is what I would do\r\n")
        chunks = (data[:place], data[place:])
        events = [event for chunk in chunks if (event := detector.feed(chunk)) is not None]
        assert len(events) == 1, (place, chunks, events)
        assert events[0].prompt_type is found.prompt_type, (chunks, events)
        asks, whole = (event.excerpt.rstrip(" .:❯").splitlines()[-1] for event in (events[0], found))
        assert asks == whole, (chunks, events)


def test_a_bare_list_may_go_on_and_is_left_to_the_silence_however_it_is_split() -> None:
    data = b"here is what I would do\r\n1) Option A\r\n2) Option B\r\n"
    for place in range(1, len(data)):
        detector = PromptDetector()
        assert [detector.feed(data[:place]), detector.feed(data[place:])] == [None, None]
        event = detector.detect_blocking()
        assert event is not None and event.choices == ["Option A", "Option B"], place


def test_the_same_prompt_asked_again_is_another_event() -> None:
    detector = PromptDetector()
    assert detector.feed(b"Continue? (y/n) ") is not None
    assert detector.feed(b"y\r\nContinue? (y/n) ") is not None


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
