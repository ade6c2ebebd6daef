"""Line-oriented programs: what is asked, when it is raised, and when it must not be."""

from __future__ import annotations

import pytest
from tests.support.playbook import (
    BLIND,
    BUSY,
    HIDDEN,
    ONE_KEY,
    POLLING,
    RAW,
    READING,
    Keys,
    Nothing,
    Playbook,
    Raised,
    Withdrawn,
)

from atlasbridge.core.detection.events import (
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    RaisePrompt,
    RequestWakeup,
)
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.keys import Stands
from atlasbridge.core.prompt.model import Answer, AnswerKind
from atlasbridge.core.prompt.timer import asks_permission

YES_NO = [
    "rm: remove regular file 'a.txt'? ",
    "extract ‘a.txt’?",
    "mv: overwrite 'b'? ",
    "rm: remove write-protected regular empty file 'd/f'? ",
    "< rm ... ./one.log > ? ",
    "Continue with the upgrade (yes/no)? ",
    "do you wish to overwrite (y or n)? ",
    "Reversed (or previously applied) patch detected!  Assume -R? [n] ",
    "Do you want to remove the signature? [Y]es/[N]o: ",
    "Yes/No? ",
    "Are you sure? (Type 'yes' in capital letters): ",
    "Overwrite (y/n)? ",
    "Are you sure you want to continue connecting (yes/no/[fingerprint])? ",
    "Are you sure you would like to delete mail? [y/N] ",
    "Proceed (Y/n)? ",
    "Would you like to go on interactively? (yes/no) [yes] ",
    "Do you really want to exit ([y]/n)? ",
    "Ok to proceed? (y) ",
    "Enable the foo driver (FOO) [N/y] ",
    "Create new file? (Y)es/(N)o [Yes]: ",
    "Press y to continue, or n to stop: ",
    "zsh: sure you want to delete all 3 files in /x [yn]? ",
]


@pytest.mark.parametrize("question", YES_NO)
def test_a_question_of_yes_or_no_is_one(question: str) -> None:
    play = Playbook()
    play >> question >> 0.2 << Raised("yes_no", question.strip()[-12:])
    assert play.prompt.safe_default == ("n" if asks_permission(question) else "")


CONFIRM = [
    "Press any key to continue...",
    "Press Enter to continue",
    "[Press Enter]",
    "Hit ENTER to proceed",
]
CONFIRM_SOMETHING = [
    "Hit return to start merge resolution tool (mytool):",
    "--More--(12%)",
    "Press RETURN to continue or q to quit",
]


@pytest.mark.parametrize("question", CONFIRM)
def test_a_line_that_wants_enter_and_nothing_else_is_a_confirmation_that_a_timer_may_give(question: str) -> None:
    play = Playbook()
    play >> question >> 0.2 << Raised("confirm_enter", question[:8])
    assert play.prompt.safe_default == "enter"


@pytest.mark.parametrize("question", CONFIRM_SOMETHING)
def test_a_line_that_says_what_enter_does_is_a_confirmation_for_a_person(question: str) -> None:
    play = Playbook()
    play >> question >> 0.2 << Raised("confirm_enter", question[:8])
    assert play.prompt.safe_default == ""


FREE = [
    "Enter the name of the release: ",
    "Where should the report be saved? ",
    "File to patch: ",
    ">>> ",
    "sqlite> ",
    "% ",
]


@pytest.mark.parametrize("question", FREE)
def test_any_other_line_that_is_read_wants_text(question: str) -> None:
    Playbook() >> question >> 0.2 << Raised("free_text", question.strip())


def test_a_program_that_reads_without_a_word_is_waiting_too() -> None:
    Playbook() >> "This is free software with ABSOLUTELY NO WARRANTY.\n" >> 0.2 << Raised("unknown", "NO WARRANTY")


def test_echo_off_in_line_mode_asks_for_a_secret_whatever_the_words() -> None:
    play = Playbook(HIDDEN)
    play >> "Vault key: " >> 0.2 << Raised("free_text", "Vault key:")
    assert play.prompt.secret
    assert play.prompt.safe_default == ""


def test_a_blocked_read_is_raised_within_sixty_milliseconds() -> None:
    play = Playbook() >> "Continue? [y/N] " >> 1.0
    assert play.raised_after() <= 0.06


def test_a_question_that_stood_there_before_the_first_look_is_raised_by_a_second_one_soon_after() -> None:
    detector = Playbook().detector
    detector.handle(OutputReceived(b"Continue? [y/n] "), 100.0)
    first = detector.handle(ProbeAnswered(READING), 100.2)
    assert isinstance(first[0], RequestWakeup)
    assert first[0].at <= 100.231
    assert isinstance(detector.handle(ProbeAnswered(READING), first[0].at)[0], RaisePrompt)


def test_text_that_looks_like_a_prompt_is_none_while_the_program_is_busy() -> None:
    Playbook(BUSY) >> "Do you accept the licence? [y/N] " >> 30.0 << Nothing()


def test_a_prompt_is_raised_once_the_program_begins_to_read() -> None:
    play = Playbook(BUSY) >> "Continue? [y/N] " >> 5.0 << Nothing()
    play >> READING >> 0.6 << Raised("yes_no")


def test_where_nobody_can_tell_a_pattern_needs_two_seconds_of_silence() -> None:
    play = Playbook(BLIND) >> "Continue? [y/N] " >> 1.9 << Nothing()
    play >> 0.5 << Raised("yes_no")


def test_where_nobody_can_tell_silence_below_an_ended_line_raises_nothing_for_long() -> None:
    Playbook(BLIND) >> "Fitting the model\r\n" >> 25.0 << Nothing()


def test_half_a_prompt_is_not_raised_while_the_rest_is_on_its_way() -> None:
    play = Playbook() >> "Do you want to con" >> 0.03 << Nothing()
    play >> "tinue? [Y/n] " >> 0.2 << Raised("yes_no", "Do you want to continue? [Y/n]") << Nothing()


def test_a_line_overwritten_by_carriage_return_counts_as_it_stands() -> None:
    (
        Playbook()
        >> "Loading... 10%\rLoading... 90%\r\x1b[KReady? [y/n] "
        >> 0.2
        << Raised("yes_no", "Ready?")
        << Nothing()
    )


def test_the_same_question_twice_is_raised_twice() -> None:
    play = Playbook() >> "Delete? [y/n] " >> 0.2 << Raised("yes_no")
    play.reply() >> "y\nDelete? [y/n] " >> 0.5 << Withdrawn("answered") << Raised("yes_no") << Nothing()


def test_the_same_question_twice_at_the_bottom_of_the_screen_is_raised_twice() -> None:
    play = Playbook(rows=5) >> "a\nb\nc\nd\nDelete? [y/n] " >> 0.2 << Raised("yes_no")
    play.reply() >> "y\nDelete? [y/n] " >> 0.5 << Withdrawn("answered") << Raised("yes_no") << Nothing()


@pytest.mark.parametrize("probe", [READING, ONE_KEY])
def test_the_same_question_on_a_screen_made_of_nothing_else_is_raised_again_at_once(probe: ProbeAnswer) -> None:
    play = Playbook(probe, rows=5) >> "Delete? [y/n] y\n" * 5 + "Delete? [y/n] " >> 0.2 << Raised("yes_no")
    for _ in range(3):
        play.reply() >> "y\nDelete? [y/n] "
        assert play.detector.has_left(play.prompt.digest), "what would follow the first key would answer the next one"
        play >> 0.2 << Withdrawn("answered") << Raised("yes_no") << Nothing()


def test_a_question_that_was_given_up_and_asked_again_is_another_on_a_screen_made_of_nothing_else() -> None:
    play = Playbook(rows=5) >> "Delete? [y/n] \n" * 5 + "Delete? [y/n] " >> 0.2 << Raised("yes_no")
    play >> "\nDelete? [y/n] "
    assert not play.detector.still_shows(play.prompt.digest), "the answer was meant for the one before"
    play >> 0.3 << Withdrawn("moved_on") << Raised("yes_no") << Nothing()


def test_the_same_question_on_a_screen_that_was_cleared_is_raised_again_at_once() -> None:
    play = Playbook() >> "\x1b[H\x1b[2JDelete? [y/n] " >> 0.2 << Raised("yes_no")
    play.reply() >> "y\n" >> 0.01 >> "\x1b[H\x1b[2JDelete? [y/n] " >> 0.2
    play << Withdrawn("answered") << Raised("yes_no") << Nothing()


def test_the_end_of_an_answered_line_is_told_before_the_next_question_is_raised() -> None:
    play = Playbook() >> "First? [y/n] " >> 0.2 << Raised("yes_no", "First?")
    play.reply() >> "y\nSecond? [y/n] " >> 0.03 << Withdrawn("answered") << Nothing()
    play >> 0.03 << Raised("yes_no", "Second?")


def test_the_next_question_is_seen_even_when_it_comes_at_once() -> None:
    play = Playbook() >> "First? [y/n] " >> 0.2 << Raised("yes_no", "First?")
    play.reply() >> "y\nSecond? [y/n] " >> 0.2 << Withdrawn("answered") << Raised("yes_no", "Second?")


def test_the_echo_of_an_answer_is_never_a_prompt() -> None:
    play = Playbook() >> "Name: " >> 0.2 << Raised("free_text")
    play.reply() >> "really? [y/n]" >> 0.2 << Nothing()
    play >> BUSY >> "\n" >> 5.0 << Withdrawn("answered") << Nothing()


def test_an_answer_that_changes_nothing_is_asked_again_after_a_while() -> None:
    play = Playbook() >> "Delete? [y/n] " >> 0.2 << Raised("yes_no")
    play.reply() >> 2.0 << Nothing()
    play >> 2.0 << Raised("yes_no")


def test_an_answer_at_the_keyboard_withdraws_the_prompt() -> None:
    play = Playbook() >> "Delete? [y/n] " >> 0.2 << Raised("yes_no")
    play >> BUSY >> Keys("y\r") >> "y\n" >> 0.3 << Withdrawn("answered_at_terminal")


def test_a_prompt_stays_while_a_person_is_typing_the_answer() -> None:
    play = Playbook() >> "Name: " >> 0.2 << Raised("free_text")
    for letter in "alice":
        play >> Keys(letter) >> letter >> 0.4
    play << Nothing()
    assert play.detector.begun(play.now), "a reply must not be appended to half a word"


LEFT = [
    ("Delete it? [y/N] ", "yes_no", "x", "x"),
    ("  1) dev\n  2) prod\nWhich one? [1-2] ", "multiple_choice", "2", "2"),
    ("Vault key: ", "free_text", "hun", ""),
    ("Name: ", "free_text", "alicf\x7f", "alicf\b \b"),
]


@pytest.mark.parametrize(("asked", "kind", "keys", "echo"), LEFT, ids=[case[1] + case[2][0] for case in LEFT])
def test_a_line_that_somebody_has_begun_and_left_is_the_same_prompt(
    asked: str, kind: str, keys: str, echo: str
) -> None:
    play = Playbook(READING if echo else HIDDEN) >> asked >> 0.2 << Raised(kind)
    play >> Keys(keys) >> echo >> 1.0 << Nothing()
    assert play.detector.begun(play.now) and play.detector.line_begun
    play >> 10.0 << Nothing()
    assert not play.detector.begun(play.now)
    assert play.detector.line_begun, "the terminal still has the line: it must be erased before an answer"
    assert play.detector.still_shows(play.prompt.digest)
    play.reply()
    assert not play.detector.line_begun


def test_a_field_that_somebody_has_changed_and_left_is_the_same_prompt() -> None:
    play = Playbook(RAW) >> "Install where? /usr/local" >> 0.5 << Raised("free_text", "Install where?")
    digest = play.prompt.digest
    play >> Keys("x") >> "x" >> 1.0 << Nothing()
    assert play.detector.begun(play.now) and play.detector.refilled(digest)
    play >> 10.0 << Nothing()
    assert not play.detector.begun(play.now)
    assert not play.detector.still_shows(digest), "Enter would send another value than the person has read"
    prompt = play.detector.open_prompt
    assert prompt is not None and prompt.text_steps[0].keys == b"\x7f" * len("/usr/localx")


def test_keys_that_a_raw_program_has_read_are_no_begun_line() -> None:
    play = Playbook(RAW) >> "Delete it? [y/N] " >> 0.2 << Raised("yes_no")
    play >> Keys("x") >> 1.0
    assert not play.detector.line_begun


def test_output_that_moves_on_withdraws_the_prompt() -> None:
    play = Playbook() >> "Continue? [Y/n] " >> 0.2 << Raised("yes_no")
    play >> BUSY >> "\nno answer, going on\n" >> 0.3 << Withdrawn("moved_on") << Nothing()


def test_a_program_that_stops_reading_without_a_word_withdraws_the_prompt() -> None:
    play = Playbook() >> "Continue? [Y/n] " >> 0.2 << Raised("yes_no")
    play >> BUSY >> 3.0 << Withdrawn("moved_on")


def test_the_end_of_the_program_withdraws_the_prompt() -> None:
    from atlasbridge.core.detection.events import ChildExited

    play = Playbook() >> "Continue? [Y/n] " >> 0.2 << Raised("yes_no")
    play >> ChildExited() << Withdrawn("exited")
    play >> "Really? [y/n] " >> 1.0 << Nothing()


def test_what_the_terminal_itself_sends_is_no_keystroke_of_a_person() -> None:
    play = Playbook(BUSY) >> "x" >> 0.2
    play >> Keys("\x1b[?62;c\x1b[24;80R\x1b[I\x1b]11;rgb:0000/0000/0000\x1b\\")
    assert not play.detector._keys_since_raise


def test_a_key_in_the_longer_spelling_of_a_terminal_is_a_keystroke_of_a_person() -> None:
    play = Playbook(BUSY) >> "x" >> 0.2
    play >> Keys("\x1b[27u")
    assert play.detector._keys_since_raise


def test_a_key_without_enter_answers_where_the_program_reads_single_keys() -> None:
    play = Playbook(ONE_KEY) >> "Continue? [y/N] " >> 0.2 << Raised("yes_no")
    assert [step.keys for step in play.prompt.choices[0].steps] == [b"y"]


def test_below_a_terminal_inside_this_one_the_program_around_it_asks_and_takes_keys() -> None:
    inside = ProbeAnswer(ProbeState.READING, "inside", echo=True, canonical=True, rows=23)
    play = Playbook(inside) >> "\x1b[?1049h$ cat\n\x1b[24;1H\x1b[7mkill-session 0? (y/n) " >> 0.5 << Raised("yes_no")
    assert [step.keys for step in play.prompt.choices[0].steps] == [b"y"], "an Enter would go to the program inside"


def test_a_line_that_is_filled_in_is_cleared_first() -> None:
    menu = "Please select the area.\n\n  1. Africa   3. Asia\n  2. America  4. Etc\n\nGeographic area: 4"
    play = Playbook(RAW) >> menu >> 0.2 << Raised("multiple_choice", "Geographic area:")
    assert [choice.label for choice in play.prompt.choices] == ["Africa", "America", "Asia", "Etc"]
    assert [step.keys for step in play.prompt.choices[2].steps] == [b"\x7f", b"3", b"\r"]


def test_a_menu_that_counts_from_zero_is_chosen_by_its_own_numbers() -> None:
    menu = "* 0            /bin/nano   40   auto mode\n  1            /bin/ed   -100   manual mode\n\n"
    menu += "Type selection number: "
    play = Playbook() >> menu >> 0.2 << Raised("multiple_choice", "selection number")
    assert [choice.value for choice in play.prompt.choices] == ["0", "1"]
    assert play.prompt.choices[1].steps[0].keys == b"1"


def test_limits_in_the_question_become_constraints() -> None:
    play = Playbook() >> "Enter name (max 20 chars): " >> 0.2 << Raised("free_text")
    assert play.prompt.constraints["max_length"] == 20
    play = Playbook() >> "1) a\n2) b\n3) c\nEnter choice [1-3]: " >> 0.2 << Raised("multiple_choice")
    assert (play.prompt.constraints["min_choice"], play.prompt.constraints["max_choice"]) == (1, 3)


def test_wide_and_right_to_left_text_is_read_like_any_other() -> None:
    Playbook() >> "ファイルを削除しますか? [y/N] " >> 0.2 << Raised("yes_no", "削除しますか? [y/N]")
    Playbook() >> "להמשיך? (y/n) " >> 0.2 << Raised("yes_no", "(y/n)")


def test_a_question_that_wraps_in_a_tiny_window_is_one_question() -> None:
    question = "Are you sure you want to delete all of it?"
    Playbook(rows=6, cols=20) >> question + " [y/N] " >> 0.2 << Raised("yes_no", question)


def test_an_excerpt_holds_no_secret_and_no_escape() -> None:
    play = Playbook() >> "token=ghp_abcdefghijklmnopqrstuvwxyz0123\nContinue\u202e? [y/n] " >> 0.2 << Raised("yes_no")
    assert "ghp_" not in play.prompt.excerpt + play.prompt.screen
    assert "\u202e" not in play.prompt.excerpt


ALL_OF_IT = "Run shell command? (Y)es/(N)o/(D)on't ask again [Yes]: "


@pytest.mark.parametrize("dialect", ["aider", "generic"])
@pytest.mark.parametrize("cols", [20, 26, 33, 40, 53, 54, 60])
def test_a_question_that_an_editor_of_lines_wraps_by_itself_has_its_answers(dialect: str, cols: int) -> None:
    rows = [ALL_OF_IT[at : at + cols] for at in range(0, len(ALL_OF_IT), cols)]
    wide, narrow = (
        Playbook(POLLING, dialect, cols=width) >> "\x1b[?2004h\x1b[?7lTokens: 2k\n\ntouch x\n" + "\n".join(drawn) >> 2.5
        for width, drawn in ((120, [ALL_OF_IT]), (cols, rows))
    )
    wide << Raised("multiple_choice", "Run shell command?")
    narrow << Raised("multiple_choice", "touch x")
    assert [choice.label for choice in narrow.prompt.choices] == [choice.label for choice in wide.prompt.choices]
    assert [choice.refuses for choice in narrow.prompt.choices] == [choice.refuses for choice in wide.prompt.choices]


def test_a_full_row_above_a_line_that_asks_for_text_is_not_a_part_of_it() -> None:
    play = Playbook(POLLING, cols=20) >> "\x1b[?2004hMade all of 20 files\nName of the next:  " >> 2.5
    play << Raised("free_text", "Name of the next:")
    assert play.prompt.question.split("\n")[-1] == "Name of the next:"


REJECTED = "abc\x1b[12;1Hdigits only\x1b[1;{col}H"  # a line editor that keeps what it does not take, and says why below


@pytest.mark.parametrize(("col", "clears"), [(9, b"\x1b[3~" * 3), (10, b"\x1b[3~" * 2 + b"\x7f"), (12, b"\x7f" * 3)])
def test_an_answer_that_was_not_taken_is_asked_for_again_and_goes_first(col: int, clears: bytes) -> None:
    play = Playbook(RAW) >> "Number: " >> 0.5 << Raised("free_text", "Number:")
    first = play.prompt.digest
    play.reply() >> REJECTED.format(col=col) >> 1.0 << Nothing()
    play >> 3.0 << Raised("free_text", "Number:")
    assert play.prompt.digest == first, "nothing came of the answer: it is still there"
    assert play.detector.still_shows(first)
    steps = encode_answer(play.prompt, Answer(AnswerKind.TEXT, "5"))
    assert b"".join(step.keys for step in steps) == clears + b"5\r"


@pytest.mark.parametrize(("kept", "beside", "gap"), [("ab   cd", "", 5), ("ab", "12:00:01", 63), ("ab", "", 3)])
def test_all_of_an_answer_that_was_not_taken_goes_first_however_wide_its_gaps(kept: str, beside: str, gap: int) -> None:
    play = Playbook(RAW) >> f"Name: \x1b[1;70H{beside}\x1b[1;7H" >> 1.5 << Raised("free_text", "Name:")
    play.reply() >> f"{kept}\x1b[12;1Hone word only\x1b[1;7H" >> 4.0 << Raised("free_text", "Name:")
    clear, *_ = encode_answer(play.prompt, Answer(AnswerKind.TEXT, "e"))
    assert clear.keys.count(b"\x1b[3~") >= len(kept)
    assert clear.until == Stands("Name: " + " " * gap), "what has only moved up is not gone"


def test_an_answer_of_several_rows_that_was_not_taken_goes_first_with_all_of_them() -> None:
    play = Playbook(RAW, cols=20) >> "Name: " >> 0.5 << Raised("free_text", "Name:")
    play.reply() >> "x" * 50 + "\x1b[12;1Htoo long\x1b[1;7H" >> 4.0 << Raised("free_text", "Name:")
    clear, *_ = encode_answer(play.prompt, Answer(AnswerKind.TEXT, "e"))
    assert clear.keys == b"\x1b[3~" * 50


def test_words_that_somebody_has_begun_and_gone_back_in_are_not_written_into() -> None:
    play = Playbook(RAW) >> "Number: " >> 0.5 << Raised("free_text", "Number:")
    play >> Keys("abc") >> "abc" >> 0.1 >> Keys("\x01") >> "\x1b[9G" >> 0.1
    assert not play.detector.still_shows(play.prompt.digest)
