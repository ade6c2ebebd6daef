"""The excerpt is the question a person needs: its own context, and nothing that has been answered already."""

from __future__ import annotations

from tests.support.playbook import BUSY, HIDDEN, RAW, READING, Keys, Nothing, Playbook, Raised, Withdrawn


def test_an_answered_question_is_not_in_the_next_excerpt() -> None:
    play = Playbook() >> "package name: (zed) " >> 0.2 << Raised("free_text")
    play.reply() >> "other\nversion: (1.0.0) " >> 0.3 << Withdrawn("answered") << Raised("free_text")
    assert play.prompt.excerpt == "version: (1.0.0)"


def test_a_question_answered_at_the_terminal_is_not_in_the_next_excerpt() -> None:
    play = Playbook() >> "Username: " >> 0.2 << Raised("free_text")
    play >> Keys("zed\r") >> "zed\nEmail address: " >> 0.3 << Withdrawn("answered_at_terminal") << Raised("free_text")
    assert play.prompt.excerpt == "Email address:"


def test_an_answer_typed_before_its_question_was_raised_is_history_too() -> None:
    play = Playbook() >> BUSY >> "Username: " >> 0.2 << Nothing()
    play >> Keys("zed\r") >> "zed\nEmail address: " >> READING >> 0.3 << Raised("free_text")
    assert play.prompt.excerpt == "Email address:"


def test_what_a_command_printed_stays_with_the_prompt_for_the_next_one() -> None:
    play = Playbook() >> "> " >> 0.2 << Raised("free_text")
    play.reply() >> "6*7\n42\n> " >> 0.3 << Withdrawn("answered") << Raised("free_text")
    assert play.prompt.excerpt == "42\n>"


def test_the_block_above_a_question_belongs_to_it() -> None:
    diff = "diff --git a/f b/f\n@@ -1 +1 @@\n-1\n+2\n"
    play = Playbook() >> "Old question: " >> 0.2 << Raised("free_text")
    play.reply() >> f"zed\n{diff}Stage this hunk [y,n,q]? " >> 0.3 << Withdrawn("answered") << Raised("yes_no")
    assert [choice.value for choice in play.prompt.choices] == ["y", "n", "q"]
    assert play.prompt.excerpt.startswith("diff --git")
    assert "Old question" not in play.prompt.excerpt


def test_a_ticked_question_above_a_menu_is_history() -> None:
    menu = "✔ Your nickname … zed\n? Favourite food › - Use arrow-keys. Return to submit.\n❯   Rice\n    Beans\n"
    play = Playbook(RAW) >> menu >> 0.3 << Raised("multiple_choice", "Favourite food")
    assert "nickname" not in play.prompt.excerpt


def test_the_same_question_twice_is_two_questions_with_the_same_excerpt() -> None:
    play = Playbook() >> "Another one? [y/n] " >> 0.2 << Raised("yes_no")
    first = play.prompt.excerpt
    play.reply() >> "y\nAnother one? [y/n] " >> 0.3 << Withdrawn("answered") << Raised("yes_no")
    assert play.prompt.excerpt == first


def test_a_secret_is_followed_by_a_clean_question() -> None:
    play = Playbook(HIDDEN) >> "Password: " >> 0.2 << Raised("free_text")
    play.reply() >> "\n" >> READING >> "Remember it? [y/n] " >> 0.3 << Withdrawn("answered") << Raised("yes_no")
    assert play.prompt.excerpt == "Remember it? [y/n]"


def test_a_program_that_reads_and_has_written_nothing_is_raised_in_time() -> None:
    for written in ("", "\n\n", "\x1b[2J\x1b[5;5H"):
        play = Playbook() >> written >> 0.25
        assert play.raised_after() <= 0.2
        play << Raised("unknown", "has written nothing")


def test_a_program_that_reads_after_a_long_silence_is_raised_in_time() -> None:
    play = Playbook(BUSY) >> "Preparing the disk\n" >> 45.0 << Nothing()
    play >> READING >> 0.6 << Raised("unknown", "Preparing the disk")


def test_the_prompt_for_the_next_command_leaves_the_person_at_it_a_moment() -> None:
    play = Playbook() >> "host# " >> 0.2 << Raised("free_text")
    play >> Keys("make\r") >> "make\nhost# " >> 0.3 << Withdrawn("answered_at_terminal") << Nothing()
    play >> 0.5 << Raised("free_text", "host#")


def test_another_question_than_the_one_just_answered_at_the_terminal_is_raised_at_once() -> None:
    play = Playbook() >> "sqlite> " >> 0.2 << Raised("free_text")
    play >> Keys("create table t(\r") >> "create table t(\n   ...> " >> 0.2 << Withdrawn("answered_at_terminal")
    play << Raised("free_text", "...>")
