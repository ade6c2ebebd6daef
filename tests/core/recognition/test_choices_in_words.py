"""Choices that stand in sentences, in tables of letters, and in other languages than English."""

from __future__ import annotations

import pytest
from tests.support.playbook import HIDDEN, ONE_KEY, POLLING, RAW, READING, TICKING, Nothing, Playbook, Raised

from atlasbridge.core.detection.events import RaisePrompt
from atlasbridge.core.prompt.answer import decide_answer, encode_answer, first_line
from atlasbridge.core.prompt.keys import Reach
from atlasbridge.core.prompt.model import Answer, AnswerKind, Reject
from atlasbridge.core.prompt.timer import asks_permission
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.screen.view import View

ABROAD = [
    ("Datei überschreiben? [j/N] ", "j", "n", "n"),
    ("Voulez-vous continuer ? [O/n] ", "o", "n", "y"),
    ("¿Desea continuar? [S/n] ", "s", "n", "y"),
    ("Deseja continuar? (s/n) ", "s", "n", ""),
    ("Продолжить? [д/Н] ", "д", "н", "n"),
    ("Kontynuować? [T/n] ", "t", "n", "y"),
    ("Wirklich löschen (ja/nein)? ", "ja", "nein", ""),
    ("続行しますか？ (はい/いいえ): ", "はい", "いいえ", ""),
]


@pytest.mark.parametrize(("question", "yes", "no", "default"), ABROAD)
def test_yes_and_no_are_typed_as_the_question_spells_them(question: str, yes: str, no: str, default: str) -> None:
    play = Playbook() >> question >> 0.2 << Raised("yes_no", question.strip())
    assert [(choice.value, choice.steps[0].keys.decode()) for choice in play.prompt.choices] == [("y", yes), ("n", no)]
    assert [choice.value for choice in play.prompt.choices if choice.default] == list(default)
    assert play.prompt.safe_default == ("n" if asks_permission(question) else "")


PRESS = [
    "Drücken Sie eine beliebige Taste, um fortzufahren . . . ",
    "Appuyez sur une touche pour continuer",
    "Presione cualquier tecla para continuar",
    "Premere INVIO per continuare",
    "Нажмите любую клавишу для продолжения",
    "続行するには何かキーを押してください",
]


@pytest.mark.parametrize(
    "line",
    [
        "Use port 8080? Press Enter to accept or type another: ",
        "Press Enter to keep main or type the branch: ",
        "Press RETURN to use this folder, or enter a different one: ",
    ],
)
def test_a_line_that_enter_or_words_answer_takes_both(line: str) -> None:
    play = Playbook(READING) >> line >> 3.0 << Raised("free_text")
    for value in ("9090", "enter"):
        assert isinstance(decide_answer(play.prompt, value), Answer), value


@pytest.mark.parametrize(
    "drawn",
    [
        "1) Leave all of the files in this folder as they are\n2) Remove all of the files\nEnter 1-2: ",
        "Main menu\n  1) add\n  2) del\n> ",
    ],
)
def test_a_list_is_offered_where_a_range_or_its_heading_says_that_it_is_one(drawn: str) -> None:
    play = Playbook(READING) >> drawn >> 3.0 << Raised("multiple_choice")
    assert [choice.value for choice in play.prompt.choices] == ["1", "2"]


@pytest.mark.parametrize("question", PRESS)
def test_press_a_key_is_understood_abroad(question: str) -> None:
    Playbook(ONE_KEY) >> question >> 0.2 << Raised("confirm_enter")


SENTENCES = [
    ("Use (m)odified or (d)eleted file, or (a)bort? ", ["m", "d", "a"]),
    ("Change (N)ame, (C)omment, (E)mail or (O)kay/(Q)uit? ", ["n", "c", "e", "o", "q"]),
    (
        "You can keep (l)ocal [working copy], take (o)ther [merge rev], or leave (u)nresolved.\nWhat do you want? ",
        ["l", "o", "u"],
    ),
    ("(p) postpone, (df) show diff, (e)dit file, (m)erge, (q)uit: ", ["p", "df", "e", "m", "q"]),
    ('"f" already exists.\na)utorename A)utorename-all o)verwrite O)verwrite-all q)uit (aAoOq): ', list("aAoOq")),
    ("(1/2) Stage this hunk [y,n,q,a,d,j,J,g,/,e,?]? ", list("ynqadjJg/e?")),
    ("zsh: correct 'ecoh' to 'echo' [nyae]? ", list("nyae")),
    ("replace f? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", ["y", "n", "A", "N", "r"]),
]


@pytest.mark.parametrize(("question", "keys"), SENTENCES)
def test_letters_in_a_sentence_are_its_choices(question: str, keys: list[str]) -> None:
    play = Playbook() >> question >> 0.2 << Raised("multiple_choice")
    assert [choice.value for choice in play.prompt.choices] == keys
    assert [choice.steps[0].keys.decode() for choice in play.prompt.choices] == keys


def test_a_table_of_letters_with_colons_gives_their_meanings() -> None:
    table = (
        "   What would you like to do about it ?  Your options are:\n"
        "    Y or I  : install the package maintainer's version\n"
        "    N or O  : keep your currently-installed version\n"
        "      D     : show the differences between the versions\n"
        "      Z     : start a shell to examine the situation\n"
        " The default action is to keep your current version.\n"
        "*** zed.conf (Y/I/N/O/D/Z) [default=N] ? "
    )
    play = Playbook() >> table >> 0.2 << Raised("multiple_choice", "zed.conf")
    assert [choice.value for choice in play.prompt.choices] == ["Y", "N", "D", "Z"]
    assert play.prompt.choices[1].label == "keep your currently-installed version"


def test_numbers_behind_which_only_their_keys_are_listed_are_a_list() -> None:
    menu = "Dirty bit is set.\n1) Remove dirty bit\n2) No action\n[12?q]? "
    play = Playbook() >> menu >> 0.2 << Raised("multiple_choice", "[12?q]?")
    assert [choice.label for choice in play.prompt.choices] == ["Remove dirty bit", "No action"]


def test_numbers_with_an_equals_sign_are_a_list() -> None:
    menu = "Please decide.\n\n  1 = I don't know\n  2 = I trust fully\n  m = back\n\nYour decision? "
    play = Playbook() >> menu >> 0.2 << Raised("multiple_choice", "Your decision?")
    assert [choice.label for choice in play.prompt.choices] == ["I don't know", "I trust fully", "back"]


def test_a_command_with_a_question_mark_and_dots_is_confirmed() -> None:
    Playbook() >> "touch aa bb?..." >> 0.2 << Raised("yes_no", "touch aa bb?...")


def test_help_beside_yes_and_no_does_not_change_the_question() -> None:
    play = Playbook() >> "Do you want to continue? [Y/n/?] " >> 0.2 << Raised("yes_no", "[Y/n/?]")
    assert [choice.value for choice in play.prompt.choices] == ["y", "n", "?"]


def test_choices_in_brackets_are_offered_only_where_the_line_ends_with_them() -> None:
    Playbook(TICKING) >> "Continue? [y/N] thinking" >> 1.0 << Nothing()
    Playbook() >> "Select (1/2/3) and press the key: " >> 0.2 << Raised("multiple_choice")


def test_what_must_be_typed_may_stand_at_the_foot_of_the_screen() -> None:
    screen = '\x1b[?1049h\x1b[20;1HDo you want to write it?\x1b[22;9HType "yes" or "no", or ESC.\x1b[20;26H'
    play = Playbook(RAW) >> screen.encode() >> 0.3 << Raised("yes_no", "write it?")
    assert [step.keys for step in play.prompt.choices[0].steps] == [b"y", b"es", b"\r"]


def test_choices_that_cannot_be_taken_do_not_end_a_menu() -> None:
    menu = (
        "? Package manager\n❯ npm\n  ──────────────\n  yarn\n- jspm (not available)\n  pnpm\n\n↑↓ navigate • ⏎ select\n"
    )
    play = Playbook(RAW) >> menu >> 0.3 << Raised("multiple_choice", "Package manager")
    assert [choice.label for choice in play.prompt.choices] == ["npm", "yarn", "pnpm"]
    assert play.prompt.choices[2].steps[0].until == Reach("pnpm")


def test_boxes_in_groups_are_one_list() -> None:
    boxes = ("◻ Front", "│ ◻ vue", "└ ◻ react", "◻ Back", "└ ◻ go")
    faded = "".join(f"│  \x1b[2m{box}\x1b[0m\n" for box in boxes).replace("\x1b[2m", "", 1)  # the first has the keys
    menu = f"◆  Pick tools\n{faded}└\n"
    play = Playbook(RAW) >> menu >> 0.3 << Raised("multiple_choice", "Pick tools")
    assert [choice.label for choice in play.prompt.choices] == ["Front", "vue", "react", "Back", "go"]
    assert play.prompt.constraints["multi_select"]


@pytest.mark.parametrize("field", ["│ sda______ │", "│sda        │"])
def test_a_field_that_comes_filled_in_is_emptied_first(field: str) -> None:
    box = f"┌───────────┐\r\n│ Disk name │\r\n{field}\r\n│ <Ok> <No> │\r\n└───────────┘"
    column = field.index("sda") + 4
    play = Playbook(RAW) >> f"\x1b[H{box}\x1b[3;{column}H".encode() >> 0.3 << Raised("free_text", "Disk name")
    assert "sda" not in play.prompt.excerpt
    assert play.prompt.text_steps[0].keys == b"\x7f\x7f\x7f"


def test_a_question_of_a_library_is_cleared_only_where_something_may_stand_in_it() -> None:
    play = Playbook(RAW) >> "? Enter keywords › " >> 0.3 << Raised("free_text", "Enter keywords")
    assert play.prompt.text_steps == ()
    play = Playbook(RAW) >> "? Your city Rome" >> 0.3 << Raised("free_text", "Your city")
    assert play.prompt.text_steps[0].keys == b"\x7f" * len("Your city Rome")


LISTS = [
    "? Planet\n❯ p0\n  p1\n(Use arrow keys to reveal more choices)\n",
    "◆  Number\n│  ● n0\n│  ○ n1\n│  ...\n└\n",
]


@pytest.mark.parametrize("menu", LISTS)
def test_a_list_that_scrolls_says_so_and_its_visible_rows_are_chosen(menu: str) -> None:
    play = Playbook(RAW) >> menu >> 0.3 << Raised("multiple_choice")
    assert play.prompt.constraints["scrolls"]
    assert isinstance(decide_answer(play.prompt, "2"), Answer)
    refused = decide_answer(play.prompt, "n7")
    assert isinstance(refused, Reject)
    assert "goes on" in refused.sentence


def test_a_full_screen_program_asks_for_text_in_a_bar_or_in_the_last_row() -> None:
    text = "\x1b[?1049h\x1b[HDear Bob:\x1b[22;1H\x1b[7mFile Name to Write: old.txt\x1b[0m"
    play = Playbook(RAW) >> text.encode() >> 0.3 << Raised("free_text", "File Name to Write:")
    assert play.prompt.text_steps[0].keys == b"\x7f" * len("old.txt")
    Playbook(RAW) >> b"\x1b[?1049h\x1b[24;1HTo: " >> 0.3 << Raised("free_text", "To:")
    apart = "\x1b[?1049h\x1b[18;1H└────┘\x1b[22;9Hmay be followed by M or G\x1b[19;2HPartition size: 49M"
    Playbook(RAW) >> apart.encode() >> 0.3 << Raised("free_text", "Partition size:")


def test_a_line_of_text_in_an_editor_is_no_question() -> None:
    Playbook(RAW) >> b"\x1b[?1049h\x1b[10;1Hdef main(argument): " >> 0.3 << Raised("unknown")


def test_a_small_menu_whose_only_mark_is_the_highlight_is_a_menu() -> None:
    screen = "\x1b[?1049h\x1b[2;3HMain menu\x1b[4;5HStart\x1b[5;5H\x1b[7mStop\x1b[0m\x1b[6;5HQuit\x1b[?25l"
    play = Playbook(RAW) >> screen.encode() >> 0.3 << Raised("multiple_choice", "Main menu")
    assert [choice.label for choice in play.prompt.choices if choice.default] == ["Stop"]
    assert [step.keys for step in play.prompt.choices[2].steps] == [b"\x1b[B", b"\r"]


def test_a_pager_without_a_screen_of_its_own_is_one_all_the_same() -> None:
    text = "".join(f"line {number}\n" for number in range(30)) + "\x1b[7mnotes.txt\x1b[0m"
    Playbook(RAW) >> text >> 0.3 << Raised("unknown", "notes.txt")


def test_the_highlight_is_seen_below_a_choice_that_cannot_be_taken() -> None:
    below = View.from_text("? Package manager\n  npm\n  yarn\n- jspm (not available)\n❯ pnpm\n\n↑↓ navigate")
    upon = View.from_text("? Package manager\n  npm\n  yarn\n❯ jspm (not available)\n  pnpm\n\n↑↓ navigate")
    assert is_highlighted(below, "pnpm")
    assert not is_highlighted(upon, "pnpm")


def test_the_highlight_is_seen_of_two_words_that_fill_their_row() -> None:
    lit = View(("Sure?", "Yes No"), 1, 0, cursor_visible=False, cols=6, styles=((), (32, 32, 32)))
    assert is_highlighted(lit, "Yes", ("Yes", "No"))
    assert not is_highlighted(lit, "No", ("Yes", "No"))


def test_a_count_in_brackets_is_no_choice() -> None:
    Playbook() >> "[1/3] name (zed): " >> 0.2 << Raised("free_text", "name (zed):")


def test_ticks_above_a_question_are_no_menu() -> None:
    play = Playbook(RAW) >> "✔ build\n✔ test\nDeploy it? (y/n) " >> 0.3 << Raised("yes_no", "Deploy it? (y/n)")
    play.reply() >> "y" >> 0.3 << Nothing()
    assert not play.detector.has_left(play.prompt.digest)


def test_a_bar_of_buttons_at_the_foot_is_a_menu() -> None:
    bar = "\x1b[?1049h\x1b[3;9HDisk: img\x1b[20;9H[ New ]  \x1b[7m[ Quit ]\x1b[0m  [ Help ]\x1b[?25l"
    play = Playbook(RAW) >> bar.encode() >> 0.3 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["New", "Quit", "Help"]
    assert [step.keys for step in play.prompt.choices[0].steps] == [b"\x1b[D", b"\r"]


def test_a_list_that_counts_from_zero_has_a_zero() -> None:
    menu = "Please enter the interpreter:\n0. python3.11\n1. python3.12\nPlease select (0): "
    play = Playbook() >> menu >> 0.2 << Raised("multiple_choice")
    assert decide_answer(play.prompt, "0") == Answer(AnswerKind.CHOICE, "0")
    assert decide_answer(play.prompt, "1") == Answer(AnswerKind.CHOICE, "1"), "what a person reads, not the position"
    assert isinstance(decide_answer(play.prompt, "2"), Reject)


def test_a_filled_field_below_its_question_belongs_to_it() -> None:
    play = Playbook(POLLING) >> "🎤 What is your project called?\n   abc" >> 0.3 << Raised("free_text", "called?")
    assert play.prompt.excerpt == "🎤 What is your project called?"
    assert play.prompt.text_steps[0].keys == b"\x7f\x7f\x7f"


def test_where_nothing_else_shows_which_row_has_the_keys_the_only_mark_does() -> None:
    play = Playbook(RAW) >> "Which colour?\n[x] red\n[ ] green\n[ ] blue\n" >> 1.0 << Raised("multiple_choice")
    assert not play.prompt.constraints.get("multi_select")
    answer = decide_answer(play.prompt, "blue")
    assert isinstance(answer, Answer)
    assert [step.keys for step in encode_answer(play.prompt, answer)] == [b"\x1b[B", b"\x1b[B", b"\r"]
    unmarked = "Which colours?\n[x] red\n[ ] green\n[x] blue\n"
    Playbook(RAW) >> unmarked >> 1.0 << Raised("unknown")


def test_a_choice_far_away_is_reached_with_one_key_that_is_pressed_until_it_is_there() -> None:
    menu = "Which one?\n❯ item a\n" + "".join(f"  item {letter}\n" for letter in "bcdefghijklmno")
    play = Playbook(RAW) >> menu >> 1.0 << Raised("multiple_choice", "Which one?")
    near, far = (encode_answer(play.prompt, Answer(AnswerKind.CHOICE, value)) for value in ("3", "15"))
    assert [step.keys for step in near] == [b"\x1b[B", b"\x1b[B", b"\r"]
    assert [(step.keys, step.until) for step in far[:-1]] == [(b"\x1b[B", Reach("item o"))]


@pytest.mark.parametrize("asked", ["Enter to continue", "[Enter] to continue ", "<Return> to exit: "])
def test_what_enter_does_is_told_without_a_word_for_pressing_it(asked: str) -> None:
    Playbook(RAW) >> asked >> 1.0 << Raised("confirm_enter")


def test_an_answer_that_says_nothing_by_itself_is_told_with_what_is_above_it() -> None:
    play = (
        Playbook()
        >> "var.region\n  AWS region to deploy to\n\n  Enter a value: "
        >> 0.2
        << Raised("free_text", "var.region")
    )
    assert play.prompt.excerpt.endswith("Enter a value:")
    sure = "This removes 9 files!\nAre you sure?\n\nType 'yes' to continue, or 'no' to cancel: "
    Playbook() >> sure >> 0.2 << Raised("yes_no", "Are you sure?")
    files = "\n".join(f"  Path: {'x' * 50}{at}" for at in range(4))
    asked = f"Would you like to replace the file:\n{files}\n? (Y)es / (N)o / (A)lways / (S)kip all / (Q)uit? "
    Playbook() >> asked >> 0.2 << Raised("multiple_choice", "Would you like to replace the file:")


def test_an_aside_behind_the_question_hides_no_secret() -> None:
    play = Playbook(POLLING) >> "🔐 Disk key: (press TAB for no echo) " >> 1.0 << Raised("free_text")
    assert play.prompt.secret and "default" not in play.prompt.constraints


def test_a_list_that_counts_down_is_chosen_by_the_numbers_that_a_person_reads() -> None:
    play = (
        Playbook(TICKING)
        >> "\x1b[?25lApply it?\n\n  3. No\n  2. Always\n❯ 1. Yes\n"
        >> 3.0
        << Raised("multiple_choice")
    )
    assert [choice.value for choice in play.prompt.choices] == ["3", "2", "1"]


def test_what_is_to_be_pasted_before_enter_is_no_bare_enter() -> None:
    Playbook(HIDDEN) >> "Paste your API key and hit enter: " >> 0.2 << Raised("free_text", "API key")
    Playbook() >> "Type your name and press Enter: " >> 0.2 << Raised("free_text", "your name")


def test_the_only_question_of_a_full_screen_takes_words_in_the_row_below_it() -> None:
    play = Playbook(POLLING) >> "\x1b[?1049h\x1b[2J\x1b[HWhat is your name?\r\n" >> 3.0
    play << Raised("free_text", "your name?")


def test_an_input_line_in_the_last_row_takes_words() -> None:
    line = "\x1b[?1049h\x1b[2J\x1b[23;1H\x1b[44m [20:14] [ada] [1] \x1b[m\x1b[24;1H[(status)] "
    Playbook(TICKING) >> line >> 12.0 << Raised("free_text", "[(status)]")


def test_keys_in_two_columns_above_the_mark_of_a_full_screen_are_a_list() -> None:
    rows = [
        "this is wrnog text",
        "",
        "",
        "1) wrong      6) warn",
        "2) wring      7) wrung",
        "i) Ignore     I) Ignore all",
    ]
    drawn = "\x1b[?1049h\x1b[2J\x1b[H" + "\n".join([*rows, "b) Abort      x) Exit", "", "? "])
    play = Playbook(POLLING) >> drawn >> 3.0 << Raised("multiple_choice")
    assert {choice.value: choice.label for choice in play.prompt.choices}["I"] == "Ignore all"


LISTED = [
    "Please select a fix:\n 1) Provide a default now (will be set on all existing rows that have no value now)\n"
    " 2) Quit\nSelect an option: ",
    "log: (1) Create an account\nlog: (2) Use an existing one\nlog: Enter your choice: ",
    "+---+-------+------+\n| # | Plan  | Cost |\n+---+-------+------+\n| 1 | Basic | 5    |\n| 2 | Pro   | 20   |\n"
    "+---+-------+------+\nSelect a plan: ",
    "┌───┬───────┬──────┐\n│ # │ Plan  │ Cost │\n├───┼───────┼──────┤\n│ 1 │ Basic │ 5    │\n│ 2 │ Pro   │ 20   │\n"
    "└───┴───────┴──────┘\nSelect a plan: ",
    "Type of storage.\nChoose a number from below.\n 1 / Local\n   \\ (local)\n 2 / Remote\n   \\ (remote)\nStorage> ",
    "What does it build:\n   1) Library\n * 2) Executable\nYour choice? [default: Executable] ",
    "What would you like to do?\n  [1] Rebuild everything from scratch, which takes about an hour in all\n  [2] Only"
    " what changed\n  [0] Nothing\n> ",
    "<1> alpha\n<2> beta\nSelect: ",
    "#1 alpha\n#2 beta\nSelect: ",
    "1、新建\n2、打开\n请输入选项：",
    "（1）追加\n（2）削除\nどれにしますか？ ",
]


@pytest.mark.parametrize("drawn", LISTED)
def test_a_typed_list_is_read_whatever_its_rows_look_like(drawn: str) -> None:
    play = Playbook() >> drawn >> 0.2 << Raised("multiple_choice")
    assert [choice.value for choice in play.prompt.choices if choice.value != "0"] == ["1", "2"]


def test_a_list_is_counted_in_roman_numerals_too() -> None:
    play = Playbook() >> " i) alpha\n ii) beta\niii) gamma\n iv) delta\nWhich? " >> 0.2 << Raised("multiple_choice")
    assert [(choice.value, choice.label) for choice in play.prompt.choices][::3] == [("i", "alpha"), ("iv", "delta")]


@pytest.mark.parametrize("line", ["City, State: ", "Enter path/to/file: ", "Save file? (a-z) ", "Use and/or: "])
def test_words_without_brackets_are_choices_only_where_nothing_else_is_meant(line: str) -> None:
    assert not (Playbook() >> line >> 1.0 << Raised("free_text")).prompt.choices


@pytest.mark.parametrize("line", ["Input/Output", "Starting, Cancelled", "Name (see the manual (page 3)): "])
def test_words_that_no_sign_asks_for_are_neither_choices_nor_a_default(line: str) -> None:
    play = Playbook(POLLING) >> line >> 12.0
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert raised and not raised[-1].choices and "default" not in raised[-1].constraints


def test_a_list_that_ends_with_a_way_out_is_a_menu_above_a_blank_row_too() -> None:
    play = (
        Playbook() >> "  a) Add a rule\n  d) Delete a rule\n  q) Quit\n\nCommand> " >> 0.2 << Raised("multiple_choice")
    )
    assert [choice.value for choice in play.prompt.choices] == ["a", "d", "q"]


@pytest.mark.parametrize(
    "line",
    [
        "Package name (<vendor>/<name>) [root/x]: ",
        "\tMinimum Password Age [0]: ",
        "Mail version 8. Type ? for help.\n& ",
        "* ",
        "| ?- ",
        "Enter a number (1-3, all): ",
        "Is a positive or negative?\n\n",
    ],
)
def test_what_only_looks_like_choices_or_a_secret_takes_words(line: str) -> None:
    play = Playbook() >> line >> 1.0 << Raised("free_text")
    assert not play.prompt.choices and not play.prompt.secret


def test_a_number_behind_the_brackets_is_no_question_of_a_full_screen() -> None:
    shown = "\x1b[?1049h\x1b[H\x1b[?25lContinue? [y/N] 1794867429.26"
    play = Playbook(POLLING) >> shown >> 1.0
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    assert not any(prompt.choices for prompt in raised)


@pytest.mark.parametrize(
    ("line", "said", "keys"),
    [
        ("Store key in cache? (y/n, Return cancels connection, i for more info) ", "yes", b"y\r"),
        ("Proceed with 3 actions? [N/y/f] ", "yes", b"y\r"),
        ("Kontynuować? [t/N] ", "t", b"t\r"),
        ("Devam edilsin mi? [H/e] ", "y", b"e\r"),
        ("Devam edilsin mi? [H/e] ", "n", b"h\r"),
        ("Overwrite a.txt? o)verwrite, s)kip, q)uit: ", "overwrite", b"o\r"),
        ("1) staging\n2) production\nWhere to deploy? ", "production", b"2\r"),
        ("  1. Apache\n  2. MIT\nLicense [1]: ", "MIT", b"2\r"),
        ("Value between -5 and 5: ", "-1", b"-1\r"),
        ("Commit uncommitted changes? [yes] ", "n", b"no\r"),
        ("Only 'yes' will be accepted to approve.\n\n  Enter a value: ", "y", b"yes\r"),
        ("Type the word 'yes' to go on, or any other input to abort.\n  Confirm details: ", "n", b"no\r"),
        ("Continue (1=yes, 0=no)? ", "no", b"0\r"),
        ("Overwrite app.c (a=always/y/N)? ", "always", b"a\r"),
        ("Change the password for root ? ((Press y|Y for Yes, any other key for No) : ", "yes", b"y\r"),
        ("Accept(a) Edit(e) Diff(d) Merge (m) Skip(s) Help(?) ay: ", "e", b"e\r"),
        ("1) staging\n2) production\nWhere to deploy? [2]: ", "enter", b"2\r"),
        ("1 - name\n2 - size\nEnter a number to change any of them or press ENTER to go on: ", "enter", b"\r"),
        ("[1] a\n[2] b\n\nSet 1 of 1: keep which files? (1 - 2, [a]ll, [n]one): ", "2", b"2\r"),
        ("[1] a\n[2] b\n\nSet 1 of 1: keep which files? (1 - 2, [a]ll, [n]one): ", "all", b"a\r"),
        ("[a]llow once  [A]lways allow  [d]eny\n? ", "[a]llow once", b"a\r"),
        ("Do you accept the license terms? [yes|no]\n[no] >>> ", "y", b"yes\r"),
        ("Is CN=Ada, OU=x, O=x, C=x correct?\n  [no]:  ", "y", b"yes\r"),
        ('Enter "yes" to copy and "no"\n  to start with an empty state.\n\n  Enter a value: ', "n", b"no\r"),
        ("Are you sure you want to install the above packages? [Y/n/?/...] ", "y", b"y\r"),
        ("Log message unchanged\n(A)bort, (c)ontinue, (e)dit:\n", "abort", b"a\r"),
        ("a)bort, c)ontinue, e)dit, !)reuse it for the rest\nAction: (abort) ", "c", b"c\r"),
        ("Welcome!  Would you like instructions?\n", "n", b"n\r"),
        ("Which platform? [ iOS / macOS ]\n > ", "macOS", b"macOS\r"),
        ("Which kit? [none]:\n  [none  ] No kit\n  [breeze] Breeze\n > ", "breeze", b"breeze\r"),
        ("Enter YES (uppercase) to continue: ", "y", b"YES\r"),
        ("Please, press ENTER to continue\n>>> ", "enter", b"\r"),
        ("If you want to do this, type y and hit return.\n", "y", b"y\r"),
        ("Use (c)hanged version, leave (d)eleted, or leave (u)nresolved.\nWhat? ", "(c)hanged version", b"c\r"),
    ],
)
def test_what_a_person_says_is_matched_to_a_choice_by_its_shape(line: str, said: str, keys: bytes) -> None:
    play = Playbook(READING) >> line >> 1.0
    prompt = next(command.prompt for _, command in play.heard if isinstance(command, RaisePrompt))
    answer = decide_answer(prompt, said)
    assert isinstance(answer, Answer)
    assert b"".join(step.keys for step in encode_answer(prompt, answer)) == keys


def test_instructions_that_count_above_a_line_are_no_menu() -> None:
    told = "Steps:\n  1. Open https://example.com/activate in a browser\n  2. Copy the code that it shows\nName: "
    play = Playbook(READING) >> told >> 1.0 << Raised("free_text")
    assert not play.prompt.choices


def test_an_excerpt_ends_with_the_question_where_a_log_is_above_it() -> None:
    log = "\n".join(f"compiling module {at} ... ok" for at in range(12))
    play = Playbook(READING) >> f"{log}\nInstall the packages now? [y/N] " >> 1.0 << Raised("yes_no")
    assert play.prompt.excerpt.startswith("…\ncompiling module 6 ... ok")
    assert play.prompt.excerpt.endswith("compiling module 11 ... ok\nInstall the packages now? [y/N]")
    assert first_line(play.prompt) == "Install the packages now? [y/N]"


def test_a_list_with_other_words_above_it_is_whole_while_nothing_has_left_the_screen() -> None:
    play = Playbook(READING) >> "Building.\n\nChecked 3 files.\n\nPick one:\n1) red\n2) blue\nNumber: " >> 1.0
    play << Raised("multiple_choice")
    assert play.prompt.whole


BY_SHAPE = [
    ("Do you want to continue? [N/y/f] ", "yes_no", "ynf", "n"),
    ("Store key in cache? (y/n, Return cancels connection, i for more info) ", "yes_no", "yn", ""),
    ("Remove the cache? [y/n] › ", "yes_no", "yn", ""),
    ("Install? Y/n/? ", "yes_no", "yn?", "y"),
    ("Publish it now? ", "yes_no", "yn", ""),
    ("a -> b : delete old b? ", "yes_no", "yn", ""),
    ("Are you sure you want to release directory 'x': ", "yes_no", "yn", ""),
    ("Are you sure? (Y)es (N)o (C)ancel ", "multiple_choice", "ync", ""),
    ("Merge? y/n/all/q ", "multiple_choice", ["y", "n", "all", "q"], ""),
    ("Commit? [y/N/d(iff)] ", "multiple_choice", "yNd", "N"),
    ("Is this ok [y/d/N]: ", "multiple_choice", "ydN", "N"),
    ("Instructions? (y-n) ", "yes_no", "yn", ""),
    ("overwrite b? (y/n [n]) ", "yes_no", "yn", "n"),
    ("Continue? [y/n/v/...? shows all options] (y): ", "yes_no", "yn", "y"),
    ("Please enter 0 = LOW, 1 = MEDIUM and 2 = STRONG: ", "multiple_choice", "012", ""),
    ("Save changes? (y = save, n = discard, c = cancel) ", "multiple_choice", "ync", ""),
    ("Choose from 'small', 'medium', 'large' [medium]: ", "multiple_choice", ["small", "medium", "large"], ["medium"]),
    ("Shall I record this change? (1/1)  [ynW...], or ? for more options: ", "multiple_choice", "ynW", ""),
    ("Apply this hunk? [ynW], or ? for help: ", "multiple_choice", "ynW", ""),
    ("Ignore (i), Replace (r), quit (q)? ", "multiple_choice", "irq", ""),
    ("Allow [a]lways, [o]nce, [n]ever? ", "multiple_choice", "aon", ""),
    ("Move or shoot? (m-s) ", "multiple_choice", "ms", ""),
    ("Which one (i/ii/iii)? ", "multiple_choice", ["i", "ii", "iii"], ""),
    ("Abort, Retry, Fail? ", "multiple_choice", ["Abort", "Retry", "Fail"], ""),
    ("Size a/b/(none): ", "multiple_choice", ["a", "b", "none"], ["none"]),
    ("Proceed ([y]/n)? ", "yes_no", "yn", "y"),
]


@pytest.mark.parametrize(("line", "kind", "values", "default"), BY_SHAPE)
def test_what_a_line_offers_is_read_by_its_shape(
    line: str, kind: str, values: list[str], default: str | list[str]
) -> None:
    play = Playbook() >> line >> 0.2 << Raised(kind, line.strip())
    assert [choice.value for choice in play.prompt.choices] == list(values)
    assert [choice.value for choice in play.prompt.choices if choice.default] == list(default)
    assert {choice.value for choice in play.prompt.choices if choice.refuses} <= {"n", "N", "c", "q", "Abort", "none"}


@pytest.mark.parametrize("line", ["How many file(s)? ", "How is (s)he called: ", "Step (1/2): "])
def test_letters_in_brackets_that_offer_nothing_stay_a_part_of_the_question(line: str) -> None:
    play = Playbook() >> line >> 0.2 << Raised("free_text", line.strip())
    assert play.prompt.choices == ()


def test_the_keys_at_the_foot_of_an_editor_say_yes_and_no_in_any_language() -> None:
    foot = "\x1b[22;1H\x1b[7mGeänderten Puffer sichern?\x1b[m \x1b[23;1H J Ja\x1b[24;1H N Nein\x1b[22;28H"
    play = Playbook(RAW) >> "\x1b[?1049h\x1b[2J\x1b[H  GNU nano" + foot >> 3.0 << Raised("yes_no", "Puffer")
    assert [choice.steps[0].keys for choice in play.prompt.choices] == [b"J", b"N"]


SAID = [
    ("File exists. (o)verwrite, (s)kip, (r)ename: ", "overwrite", "o"),
    ("File exists. (o)verwrite, (s)kip, (r)ename: ", "over", "o"),
    ("Replace it? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", "yes", "y"),
    ("Replace it? [y]es, [n]o, [A]ll, [N]one, [r]ename: ", "rename", "r"),
    ("1) Deploy to staging\n2) Deploy to production\nWhich? ", "production", "2"),
    ("1) Deploy to staging\n2) Deploy to production\nWhich? ", "deploy", ""),
    ("1) Allow\n2) Allow, and never ask again\nWhich? ", "ask", ""),
    ("1) Allow\n2) Allow, and never ask again\nWhich? ", "again", ""),
    ("Do you want to continue? [N/y/f] ", "f", "f"),
    ("Kontynuować? [T/n] ", "t", "y"),
]


@pytest.mark.parametrize(("line", "said", "chosen"), SAID)
def test_what_a_person_says_is_one_choice_or_refused(line: str, said: str, chosen: str) -> None:
    play = Playbook() >> line >> 0.2
    answer = decide_answer(play.detector.open_prompt, said)  # type: ignore[arg-type]
    assert isinstance(answer, Reject) if not chosen else answer == Answer(AnswerKind.CHOICE, chosen), answer


@pytest.mark.parametrize(
    ("asked", "refuses", "always"),
    [
        ("Allow [a]lways, [o]nce, [n]ever? ", "[n]ever", "[a]lways"),
        ("Replace it? [y]es, [n]o, [A]ll, [s]kip: ", "[n]o [s]kip", "[A]ll"),
        ("Failed. [R]etry, [C]ontinue, [A]bort? ", "[A]bort", ""),
        ("Change (N)ame, (C)omment or (Q)uit? ", "(Q)uit", ""),
    ],
)
def test_a_key_in_brackets_does_not_change_what_its_word_means(asked: str, refuses: str, always: str) -> None:
    choices = (Playbook(READING) >> asked >> 1.0 << Raised("multiple_choice")).prompt.choices
    assert [choice.label for choice in choices if choice.refuses] == refuses.split()
    assert [choice.label for choice in choices if choice.always] == always.split()


def test_keys_that_turn_the_pages_of_a_list_are_not_its_choices() -> None:
    drawn = "Select a host\n\n  1. alpha\n  2. beta\n\nPage 1/4  [n]ext [p]rev [q]uit\nHost number: "
    play = Playbook(READING) >> drawn >> 1.0 << Raised("multiple_choice")
    assert [choice.label for choice in play.prompt.choices] == ["alpha", "beta"]


def test_a_third_answer_with_its_key_in_brackets_is_taken_by_that_key() -> None:
    play = Playbook(READING) >> "Overwrite (Y)es/(N)o/(A)lways/(Q)uit? " >> 1.0 << Raised("yes_no")
    assert [choice.steps[0].keys for choice in play.prompt.choices] == [b"y", b"n", b"a", b"q"]


def test_any_other_key_is_no_secret() -> None:
    asked = "Press RETURN/ENTER to continue or any other key to abort:"
    assert not (Playbook(RAW) >> asked >> 1.0 << Raised("confirm_enter")).prompt.secret
